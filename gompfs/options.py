"""The options of each main job, with their defaults in one place."""

from __future__ import annotations

from dataclasses import dataclass, field

from gompfs.codec.codecs import DEFAULT_BLOCK_SIZE, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, CodecOptions
from gompfs.errors import OptionError

GRAMMAR_BUILDERS = ("repair", "sequitur")
WORD_RULES = ("whitespace", "letters")


@dataclass(frozen=True)
class PackOptions:
    """How an archive is packed; sizes in bytes, `jobs` 0 means one thread per core."""

    codec: CodecOptions = field(default_factory=CodecOptions)
    block_size: int = DEFAULT_BLOCK_SIZE
    jobs: int = 0
    stats: bool = True
    grammar_builder: str = "repair"
    words: str = "whitespace"
    mtime_ns: int | None = None
    owner: int | None = None
    group: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if not MIN_BLOCK_SIZE <= self.block_size <= MAX_BLOCK_SIZE or self.block_size & (self.block_size - 1):
            raise OptionError(
                f"block size {self.block_size} is no power of two between {MIN_BLOCK_SIZE} and {MAX_BLOCK_SIZE}"
            )
        if self.grammar_builder not in GRAMMAR_BUILDERS:
            raise OptionError(f"no grammar builder {self.grammar_builder!r}; there are {GRAMMAR_BUILDERS}")
        if self.words not in WORD_RULES:
            raise OptionError(f"no word rule {self.words!r}; there are {WORD_RULES}")
