"""Reads ranges of an archive's files into memory of one GPU.

The blocks of a plan (native/blocks/range_plan.h) are cut into slices, which pass through slots. For each slice, blocks
that are not in device memory are read and checked by host threads, straight into pinned memory, and copied to the
device. There, kernels decode them into memory of the slot, and move the pieces to the output. Stored blocks need no
decoding: their pieces come from the payload. Where payloads may stay in device memory, the next read of the block only
needs its number: the host does nothing for each block but index arrays.

Everything is queued on the streams of the slots, which wait for the stream of the caller, and which that stream waits
for. The host waits only where a slot is used again that is still at work.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native.blocks import SliceColumns
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.gpu.batch import PAYLOAD_ALIGNMENT, launch, lay_out, slice_ends
from gompfs.gpu.block_source import STAGED, BlockSource, KnownHeads
from gompfs.gpu.cuda import PADDING
from gompfs.gpu.range_slots import RangeDevice, RangeSlot

if TYPE_CHECKING:
    from gompfs._native.blocks import RangePlan

_FIRST_SLICE_BYTES = 64 << 20
_UPLOAD_BYTES = 64 << 20
_FIRST_UPLOAD_BYTES = 8 << 20  # small, so that the device starts early


class _Blocks(NamedTuple):
    """Blocks of a slice, in columns: see SliceColumns."""

    numbers: NDArray[np.uint64]
    facts: NDArray[np.void]
    head_statuses: NDArray[np.uint8]
    heads: NDArray[np.uint64]
    payloads: NDArray[np.uint64]
    arriving: NDArray[np.intp]
    """The indexes of those whose payloads will stay in device memory, once this slice is done."""


class RangeRead:
    """A read whose work is queued. `statuses` has a BlockStatus for each block of the plan, once `wait` returns."""

    def __init__(self, device: RangeDevice, num_blocks: int) -> None:
        """The blocks are read by `device`."""
        self._device = device
        self.begun = cupy.cuda.Event(disable_timing=True)
        """Recorded when the holes are zeros, before any block is read."""
        self.statuses = np.zeros(num_blocks, np.uint8)

    def wait(self) -> None:
        """Wait until the output is complete."""
        device = self._device.device
        with device.lock, cupy.cuda.Device(device.number):
            self.begun.synchronize()
            for slot in self._device.slots:
                slot.settle()


class RangeReader:
    """Reads ranges of the files of one archive. Thread-safe."""

    def __init__(self, device: RangeDevice, source: BlockSource, *, verify: bool) -> None:
        """Reads the blocks of `source` by `device`. `verify` also compares decoded bytes with their checksums."""
        self._ranges = device
        self._device = device.device
        self._source = source
        self._verify = verify
        num_blocks = source.uncompressed_sizes.size
        self._facts = np.zeros(num_blocks, STAGED)  # of payloads that stay in device memory
        self._payloads = np.zeros(num_blocks, np.uint64)  # their addresses, 0 for others
        self._num_cleared = self._device.store.num_cleared
        self._heads = KnownHeads(self._device.heads, source)

    def read(self, plan: RangePlan, output: cupy.ndarray, stream: cupy.cuda.Stream) -> RangeRead:
        """Queues a read into `output` (uint8), after what `stream` does, and before what it will do.

        Raises EngineUnavailableError if the device has too little memory.
        """
        with self._device.lock, cupy.cuda.Device(self._device.number):
            while True:
                read = RangeRead(self._ranges, plan.blocks.size)
                try:
                    self._queue_all(plan, output, stream, read)
                    return read
                except cupy.cuda.memory.OutOfMemoryError as error:
                    self._ranges.make_room(error)

    def _queue_all(self, plan: RangePlan, output: cupy.ndarray, stream: cupy.cuda.Stream, read: RangeRead) -> None:
        slots = self._ranges.slots
        self._find_resident()
        with stream:
            targets, sizes = np.split(plan.holes, 2)
            for target, size in zip(targets.tolist(), sizes.tolist(), strict=True):
                output[target : target + size].fill(0)
        read.begun.record(stream)
        waiting = deque(self._cut(plan.blocks))
        used = 0
        while waiting:
            slot = slots[used % len(slots)]
            used += 1
            slot.settle()
            slot.stream.wait_event(read.begun)
            left = self._queue(slot, plan, waiting.popleft(), output, read)
            if left.size:
                waiting.appendleft(left)
        for slot in slots[:used]:
            slot.join(stream)

    def _find_resident(self) -> None:
        """Finds out which payloads are in device memory now."""
        if self._num_cleared != self._device.store.num_cleared:
            self._num_cleared = self._device.store.num_cleared
            self._payloads.fill(0)
        for slot in self._ranges.slots:
            if slot.has_arriving:
                slot.settle()

    def _cut(self, blocks: NDArray[np.uint64]) -> list[NDArray[np.intp]]:
        """Cuts the blocks of a plan into slices: larger ones if all payloads are on the device."""
        if not blocks.size:
            return []
        numbers = blocks.view(np.int64)
        ends = np.cumsum(self._source.uncompressed_sizes.take(numbers), dtype=np.uint64)
        sizes = self._ranges.slice_bytes, _FIRST_SLICE_BYTES
        if not self._payloads.take(numbers).all():
            sizes = min(self._ranges.slice_bytes, _UPLOAD_BYTES), _FIRST_UPLOAD_BYTES
        # a block belongs to the slice that its first byte is in
        bounds = np.searchsorted(ends, slice_ends(int(ends[-1]), *sizes)[:-1]) + 1
        slices = np.split(np.arange(blocks.size), bounds)
        return [indexes for indexes in slices if indexes.size]

    def _queue(
        self, slot: RangeSlot, plan: RangePlan, indexes: NDArray[np.intp], output: cupy.ndarray, read: RangeRead
    ) -> NDArray[np.intp]:
        """Queues a slice: the blocks of the plan with these indexes.

        Returns those that must be in another slice, because their heads have no space beside those of the others.
        """
        numbers = plan.blocks.take(indexes)
        heads, of_heads, is_left = self._heads.load(numbers)
        left: NDArray[np.intp] = indexes[is_left]
        with slot.stream:
            if 0 < left.size == indexes.size:
                left = left[:0]
                blocks = self._decode_on_host(slot, numbers)
            else:
                if left.size:
                    is_chosen = ~is_left
                    numbers, heads, of_heads = numbers[is_chosen], heads[is_chosen], of_heads[is_chosen]
                    indexes = indexes[is_chosen]
                blocks = self._load(slot, numbers, heads, of_heads)
            self._queue_blocks(slot, plan, indexes, blocks, output, read)
        return left

    def _load(
        self, slot: RangeSlot, numbers: NDArray[np.uint64], heads: NDArray[np.uint64], of_heads: NDArray[np.uint8]
    ) -> _Blocks:
        """Returns blocks whose payloads are on the device, or on the way there."""
        indexes = numbers.view(np.int64)
        facts, payloads = self._facts.take(indexes), self._payloads.take(indexes)
        arriving = np.zeros(0, np.intp)
        absent = np.flatnonzero(payloads == 0)
        if absent.size:
            targets, size = lay_out(self._source.compressed_sizes.take(indexes[absent]), PAYLOAD_ALIGNMENT)
            pinned = slot.pinned("payloads", size)
            staged = self._source.stage(numbers[absent], targets, pinned.data)
            facts.put(absent, staged)
            kept = self._device.store.reserve(size + PADDING)
            on_device = slot.device("payloads", size + PADDING) if kept is None else kept
            on_device[:size].set(pinned, slot.stream)
            payloads[absent] = targets + np.uint64(on_device.data.ptr + BLOCK_HEADER_SIZE)
            if kept is not None:
                arriving = absent[staged["status"] == BlockStatus.OK]
        return _Blocks(numbers, facts, of_heads, heads, payloads, arriving)

    def _decode_on_host(self, slot: RangeSlot, numbers: NDArray[np.uint64]) -> _Blocks:
        """Returns blocks whose heads do not fit on the device, decoded by the host, as if they were stored."""
        facts = np.zeros(numbers.size, STAGED)
        sizes = facts["uncompressed_size"] = self._source.uncompressed_sizes[numbers]
        pinned = slot.pinned("payloads", int(sizes.sum()))
        facts["status"] = self._source.decode(numbers, pinned.data, verify=self._verify)
        on_device = slot.device("payloads", pinned.size + PADDING)
        on_device[: pinned.size].set(pinned, slot.stream)
        ends = np.cumsum(sizes, dtype=np.uint64)
        payloads = ends - sizes + np.uint64(on_device.data.ptr)
        nothing = np.zeros(numbers.size, np.uint64)
        return _Blocks(numbers, facts, nothing.astype(np.uint8), nothing, payloads, np.zeros(0, np.intp))

    def _queue_blocks(
        self,
        slot: RangeSlot,
        plan: RangePlan,
        indexes: NDArray[np.intp],
        blocks: _Blocks,
        output: cupy.ndarray,
        read: RangeRead,
    ) -> None:
        """Queues the decoding of blocks and the copying of their pieces."""
        numbers, facts, head_statuses, heads, payloads, arriving = blocks
        columns = SliceColumns(plan, indexes, facts.data, head_statuses, heads, payloads)
        content = slot.device("content", columns.content_size + PADDING)
        fields, sources, statuses, sizes, checksums, *of_pieces = slot.upload_slice(columns, content)
        num_decoded = columns.num_decoded
        if any(num_decoded):
            launch(self._device, num_decoded, fields, content, statuses)
        if self._verify and columns.has_checksums:  # what the host has decoded has none, and was checked there
            self._ranges.kernels.check(indexes.size, sources, sizes, checksums, statuses)
        self._ranges.kernels.gather(columns.num_pieces, sources, statuses, *of_pieces, output)

        def take(found: NDArray[np.uint8]) -> None:
            # the kernels leave the statuses of blocks that the host has found to be damaged
            if found.any():
                read.statuses[columns.indexes] = found
            if arriving.size:
                arrived = numbers.view(np.int64)[arriving]
                self._facts.put(arrived, facts.take(arriving))
                self._payloads.put(arrived, payloads.take(arriving))

        slot.end_with(statuses, take, has_arriving=bool(arriving.size))
