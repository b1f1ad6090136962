"""Where the bytes of an archive are: a local file, or whatever else gives ranges of bytes."""

from __future__ import annotations

import os
import stat
from typing import Protocol

from gompfs.errors import ArchiveFormatError


class ArchiveFile(Protocol):
    """The bytes of one archive. Methods may be called by several threads at once; they raise OSError."""

    def size(self) -> int:
        """How many bytes there are now."""

    def read(self, size: int, archive_offset: int) -> bytes:
        """Up to `size` bytes from `archive_offset` on: fewer only where the file ends, or above 2 GiB."""

    def read_into(self, buffer: memoryview, archive_offset: int) -> int:
        """Read so many bytes as the buffer has room for, to its beginning; likewise. Returns how many came."""

    def close(self) -> None:
        """Let go of the file."""


class LocalFile:
    """An open file descriptor; see ArchiveFile."""

    def __init__(self, descriptor: int) -> None:
        """Read from `descriptor`, which `close` closes."""
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> LocalFile:
        """Open the file at `path`; raises OSError, or ArchiveFormatError for what is no regular file."""
        file = cls(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))  # which does not wait at a FIFO
        if not stat.S_ISREG(os.fstat(file._descriptor).st_mode):
            file.close()
            raise ArchiveFormatError("this is no regular file", archive=path)
        return file

    def size(self) -> int:
        """See ArchiveFile.size."""
        return os.fstat(self._descriptor).st_size

    def read(self, size: int, archive_offset: int) -> bytes:
        """See ArchiveFile.read."""
        return os.pread(self._descriptor, size, archive_offset)

    def read_into(self, buffer: memoryview, archive_offset: int) -> int:
        """See ArchiveFile.read_into."""
        return os.preadv(self._descriptor, [buffer], archive_offset)

    def duplicate(self) -> int:
        """A descriptor of the same file, which the caller closes."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        """See ArchiveFile.close."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
