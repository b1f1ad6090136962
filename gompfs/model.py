"""Plain values that the layers exchange."""

from __future__ import annotations

from enum import IntEnum
from itertools import islice

from gompfs.light_types import TYPE_CHECKING, NamedTuple, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT_INO = 1
MAX_TIME_NS = (1 << 63) - 1  # the index stores times up to this absolute value
WORD_RULES = ("whitespace", "letters", "identifiers")
WORD_SECTION = "words"
DICTIONARY_SECTION = "dictionary"
NEXT_INO = "next_ino"
MAX_INO = 1 << 62  # above all inode numbers
MAX_OFFSET = (1 << 63) - 1  # of a byte in an archive: SQLite stores signed numbers
MAX_NAME_SIZE = 255  # this and the following limits are in bytes and are those of Linux
MAX_SYMLINK_TARGET_SIZE = 4095
MAX_XATTR_NAME_SIZE = 255
MAX_XATTR_VALUE_SIZE = 1 << 16
MAX_COMMAND_SIZE = 255  # of a generation, like the next one
MAX_COMMENT_SIZE = 4096
ACCESS_ACL = b"system.posix_acl_access"  # the extended attributes that hold POSIX ACLs
DEFAULT_ACL = b"system.posix_acl_default"
_MAX_PROBLEMS = 100  # of one kind that are reported individually


class PartKind(IntEnum):
    """What a part of a segment holds."""

    DATA = 0
    TEXT = 1
    """Text, in blocks of the codecs that DATA uses."""
    GRAMMAR = 2
    """Text as a grammar."""
    DICTIONARY = 3
    """Like DATA, in blocks that copy from the dictionary of the archive."""


TEXT_KINDS = frozenset({PartKind.TEXT, PartKind.GRAMMAR})


class Inode(NamedTuple):
    """One inode as stored. `mode` includes the file type bits, times are nanoseconds since the epoch, sizes are bytes.

    This is a tuple, not a dataclass, for speed: listing a tree creates one for each entry.
    """

    ino: int
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    nlink: int
    rdev: int = 0
    symlink_target: bytes | None = None


class Generation(NamedTuple):
    """What the index notes of a generation. `time` is in seconds since 1970.

    `command` names the program, its version, and what it did. `num_added` counts entries that are new or replace
    others, `num_removed` names that are gone.
    """

    number: int
    time: int
    num_added: int
    num_removed: int
    command: str
    comment: str


class DirectoryEntry(NamedTuple):
    """A name in a directory and the inode that it refers to."""

    name: bytes
    inode: Inode


class PackedRows(NamedTuple):
    """Rows of the index as columns of text. Each column has one field per row; ',' separates numbers, '/' names.

    Rows are sorted by inode number, starting at `first`. They are complete for inode numbers below `end`; rows of `end`
    and above must be ignored. `is_last` says that no rows follow. The values are not checked.
    """

    first: int
    end: int
    is_last: bool
    columns: tuple[bytes, ...]


class Extent(NamedTuple):
    """`size` bytes of a file at `file_offset` are the bytes at `stream_offset` of the solid stream."""

    file_offset: int
    stream_offset: int
    size: int


class WrittenBlock(NamedTuple):
    """A block that was written to an archive; sizes in bytes."""

    archive_offset: int
    compressed_size: int
    codec: int


class WrittenPart(NamedTuple):
    """A part whose blocks were written to an archive. `size` is that of its content in bytes."""

    kind: PartKind
    size: int
    head: WrittenBlock | None = None


@frozen
class BlockTable:
    """The blocks of a segment or section: parallel columns of archive_offset, compressed_size and uncompressed_size.

    All are in bytes. The columns are integer views of bytes. NumPy accepts them as arrays; reading does not need NumPy.
    """

    archive_offsets: memoryview[int]
    compressed_sizes: memoryview[int]
    uncompressed_sizes: memoryview[int]
    uncompressed_size: int
    """The sum of `uncompressed_sizes`."""

    @property
    def compressed_size(self) -> int:
        """The compressed size of all blocks in bytes."""
        return sum(self.compressed_sizes)

    def __len__(self) -> int:
        return len(self.archive_offsets)


@frozen
class Parts:
    """The parts of a segment, in order: parallel columns. Each part begins with a new block.

    `kinds` has one PartKind for each part, `sizes` its size in bytes, `head_offsets` and `head_sizes` the position of
    its head in the archive. A head size of 0 means that the part has no head.
    """

    kinds: bytes
    sizes: memoryview[int]
    head_offsets: memoryview[int]
    head_sizes: memoryview[int]

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def need_symbols(self) -> bool:
        """Whether some blocks of the parts need a head, or the dictionary of the archive."""
        return PartKind.DICTIONARY in self.kinds or any(self.head_sizes)


class Segment(NamedTuple):
    """The blocks of the solid stream that one pack or add wrote. They are numbered from `first_block` on.

    A segment without bytes has no parts.
    """

    number: int
    first_block: int
    blocks: BlockTable
    codecs: bytes
    """One byte per block: its codec."""
    parts: Parts

    def part_ranges(self, block_size: int) -> Iterator[tuple[int, int]]:
        """Yields the range of the solid stream that each part fills: first offset, and offset after its last byte."""
        begin = self.first_block * block_size
        for size in self.parts.sizes:
            yield begin, begin + size
            begin += -(-size // block_size) * block_size


class Section(NamedTuple):
    """Additional data of a segment, besides its files, in blocks of its own."""

    segment: int
    kind: str
    blocks: BlockTable


def is_dictionary(section: Section) -> bool:
    """Returns whether a section is the dictionary of its archive, which only the first segment can have."""
    return section.kind == DICTIONARY_SECTION and section.segment == 0


class Problem(NamedTuple):
    """A violation of the format in an archive. `ino` is the inode concerned, if there is one."""

    reason: str
    ino: int | None = None


def first_problems(problems: Iterator[Problem]) -> Iterator[Problem]:
    """Yields the first problems of one kind, then one problem with the number of further ones."""
    yield from islice(problems, _MAX_PROBLEMS)
    if more := sum(1 for _ in problems):
        yield Problem(f"{more} more problems of this kind")
