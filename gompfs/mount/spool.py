"""A text that is read while it is still being written."""

from __future__ import annotations

import os
from typing import BinaryIO

_IN_MEMORY = 1 << 20


class Spool:
    """Bytes that grow at their end: the first MiB in memory, more in a file without a name.

    One thread may write while any number read. Raises OSError where there is no room.
    """

    def __init__(self) -> None:
        self._start = bytearray()
        self._file: BinaryIO | None = None
        self.size = 0

    def append(self, piece: bytes) -> None:
        """Write a piece at the end."""
        in_memory = max(_IN_MEMORY - self.size, 0)
        self._start += piece[:in_memory]
        rest = memoryview(piece)[in_memory:]
        if len(rest):
            if self._file is None:
                from gompfs.analytics.temporary_files import temporary_file

                self._file = temporary_file()
            while len(rest):
                rest = rest[self._file.write(rest) :]
        self.size += len(piece)

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from a position on; fewer at the present end."""
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
        """Let go of the bytes."""
        self._start.clear()
        self.size = 0
        if self._file is not None:
            self._file.close()
