"""Access to the bytes of an archive: in a local file, or in anything else that can return ranges of bytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable

from gompfs.errors import ArchiveFormatError
from gompfs.light_types import Protocol


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

    def announce(self, ranges: Iterable[tuple[int, int]], *, are_all: bool = True) -> None:
        """Called before a caller reads ranges (archive_offset, size), in this order and whole: a hint.

        A remote file has them under way when they are read. It does not wait for them. `are_all` says that the caller
        will not go on after them.
        """

    def close(self) -> None:
        """Release the file."""


class LocalFile:
    """An archive in a local file, in which it begins at offset `start`. Implements ArchiveFile."""

    def __init__(self, descriptor: int, start: int = 0) -> None:
        """Read from `descriptor`, which `close` closes."""
        self._descriptor = descriptor
        self.start = start

    @classmethod
    def open(cls, path: str | os.PathLike[str], start: int = 0) -> LocalFile:
        """Open the file at `path`. Raises OSError, or ArchiveFormatError if it is not a regular file, or too small."""
        file = cls(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), start)  # do not wait at a FIFO
        status = os.fstat(file._descriptor)
        if stat.S_ISREG(status.st_mode) and start <= status.st_size:
            return file
        file.close()
        kind = "a directory, not an archive" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        is_small = stat.S_ISREG(status.st_mode)
        raise ArchiveFormatError(f"the file ends before offset {start}" if is_small else kind, archive=path)

    def size(self) -> int:
        """See ArchiveFile.size."""
        return max(os.fstat(self._descriptor).st_size - self.start, 0)

    def read(self, size: int, archive_offset: int) -> bytes:
        """See ArchiveFile.read."""
        return os.pread(self._descriptor, size, self.start + archive_offset)

    def read_into(self, buffer: memoryview, archive_offset: int) -> int:
        """See ArchiveFile.read_into."""
        return os.preadv(self._descriptor, [buffer], self.start + archive_offset)

    def announce(self, ranges: Iterable[tuple[int, int]], *, are_all: bool = True) -> None:
        """See ArchiveFile.announce. The operating system reads ahead by itself."""

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
    if isinstance(file, LocalFile) and not file.start:
        return file.duplicate()
    return lambda archive_offset, size: file.read(size, archive_offset)
