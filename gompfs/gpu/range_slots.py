"""What a GPU needs to read ranges of files: slots that work on slices of the blocks, and two kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.errors import EngineUnavailableError
from gompfs.gpu.batch import lay_out
from gompfs.gpu.cuda import load_kernel
from gompfs.gpu.device import LEAST_SLICE_BYTES, Device, Slot

if TYPE_CHECKING:
    from gompfs._native.blocks import SliceColumns

_NUM_SLOTS = 6
_SLICE_BYTES = 256 << 20
_SLICES_IN_MEMORY = 64
_COLUMN_ALIGNMENT = 16
_THREADS_PER_CTA = 256


class RangeSlot(Slot):
    """A slot whose work goes on after the call that has queued it."""

    def __init__(self) -> None:
        super().__init__()
        self._done = cupy.cuda.Event(disable_timing=True)
        self._take: Callable[[NDArray[np.uint8]], None] | None = None
        self._num_statuses = 0
        self.has_arriving = False
        """Whether payloads will stay in device memory once the work is complete."""

    def upload(self, columns: Sequence[NDArray[Any]]) -> list[cupy.ndarray]:
        """Queues the copy of columns to device memory, in one piece."""
        offsets, size = lay_out(np.array([column.nbytes for column in columns]), _COLUMN_ALIGNMENT)
        pinned, on_device = self.pinned("columns", size), self.device("columns", size)
        ranges = [slice(start, start + each.nbytes) for start, each in zip(offsets.tolist(), columns, strict=True)]
        for where, column in zip(ranges, columns, strict=True):
            pinned[where] = column.view(np.uint8)
        on_device.set(pinned, self.stream)
        return [on_device[where].view(column.dtype) for where, column in zip(ranges, columns, strict=True)]

    def upload_slice(self, columns: SliceColumns, content: cupy.ndarray) -> list[cupy.ndarray]:
        """Queues the copy of columns to device memory, in one piece. Returns their bytes there, in order.

        Contents will be decoded to `content`.
        """
        pinned, on_device = self.pinned("columns", columns.size), self.device("columns", columns.size)
        columns.write(pinned.data, int(content.data.ptr))
        on_device.set(pinned, self.stream)
        return [on_device[begin:end] for begin, end in columns.bounds]

    def end_with(
        self, statuses: cupy.ndarray, take: Callable[[NDArray[np.uint8]], None], *, has_arriving: bool
    ) -> None:
        """Queues the copy of statuses to the host. `settle` will call `take` with them."""
        statuses.get(self.stream, out=self.pinned("statuses", statuses.size), blocking=False)
        self._done.record(self.stream)
        self._take, self._num_statuses, self.has_arriving = take, statuses.size, has_arriving

    def join(self, stream: cupy.cuda.Stream) -> None:
        """Lets a stream wait for the work of this slot."""
        stream.wait_event(self._done)

    def settle(self) -> None:
        """Waits until the work is complete, so that the memory of this slot can be used again."""
        if self._take is not None:
            self._done.synchronize()
            take, self._take, self.has_arriving = self._take, None, False
            take(self.pinned("statuses", self._num_statuses).copy())


class RangeKernels:
    """The kernels of kernels/reading, for the current device."""

    def __init__(self) -> None:
        self._num_multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]

    @cached_property
    def _gather(self) -> tuple[cupy.cuda.Function, int]:
        return load_kernel("reading/gather_pieces", _THREADS_PER_CTA, 0)

    @cached_property
    def _check(self) -> tuple[cupy.cuda.Function, int]:
        return load_kernel("reading/check_contents", _THREADS_PER_CTA, 0)

    def gather(self, num_pieces: int, *arguments: cupy.ndarray) -> None:
        """Starts gather_pieces on the current stream; `arguments` are those of the kernel before the last."""
        self._launch(self._gather, num_pieces, num_pieces, arguments)

    def check(self, num_blocks: int, *arguments: cupy.ndarray) -> None:
        """Starts check_contents on the current stream; `arguments` are those of the kernel before the last."""
        num_ctas = -(-num_blocks * 32 // _THREADS_PER_CTA)
        self._launch(self._check, num_ctas, num_blocks, arguments)

    def _launch(
        self, compiled: tuple[cupy.cuda.Function, int], num_ctas: int, count: int, arguments: Sequence[cupy.ndarray]
    ) -> None:
        kernel, num_resident = compiled
        grid = min(num_ctas, self._num_multiprocessors * num_resident)
        if grid:
            kernel((grid,), (_THREADS_PER_CTA,), (*arguments, np.uint32(count)))


class RangeDevice:
    """One GPU, as RangeReader uses it. Its slots work beside those of the engine, under the same lock."""

    def __init__(self, device: Device) -> None:
        """Uses `device`, which must be current."""
        self.device = device
        self.slots = [RangeSlot() for _ in range(_NUM_SLOTS)]
        device.slots_beside += self.slots
        self.kernels = RangeKernels()
        free = cupy.cuda.Device().mem_info[0]
        memory = min(free, cupy.get_default_memory_pool().get_limit() or free)
        self.slice_bytes = min(_SLICE_BYTES, max(memory // _SLICES_IN_MEMORY, LEAST_SLICE_BYTES))

    def make_room(self, error: cupy.cuda.memory.OutOfMemoryError) -> None:
        """Frees memory after `error`: halves the slices, down to LEAST_SLICE_BYTES; then drops what stays.

        Raises EngineUnavailableError if that was done before.
        """
        self.device.synchronize()
        if self.slice_bytes > LEAST_SLICE_BYTES:
            self.slice_bytes = max(self.slice_bytes // 2, LEAST_SLICE_BYTES)
        elif self.device.take_back():
            pass
        elif self.device.store.num_bytes:
            self.device.store.clear()
        else:
            raise EngineUnavailableError(f"{self.device.name} has too little free memory") from error
        self.device.release()


def range_device(device: Device) -> RangeDevice:
    """Returns the RangeDevice of a GPU, which all archives share."""
    with device.lock, cupy.cuda.Device(device.number):
        if device.ranges is None:
            device.ranges = RangeDevice(device)
        return device.ranges
