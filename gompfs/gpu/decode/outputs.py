"""The outputs of a PlanDecoder: an array on the device, or memory of the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native.gpu import copy_runs
from gompfs.gpu.decode.slots import DecodeSlot
from gompfs.gpu.device.cuda import PADDING, clear, is_pinned

_HOST_SLICE_BYTES = 64 << 20  # the host takes as long to queue 32 MiB as the device to copy them
_COPIED_SLICE_BYTES = 32 << 20  # each slot has pinned memory for one
_FIRST_UPLOAD_BYTES = 8 << 20  # small, so that the device starts early
_UPLOAD_BYTES = 64 << 20
_FIRST_SLICE_BYTES = 64 << 20


class Output(Protocol):
    """Memory that receives the contents. The plan says at which target each piece begins."""

    in_place: bool
    """Whether blocks are decoded to their targets: each is one piece, at a multiple of 32 bytes."""

    def slice_sizes(self, most: int, *, has_absent: bool) -> tuple[int, int]:
        """Returns the size of a slice (at most `most`) and the size of the first slice, in bytes of contents.

        `has_absent` says whether some payloads are not in device memory.
        """

    def begin(self, stream: cupy.cuda.Stream) -> None:
        """Queues what must be done before any block is decoded."""

    def memory(self, slot: DecodeSlot, indexes: NDArray[np.intp]) -> tuple[cupy.ndarray, int]:
        """Returns device memory for blocks of the plan, and the target at which it begins."""

    def fetch(self, slot: DecodeSlot, indexes: NDArray[np.intp]) -> Callable[[], None] | None:
        """Queues what must be done once the memory has the contents. Returns what to call when that is complete."""


class DeviceOutput:
    """See Output: an array on the device (uint8)."""

    def __init__(self, array: cupy.ndarray, *, in_place: bool, holes: Sequence[tuple[int, int]] = ()) -> None:
        """`holes` are filled with zeros: targets and sizes.

        If blocks are decoded in place, PADDING bytes of the array after the last one may be read.
        """
        self.in_place = in_place
        self._array = array
        self._holes = holes

    def slice_sizes(self, most: int, *, has_absent: bool) -> tuple[int, int]:
        """See Output.slice_sizes."""
        if has_absent:
            return min(most, _UPLOAD_BYTES), _FIRST_UPLOAD_BYTES
        return most, _FIRST_SLICE_BYTES

    def begin(self, stream: cupy.cuda.Stream) -> None:
        """See Output.begin."""
        with stream:
            for target, size in self._holes:
                clear(self._array[target : target + size])

    def memory(self, slot: DecodeSlot, indexes: NDArray[np.intp]) -> tuple[cupy.ndarray, int]:
        """See Output.memory."""
        return self._array, 0

    def fetch(self, slot: DecodeSlot, indexes: NDArray[np.intp]) -> None:
        """See Output.fetch. The contents are where they should be."""


class HostOutput:
    """See Output: memory of the host, which gets the contents slice by slice.

    Copies go straight there if the memory is pinned. Otherwise they go to pinned memory of the slot, from where threads
    of the host copy them.
    """

    in_place = True

    def __init__(
        self, out: memoryview, offsets: NDArray[np.uint64], sizes: NDArray[np.unsignedinteger],
        targets: NDArray[np.uint64], num_threads: int,
    ) -> None:  # fmt: skip
        """Block i of the plan, whose target is `targets[i]`, has `sizes[i]` bytes, which belong at `offsets[i]`."""
        self._out = out
        self._offsets = offsets
        self._sizes = sizes.astype(np.uint64)
        self._targets = targets
        self._num_threads = num_threads
        self._array = np.frombuffer(out, np.uint8)
        self._is_direct = is_pinned(self._array)

    def slice_sizes(self, most: int, *, has_absent: bool) -> tuple[int, int]:
        """See Output.slice_sizes."""
        return min(most, _HOST_SLICE_BYTES if self._is_direct else _COPIED_SLICE_BYTES), _FIRST_UPLOAD_BYTES

    def begin(self, stream: cupy.cuda.Stream) -> None:
        """See Output.begin."""

    def memory(self, slot: DecodeSlot, indexes: NDArray[np.intp]) -> tuple[cupy.ndarray, int]:
        """See Output.memory."""
        base, end = self._bounds(indexes)
        return slot.device("output", end - base + PADDING), base

    def fetch(self, slot: DecodeSlot, indexes: NDArray[np.intp]) -> Callable[[], None] | None:
        """See Output.fetch."""
        base, end = self._bounds(indexes)
        if base == end:
            return None
        output = slot.device("output", end - base + PADDING)
        runs = self._runs(indexes, base)
        if self._is_direct:
            for first, offset, size in zip(*(column.tolist() for column in runs), strict=True):
                output[first : first + size].get(slot.stream, out=self._array[offset : offset + size], blocking=False)
            return None
        pinned = slot.pinned("output", end - base)
        output[: end - base].get(slot.stream, out=pinned, blocking=False)
        return lambda: copy_runs(pinned.data, self._out, *runs, self._num_threads)

    def _bounds(self, indexes: NDArray[np.intp]) -> tuple[int, int]:
        """Returns the target of the first block in `indexes`, and the end of the last block."""
        return int(self._targets[indexes[0]]), int(self._targets[indexes[-1]] + self._sizes[indexes[-1]])

    def _runs(
        self, indexes: NDArray[np.intp], base: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Returns runs of successive blocks of the plan that have the same distances on the device and on the host.

        What lies between them, which belongs to no block, is copied, too. Columns in bytes: the offsets of the runs
        after `base`, their offsets on the host, and their sizes.
        """
        starts, offsets, sizes = self._targets[indexes] - np.uint64(base), self._offsets[indexes], self._sizes[indexes]
        breaks = np.flatnonzero((np.diff(indexes) != 1) | (np.diff(starts) != np.diff(offsets)))
        firsts, lasts = np.append(0, breaks + 1), np.append(breaks, sizes.size - 1)
        return starts[firsts], offsets[firsts], starts[lasts] + sizes[lasts] - starts[firsts]
