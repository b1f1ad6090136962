"""Copies between a GPU and memory of the host that is not pinned, in pieces that pass through pinned memory.

The driver would do that with one thread, for a fraction of the speed of the bus. Here, all threads of the host copy one
piece, while the device copies from or to another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.cuda import pinned_array
from gompfs.gpu.device.host_copy import copy_bytes
from gompfs.threads import default_threads

_PIECE_BYTES = 8 << 20
_NUM_PIECES = 3

_Bytes = NDArray[np.uint8]


class Staging:
    """The pinned memory of one device, allocated when it is first used. For one thread at a time."""

    def __init__(self) -> None:
        self._pieces: list[_Bytes] = []

    def upload(self, source: _Bytes, target: cupy.ndarray) -> None:
        """Copies bytes to the current device, on the current stream. Waits until that is done."""
        num_threads = default_threads()

        def begin(where: slice, pinned: _Bytes, stream: cupy.cuda.Stream) -> None:
            copy_bytes(source[where].data, pinned.data, num_threads)
            target[where].set(pinned, stream)

        self._pass(source.size, begin, lambda _where, _pinned: None)

    def download(self, source: cupy.ndarray, target: _Bytes) -> None:
        """Copies bytes from the current device, after the work of the current stream. Waits until that is done."""
        num_threads = default_threads()

        def begin(where: slice, pinned: _Bytes, stream: cupy.cuda.Stream) -> None:
            source[where].get(stream, out=pinned, blocking=False)

        def end(where: slice, pinned: _Bytes) -> None:
            copy_bytes(pinned.data, target[where].data, num_threads)

        self._pass(source.size, begin, end)

    def _pass(
        self,
        size: int,
        begin: Callable[[slice, _Bytes, cupy.cuda.Stream], None],
        end: Callable[[slice, _Bytes], None],
    ) -> None:
        """Calls `begin` for each piece, which queues a copy of the device, and `end` when that copy is complete."""
        stream = cupy.cuda.get_current_stream()
        self._pieces = self._pieces or [pinned_array(_PIECE_BYTES) for _ in range(_NUM_PIECES)]
        free = deque(self._pieces)
        running: deque[tuple[slice, _Bytes, cupy.cuda.Event]] = deque()

        def settle() -> None:
            where, piece, done = running.popleft()
            done.synchronize()
            end(where, piece[: where.stop - where.start])
            free.append(piece)

        for first in range(0, size, _PIECE_BYTES):
            if not free:
                settle()
            where, piece = slice(first, min(first + _PIECE_BYTES, size)), free.popleft()
            begin(where, piece[: where.stop - where.start], stream)
            done = cupy.cuda.Event(disable_timing=True)
            done.record(stream)
            running.append((where, piece, done))
        while running:
            settle()
