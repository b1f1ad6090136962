"""The interface between sources and the packer: entries with their content.

A source is a directory, a single file, a tar stream or a zip archive; the packer sees only `Source` and
`SourceEntry`. All sources follow these rules:

* Paths are bytes, relative, without `.`, `..` or empty components; `b""` is the root. A directory's entry
  comes before the entries inside it, and `hard_link_to` names an earlier entry.
* `items` yields the same entries, but may yield a FileRun for files that follow each other in a directory.
* A source that is `sorted` yields entries depth first, the names of a directory in byte order; directories that are
  versions of each other are walked side by side (versions.py). Others (tar, zip) yield entries in archive order,
  because a tar stream cannot seek. There a path may occur again; the later entry replaces the earlier one as in
  `tar -x` (a directory keeps its children and takes the new metadata). Hard links to the earlier entry keep its
  content.
* The content of an entry can be read until the next entry is taken from the iterator: repeatedly for local files,
  once and forward for members of a tar.
* Content has exactly `size` bytes. A file that shrinks while it is read is padded with zeros, one that grows is
  truncated; both add to `Source.warnings`. A read may raise UnreadableFileError; the file and its other names are
  then left out.
* After `skip_unchanged`, an entry may have `archived_ino` set. It then has no content that can be read.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, cast

from gompfs.errors import PackError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from gompfs.pack.sources.file_run import FileRun

__all__ = ["ArchivedFile", "ContentStream", "FindArchived", "Source", "SourceEntry", "fill"]

DEFAULT_PIECE_SIZE = 1 << 20


@dataclass(slots=True)
class SourceEntry:
    """One entry of a source. Sizes in bytes, `mode` with type bits, times in ns since the epoch.

    `data_ranges` lists the (file_offset, size) of the ranges that hold data, ascending and disjoint; None means the
    whole file. If `hard_link_to` is set, the entry has no content, and its own metadata are ignored. `may_be_linked` is
    False if no hard link to the entry follows. `sha256` is the hash of the whole content if the source knows it.
    `archived_ino` is the inode number of the file of the archive whose content the entry has, as far as its size and
    time say, if the source did not read it.
    """

    path: bytes
    mode: int
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    size: int = 0
    rdev: int = 0
    symlink_target: bytes | None = None
    hard_link_to: bytes | None = None
    xattrs: dict[bytes, bytes] = field(default_factory=dict)
    data_ranges: list[tuple[int, int]] | None = None
    may_be_linked: bool = True
    sha256: bytes | None = None
    archived_ino: int | None = None

    @property
    def can_reopen(self) -> bool:
        """Whether the content can be read more than once."""
        return False

    @property
    def has_content(self) -> bool:
        """Whether the entry is a regular file and not a hard link, so that `open` and `read_all` can be used."""
        return stat.S_ISREG(self.mode) and self.hard_link_to is None

    def read_at(self, file_offset: int, size: int) -> bytes:
        """Returns `size` bytes from `file_offset` on. The range must lie inside the file. Holes are zeros.

        Sources with content override this method. Here it raises PackError.
        """
        raise PackError("has no content of its own", path=self.path)

    def read_all(self) -> bytes | memoryview:
        """Returns the whole content in one call, which is fast for small files. Holes are zeros."""
        return self.read_at(0, self.size)

    def open(self) -> BinaryIO:
        """Returns the content as a stream of `size` bytes. Holes are zeros. A member of a tar can only seek forward."""
        if not self.has_content:
            raise PackError("has no content of its own", path=self.path)
        return cast(BinaryIO, ContentStream(self.read_at, self.size))

    def read_pieces(self, piece_size: int = DEFAULT_PIECE_SIZE) -> Iterator[tuple[int, bytes]]:
        """Yield (file_offset, data) of all data ranges in order, at most `piece_size` bytes each."""
        ranges = [(0, self.size)] if self.data_ranges is None else self.data_ranges
        for file_offset, size in ranges:
            range_end = file_offset + size
            while file_offset < range_end:
                data = self.read_at(file_offset, min(piece_size, range_end - file_offset))
                yield file_offset, data
                file_offset += len(data)


class ArchivedFile(NamedTuple):
    """A regular file of the archive that is added to. The size is in bytes, the time in ns since the epoch."""

    size: int
    mtime_ns: int
    ino: int


FindArchived = Callable[[bytes], dict[bytes, ArchivedFile]]
"""Returns the regular files that the archive has in the directory of a path, by name."""


class Source(Protocol):
    """A source of entries to pack.

    `name` is for messages. `total_size` is the approximate size of the content in bytes, for progress, or None if
    unknown; for a directory, its first use walks the tree. `skip_inodes` holds the (st_dev, st_ino) of files to leave
    out, such as the archive that is being written. `warnings` grows while entries are taken.
    """

    name: str
    sorted: bool
    warnings: list[str]
    skip_inodes: set[tuple[int, int]]

    @property
    def total_size(self) -> int | None:
        """The approximate size of the content of all entries in bytes, or None if unknown."""

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the entries. Raises PackError for an entry that cannot be read."""

    def items(self) -> Iterator[SourceEntry | FileRun]:
        """Yield the entries, some of them in runs."""
        return self.entries()

    def skip_unchanged(self, find: FindArchived) -> None:
        """Take files as unchanged, and do not read them, if the archive has files of their paths, sizes and times.

        Only sources of local files do: members of a tar or a zip may have times of whole or even seconds.
        """
        return


class ContentStream(io.RawIOBase):
    """A file object over the methods of an entry with `size` bytes.

    `read_at` returns the bytes at a file_offset. `read_into` writes them to memory and returns their number, at least
    one; that is faster for many bytes. Neither is asked for bytes after the end of the file.
    """

    def __init__(
        self, read_at: Callable[[int, int], bytes], size: int, read_into: Callable[[int, memoryview], int] | None = None
    ) -> None:
        super().__init__()
        self._read_at = read_at
        self._read_into = read_into
        self._size = size
        self._file_offset = 0

    def readable(self) -> bool:
        """Always True."""
        return True

    def seekable(self) -> bool:
        """Always True. In a tar member, the read after a seek backwards raises PackError."""
        return True

    def tell(self) -> int:
        """Returns the file_offset of the next read."""
        return self._file_offset

    def seek(self, target: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the file_offset of the next read, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._file_offset, io.SEEK_END: self._size}[whence]
        if start + target < 0:
            raise ValueError(f"negative file position {start + target}")
        self._file_offset = start + target
        return self._file_offset

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns up to `size` bytes, or the rest for -1 or None. Fewer only at the end of the file."""
        left = max(0, self._size - self._file_offset)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._read_at(self._file_offset, wanted) if wanted else b""
        self._file_offset += len(data)
        return data

    def readall(self) -> bytes:
        """Returns the rest of the file."""
        return self.read(-1)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Write the next bytes to `buffer`, at least one before the end of the file. Returns their number."""
        view = memoryview(buffer).cast("B")[: max(0, self._size - self._file_offset)]
        if not view:
            return 0
        if self._read_into is not None:
            count = self._read_into(self._file_offset, view)
        else:
            data = self._read_at(self._file_offset, min(len(view), DEFAULT_PIECE_SIZE))
            count = len(data)
            view[:count] = data
        self._file_offset += count
        return count


def fill(file: BinaryIO, memory: memoryview) -> int:
    """Reads from `file` until `memory` is full or the file ends. Returns the number of bytes."""
    count = 0
    while count < len(memory) and (more := cast(io.RawIOBase, file).readinto(memory[count:])):
        count += more
    return count
