"""Memory that is used again: the kernel clears fresh memory page by page, which takes as long as decoding into it."""

from __future__ import annotations

import threading
import weakref

import numpy as np
from numpy.typing import NDArray

_UNIT = 1 << 16
_MAX_FREE = 64 << 20


class BufferPool:
    """Lends memory, and takes it back when no view of it is left; safe for any number of threads."""

    def __init__(self) -> None:
        self._free: list[NDArray[np.uint8]] = []
        self._lock = threading.RLock()  # the last view may die inside of allocate

    def allocate(self, size: int) -> memoryview:
        """`size` bytes, of any content."""
        with self._lock:
            fitting = [
                index for index, buffer in enumerate(self._free) if size <= buffer.size <= 2 * max(size, _UNIT)
            ]
            buffer = self._free.pop(fitting[-1]) if fitting else np.empty(-(-size // _UNIT) * _UNIT, np.uint8)
        lent = buffer[:size]
        weakref.finalize(lent, self._take_back, buffer).atexit = False
        return lent.data

    def drop_free(self) -> None:
        """Give free memory back to the system."""
        with self._lock:
            self._free.clear()

    def _take_back(self, buffer: NDArray[np.uint8]) -> None:
        with self._lock:
            if sum(free.size for free in self._free) + buffer.size <= _MAX_FREE:
                self._free.append(buffer)
