"""A byte buffer that can be read while it is still being written."""

from __future__ import annotations

import os

from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_IN_MEMORY = 1 << 20


class Spool:
    """An append-only byte buffer: the first MiB is in memory, the rest in a temporary file without a name.

    One thread may write while any number of threads read. Raises OSError if the temporary file cannot grow.
    """

    def __init__(self) -> None:
        self._start = bytearray()
        self._file: BinaryIO | None = None
        self.size = 0

    @property
    def has_file(self) -> bool:
        """Whether there is a temporary file."""
        return self._file is not None

    def append(self, piece: bytes) -> None:
        """Append a piece."""
        in_memory = max(_IN_MEMORY - self.size, 0)
        self._start += piece[:in_memory]
        rest = memoryview(piece)[in_memory:]
        if len(rest):
            if self._file is None:
                from gompfs.statistics.temporary_files import temporary_file

                self._file = temporary_file()
            while len(rest):
                rest = rest[self._file.write(rest) :]
        self.size += len(piece)

    def read(self, position: int, size: int) -> bytes:
        """Returns up to `size` bytes from `position` on, fewer at the current end."""
        end = min(position + size, self.size)
        found = bytes(self._start[position : min(end, _IN_MEMORY)])
        position += len(found)
        while position < end and self._file is not None:
            piece = os.pread(self._file.fileno(), end - position, position - _IN_MEMORY)
            if not piece:
                raise OSError("a temporary file is shorter than it was written")
            found += piece
            position += len(piece)
        return found

    def close(self) -> None:
        """Free the buffer."""
        self._start.clear()
        self.size = 0
        if self._file is not None:
            self._file.close()
