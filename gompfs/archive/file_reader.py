"""An open file of an archive, as the builtin `open` would return it: a buffer over a raw file that reads blocks."""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING

from gompfs.archive.archive import Archive
from gompfs.errors import GompfsError, display_path
from gompfs.forks import call_in_child
from gompfs.memory import check_memory_for
from gompfs.model import Inode

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_READ_SIZE = 8 << 20


class FileReader(io.BufferedReader):
    """A buffered open file of an archive. `size` is its size in bytes, `blocksize` that of the archive's blocks."""

    def __init__(self, archive: Archive, inode: Inode, name: str | bytes) -> None:
        """Open a regular file. `name` is its path, for `name` and for messages."""
        self.size = inode.size
        self.blocksize = archive.block_size
        self.path = os.fsdecode(name)  # as the block cache of fsspec calls it
        self._raw = _RawFile(archive, inode, name)
        super().__init__(self._raw, self.blocksize)
        call_in_child(self, FileReader._inherit)

    def _inherit(self) -> None:
        """Called in a child of a fork: replace the buffer, whose lock a thread may have held. The position is kept."""
        try:
            self._raw.seek(self.tell())
        except ValueError:  # it is closed or detached
            return
        super().__init__(self._raw, self.blocksize)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return super().closed

    @closed.setter
    def closed(self, value: bool) -> None:
        """The block cache of fsspec sets it after it has called `close`."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        """Returns a range of the file, as the block cache of fsspec reads it."""
        self.seek(start)
        return self.read(end - start)


class _RawFile(io.RawIOBase):
    """Reads a regular file of an archive, unbuffered."""

    def __init__(self, archive: Archive, inode: Inode, name: str | bytes) -> None:
        self._archive = archive
        self.inode = inode
        self._position = 0
        self.name = name
        self.mode = "rb"

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check_open()
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.inode.size}
        if whence not in starts:
            raise ValueError(f"invalid whence {whence}")
        if starts[whence] + offset < 0:
            raise OSError(errno.EINVAL, "a position before the start of the file")
        self._position = starts[whence] + offset
        return self._position

    def tell(self) -> int:
        self._check_open()
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        self._check_open()
        view = memoryview(buffer).cast("B")
        filled = 0
        for piece in self._read_pieces(len(view)):
            view[filled : filled + len(piece)] = piece
            filled += len(piece)
        self._position += filled
        return filled

    def readall(self) -> bytes:
        self._check_open()
        check_memory_for(2 * (self.inode.size - self._position))  # the pieces are joined
        contents = []
        while pieces := self._read_pieces(_READ_SIZE):
            contents.append(b"".join(pieces))  # join each batch at once: the views keep whole blocks in memory
            self._position += len(contents[-1])
        return contents[0] if len(contents) == 1 else b"".join(contents)

    def _read_pieces(self, size: int) -> list[memoryview]:
        """Returns up to `size` bytes from the current position; nothing at the end of the file."""
        size = min(size, self.inode.size - self._position)
        if size <= 0:
            return []
        if self._archive.is_closed:
            raise ValueError("the archive is closed")
        try:
            return self._archive.read_pieces(self.inode.ino, self._position, size)
        except GompfsError as error:
            error.path = error.path or display_path(self.name)
            raise

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")


def read_file(archive: Archive, inode: Inode, name: str | bytes) -> bytes:
    """Returns the whole content of a regular file. `name` is its path, for messages.

    Raises CorruptBlockError, and MemoryError if it is larger than the free memory.
    """
    with _RawFile(archive, inode, name) as file:
        return file.readall()
