"""Slots: a stream of a device, and the memory of one slice of a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.slot import Slot

if TYPE_CHECKING:
    from gompfs._native.blocks import SliceColumns
    from gompfs.gpu.decode.block_source import BlockSource


_STATUSES = 2  # a number of Column in native/blocks/slice_columns.h


class Arriving(NamedTuple):
    """Payloads of blocks from `first` to `last` of a source, perhaps with gaps."""

    source: BlockSource
    first: int
    last: int

    def may_have(self, source: BlockSource, numbers: NDArray[np.uint64]) -> bool:
        """Returns whether the blocks may include one of `numbers`, which ascend."""
        return self.source is source and self.first <= int(numbers[-1]) and int(numbers[0]) <= self.last


class DecodeSlot(Slot):
    """A slot whose work goes on after the call that has queued it."""

    def __init__(self) -> None:
        super().__init__()
        # `block`: a thread that waits leaves its core to others
        self._done = cupy.cuda.Event(block=True, disable_timing=True)
        self._take: Callable[[NDArray[np.uint8]], None] | None = None
        self._num_statuses = 0
        self.arriving: Arriving | None = None
        """The payloads that will stay in device memory after the work is complete."""

    def upload_columns(
        self, columns: SliceColumns, content: cupy.ndarray, base: int
    ) -> tuple[list[np.uint64], cupy.ndarray]:
        """Queues the copy of columns to device memory, in one piece.

        Returns the addresses of the columns on the device, and an array of the statuses. (Arrays of all columns would
        take longer to make.) Contents will be decoded to `content`. See SliceColumns.write for `base`.
        """
        pinned, on_device = self.pinned("columns", columns.size), self.device("columns", columns.size)
        columns.write(pinned.data, int(content.data.ptr), base)
        on_device.set(pinned, self.stream)
        start, bounds = int(on_device.data.ptr), columns.bounds
        return [np.uint64(start + begin) for begin, _ in bounds], on_device[slice(*bounds[_STATUSES])]

    def end_with(
        self, statuses: cupy.ndarray, take: Callable[[NDArray[np.uint8]], None], arriving: Arriving | None
    ) -> None:
        """Queues the copy of statuses to the host. `settle` will call `take` with them."""
        statuses.get(self.stream, out=self.pinned("statuses", statuses.size), blocking=False)
        self._done.record(self.stream)
        self._take, self._num_statuses, self.arriving = take, statuses.size, arriving

    def join(self, stream: cupy.cuda.Stream) -> None:
        """Lets a stream wait for the work of this slot."""
        stream.wait_event(self._done)

    def settle(self) -> None:
        """Waits until the work is complete, so that the memory of this slot can be used again."""
        if self._take is not None:
            self._done.synchronize()
            take, self._take, self.arriving = self._take, None, None
            take(self.pinned("statuses", self._num_statuses).copy())
