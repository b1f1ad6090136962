"""Access to the bytes of an archive: in a local file, or in anything else that can return ranges of bytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Protocol

from gompfs.errors import ArchiveFormatError


class ArchiveFile(Protocol):
    """The bytes of one archive. Thread-safe. Methods raise OSError."""

    def size(self) -> int:
        """Returns the current size in bytes."""

    def read(self, size: int, archive_offset: int) -> bytes:
        """Returns up to `size` bytes from `archive_offset` on.

        Fewer only if the file ends, or if `size` is above 2 GiB.
        """

    def read_into(self, buffer: memoryview, archive_offset: int) -> int:
        """Read from `archive_offset` on until `buffer` is full, with the limits of `read`.

        Returns the number of bytes.
        """

    def close(self) -> None:
        """Release the file."""


class LocalFile:
    """An archive in a local file. Implements ArchiveFile."""

    def __init__(self, descriptor: int) -> None:
        """Read from `descriptor`, which `close` closes."""
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> LocalFile:
        """Open the file at `path`. Raises OSError, or ArchiveFormatError if it is not a regular file."""
        file = cls(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))  # O_NONBLOCK: do not wait at a FIFO
        mode = os.fstat(file._descriptor).st_mode
        if not stat.S_ISREG(mode):
            file.close()
            kind = "a directory, not an archive" if stat.S_ISDIR(mode) else "not a regular file"
            raise ArchiveFormatError(kind, archive=path)
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
        """Returns a duplicate of the descriptor, which the caller closes."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        """See ArchiveFile.close."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


def read_range(file: ArchiveFile, archive_offset: int, size: int) -> bytes:
    """Returns `size` bytes from `archive_offset` on, fewer only if the file ends."""
    pieces = []
    done = 0
    # One read returns at most 2 GiB.
    while done < size and (piece := file.read(size - done, archive_offset + done)):
        pieces.append(piece)
        done += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def for_native(file: ArchiveFile) -> int | Callable[[int, int], bytes]:
    """Returns what the C++ core reads a file with: a new descriptor, which it closes, or a function (offset, size)."""
    if isinstance(file, LocalFile):
        return file.duplicate()
    return lambda archive_offset, size: file.read(size, archive_offset)
