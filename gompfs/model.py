"""Plain values that the layers hand to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

ROOT_INO = 1
MAX_TIME_NS = (1 << 63) - 1  # of either sign: what the index holds
GRAMMAR_BUILDERS = ("repair", "sequitur")
WORD_RULES = ("whitespace", "letters")
GRAMMAR_SECTION = "grammar"
NEXT_INO = "next_ino"
MAX_INO = 1 << 62  # above all numbers of inodes
MAX_NAME_SIZE = 255  # bytes, as Linux bounds it; the others likewise
MAX_SYMLINK_TARGET_SIZE = 4095
MAX_XATTR_NAME_SIZE = 255
MAX_XATTR_VALUE_SIZE = 1 << 16
_MAX_PROBLEMS = 100  # of one sort that are told one by one


class Inode(NamedTuple):
    """One inode as stored; `mode` has the file type bits, times are nanoseconds since the epoch, sizes bytes.

    A tuple, and no dataclass: listing a tree makes one for each entry.
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


class DirectoryEntry(NamedTuple):
    """A name in a directory and the inode that it leads to."""

    name: bytes
    inode: Inode


class PackedRows(NamedTuple):
    """Rows of the index as columns of text, with a field for each row; ',' is between numbers, '/' between names.

    They come by inode number, are of `first` and those behind it, and have all there is of those below `end`; rows
    of `end` and above are to be ignored. `is_last` says that nothing comes behind them. Nothing is checked.
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


@dataclass(frozen=True, slots=True)
class BlockPlaces:
    """Where consecutive blocks lie: parallel columns of archive_offset (bytes) and compressed_size (bytes).

    The columns are views of the bytes in the index, as integers: NumPy takes them as arrays, and reading needs none.
    """

    archive_offsets: memoryview[int]
    compressed_sizes: memoryview[int]
    uncompressed_size: int

    @classmethod
    def from_columns(cls, archive_offsets: bytes, compressed_sizes: bytes, uncompressed_size: int) -> BlockPlaces:
        """Columns of u64 and u32 as the index stores them; raises TypeError for others."""
        offsets, sizes = memoryview(archive_offsets).cast("Q"), memoryview(compressed_sizes).cast("I")
        return cls(offsets, sizes, uncompressed_size)

    @property
    def compressed_size(self) -> int:
        """Bytes of all blocks."""
        return sum(self.compressed_sizes)

    def __len__(self) -> int:
        return len(self.archive_offsets)


@dataclass(frozen=True, slots=True)
class Segment:
    """What one pack or add wrote of the solid stream; its blocks are `first_block` and up."""

    number: int
    first_block: int
    places: BlockPlaces
    codecs: bytes
    """The codec of each block, a byte each."""


@dataclass(frozen=True, slots=True)
class Section:
    """Data of a segment beside its files, as blocks of their own."""

    segment: int
    kind: str
    places: BlockPlaces


@dataclass(frozen=True, slots=True)
class Problem:
    """What an archive has and its format rules out; `ino` is the inode that it concerns, if it concerns one."""

    reason: str
    ino: int | None = None


def first_problems(problems: Iterator[Problem]) -> Iterator[Problem]:
    """The first of many problems of one sort, then how many more there are."""
    yield from islice(problems, _MAX_PROBLEMS)
    if more := sum(1 for _ in problems):
        yield Problem(f"{more} more problems like the last one")
