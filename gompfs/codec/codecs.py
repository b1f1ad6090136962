"""The codecs, with their names and numbers, and the options of an encoder."""

from __future__ import annotations

from enum import IntEnum

from gompfs.codec.constants import MAX_GROUP_SIZE_LOG2, MIN_GROUP_SIZE_LOG2
from gompfs.errors import OptionError
from gompfs.light_types import frozen

MIN_BLOCK_SIZE = 1 << 14
DEFAULT_BLOCK_SIZE = 1 << 16
DEFAULT_PART_SIZE = 1 << 19  # of text in gompresso-tadoc that does not repeat
MAX_PART_SIZE = 1 << 22  # with what repeats
MIN_LEVEL = 1
MAX_LEVEL = 8
DEFAULT_LEVEL = 6
DEFAULT_GROUP_SIZE_LOG2 = 2


class Codec(IntEnum):
    """How the payload of a block is coded. The values are those of the block header."""

    STORED = 0
    GOMPRESSO_BYTE = 1
    GOMPRESSO_BIT = 2
    GOMPRESSO_TADOC = 3
    """Text as a grammar. Blocks need the head of their part; other data is gompresso-bit."""
    HEAD = 4
    """The head of a part, which is no block of a stream."""
    GOMPRESSO_BIT_DICTIONARY = 5
    """gompresso-bit with matches from the dictionary of the archive."""

    @property
    def label(self) -> str:
        """The name for users, e.g. ``gompresso-bit``."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def from_label(cls, label: str) -> Codec:
        """Returns the codec of that name. Raises OptionError if there is none."""
        for codec in cls:
            if codec.label == label:
                return codec
        raise OptionError(f"unknown codec {label!r}; known codecs: {', '.join(codec.label for codec in cls)}")


@frozen
class CodecOptions:
    """The options of an encoder: the codec, the level (1 fastest to 8 smallest), and dependency elimination.

    A group has 2 ** `group_size_log2` sequences (docs/format.md). Values other than 2 are for experiments.
    So is `strict_sources`: matches then copy from below the high-water mark only, as in the Gompresso paper.
    """

    codec: Codec = Codec.GOMPRESSO_BIT
    level: int = DEFAULT_LEVEL
    dependency_elimination: bool = False
    group_size_log2: int = DEFAULT_GROUP_SIZE_LOG2
    strict_sources: bool = False

    def __post_init__(self) -> None:
        if not MIN_LEVEL <= self.level <= MAX_LEVEL:
            raise OptionError(f"level {self.level} is not between {MIN_LEVEL} and {MAX_LEVEL}")
        if not MIN_GROUP_SIZE_LOG2 <= self.group_size_log2 <= MAX_GROUP_SIZE_LOG2:
            raise OptionError(f"a group cannot have 2^{self.group_size_log2} sequences")
