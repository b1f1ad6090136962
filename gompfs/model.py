"""Plain values that the layers hand to each other."""

from __future__ import annotations

from dataclasses import dataclass

ROOT_INO = 1


@dataclass(frozen=True, slots=True)
class Inode:
    """One inode as stored; `mode` has the file type bits, times are nanoseconds since the epoch, sizes bytes."""

    ino: int
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    nlink: int
    rdev: int = 0
    symlink_target: bytes | None = None


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A name in a directory; `type_bits` are those of `mode` (S_IFMT)."""

    name: bytes
    ino: int
    type_bits: int


@dataclass(frozen=True, slots=True)
class Extent:
    """`size` bytes of a file at `file_offset` are the bytes at `stream_offset` of the solid stream."""

    file_offset: int
    stream_offset: int
    size: int
