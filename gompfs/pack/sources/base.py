"""What a source hands to the packer: entries, in an order, with their content.

A source is a directory, a single file, a tar stream or a zip archive; the packer sees only `Source` and
`SourceEntry`. The rules that all sources keep:

* Paths are bytes, relative, without `.`, `..` or empty components; `b""` is the root. A directory's entry
  comes before the entries inside it, and `hard_link_to` names an entry that came before.
* A source that is `sorted` yields depth-first, names of a directory in byte order. One that is not (tar, zip)
  yields in archive order, because a tar stream cannot seek; there a path may come again, and the later entry
  replaces the earlier one as `tar -x` would do (a directory keeps its children and takes the new metadata).
  Hard links made to the earlier one keep its content.
* The content of an entry can be read until the next entry is taken from the iterator. Local files may be read
  again and again until then, members of a tar once, from front to back.
* Content has exactly `size` bytes. A file that shrinks while it is read is filled up with zeros, one that
  grows is cut, and both are told in `Source.warnings`. A read may raise UnreadableFileError: the file is left out
  then, and so are its further names.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from gompfs.errors import PackError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["ContentStream", "Source", "SourceEntry"]

DEFAULT_PIECE_SIZE = 1 << 20


@dataclass(slots=True)
class SourceEntry:
    """One entry of a source; sizes in bytes, `mode` with its type bits, times in ns since the epoch.

    `data_ranges` lists the (file_offset, size) that hold data, ascending and disjoint; None means all of
    it. A hard link has `hard_link_to` set and neither metadata of its own that counts nor content.
    `may_be_linked` is False where it is known that no hard link to the entry follows.
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

    @property
    def can_reopen(self) -> bool:
        """Whether the content can be read more than once."""
        return False

    @property
    def has_content(self) -> bool:
        """Whether `open` and `read_all` make sense: a regular file that is not a further name of another."""
        return stat.S_ISREG(self.mode) and self.hard_link_to is None

    def read_at(self, file_offset: int, size: int) -> bytes:
        """`size` bytes from `file_offset`, which lie wholly in the file; holes are zeros.

        Sources override it; here it raises PackError, since only their regular files have content.
        """
        raise PackError("has no content of its own", path=self.path)

    def read_all(self) -> bytes:
        """The whole content (holes are zeros) in one call; the fast way for small files."""
        return self.read_at(0, self.size)

    def open(self) -> BinaryIO:
        """The content as a stream of `size` bytes (holes are zeros); seek only forward in a tar."""
        if not self.has_content:
            raise PackError("has no content of its own", path=self.path)
        return cast(BinaryIO, ContentStream(self.read_at, self.size))

    def read_pieces(self, piece_size: int = DEFAULT_PIECE_SIZE) -> Iterator[tuple[int, bytes]]:
        """Yield (file_offset, data) of all that is no hole, in order, at most `piece_size` bytes each."""
        ranges = [(0, self.size)] if self.data_ranges is None else self.data_ranges
        for file_offset, size in ranges:
            range_end = file_offset + size
            while file_offset < range_end:
                data = self.read_at(file_offset, min(piece_size, range_end - file_offset))
                yield file_offset, data
                file_offset += len(data)


class Source(Protocol):
    """Something to pack.

    `name` is for messages. `total_size` is about how many bytes of content there are, for progress, None
    when unknown (asking a directory walks it). `skip_inodes` takes the (st_dev, st_ino) of files to leave
    out, such as the archive that is being written. `warnings` grows while entries are taken.
    """

    name: str
    sorted: bool
    warnings: list[str]
    skip_inodes: set[tuple[int, int]]

    @property
    def total_size(self) -> int | None:
        """About how many bytes of content the entries have, or None."""

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the entries; raises PackError for what cannot be read."""


class ContentStream(io.RawIOBase):
    """A file object over `read_at(file_offset, size)` of an entry with `size` bytes."""

    def __init__(self, read_at: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._read_at = read_at
        self._size = size
        self._file_offset = 0

    def readable(self) -> bool:
        """Always True."""
        return True

    def seekable(self) -> bool:
        """Always True; a tar member raises PackError from the read after a seek backwards."""
        return True

    def tell(self) -> int:
        """The file_offset of the next read."""
        return self._file_offset

    def seek(self, target: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to another file_offset; nothing is read yet."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._file_offset, io.SEEK_END: self._size}[whence]
        if start + target < 0:
            raise ValueError(f"negative file position {start + target}")
        self._file_offset = start + target
        return self._file_offset

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes (all that is left for -1 or None); only the end of the file makes it shorter."""
        left = max(0, self._size - self._file_offset)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._read_at(self._file_offset, wanted) if wanted else b""
        self._file_offset += len(data)
        return data

    def readall(self) -> bytes:
        """All that is left."""
        return self.read(-1)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill `buffer` as far as the file goes and return the number of bytes."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
