"""Reads ranges of an archive's files into memory of one GPU.

The blocks of a plan (native/blocks/range_plan.h) are cut into slices, which pass through slots. For each slice, blocks
that are not in device memory are read and checked by host threads, straight into pinned memory, while this thread
queues the slices before; then they are copied to the device. There, kernels decode them into memory of the slot, and
move the pieces to the output. Stored blocks need no decoding: their pieces come from the payload. Where payloads may
stay in device memory, the next read of the block only needs its number: the host does nothing for each block but index
arrays.

Everything is queued on the streams of the slots, which wait for the stream of the caller, and which that stream waits
for. The host waits only where a slot is used again that is still at work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
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
_NUM_AHEAD = 2  # slices whose blocks are read while another one is queued


class _Staging(NamedTuple):
    """Blocks of a slice that are not in device memory: their indexes, and their offsets in pinned memory.

    `wait` waits until they were read and checked there, and returns STAGED records.
    """

    absent: NDArray[np.intp]
    targets: NDArray[np.uint64]
    pinned: NDArray[np.uint8]
    wait: Callable[[], NDArray[np.void]]


class _Slice(NamedTuple):
    """Blocks that pass through a slot together: their indexes in the plan, and what is known of each; see STAGED."""

    slot: RangeSlot
    indexes: NDArray[np.intp]
    numbers: NDArray[np.uint64]
    facts: NDArray[np.void]
    payloads: NDArray[np.uint64]
    staging: _Staging | None

    def take(self, chosen: NDArray[np.bool_]) -> _Slice:
        """Returns a slice of some of the blocks. None must be missing."""
        return _Slice(
            self.slot, self.indexes[chosen], self.numbers[chosen], self.facts[chosen], self.payloads[chosen], None
        )


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
        begun: deque[_Slice] = deque()
        used = 0
        try:
            while waiting or begun:
                while waiting and len(begun) <= _NUM_AHEAD:
                    begun.append(self._begin(slots[used % len(slots)], plan, waiting.popleft()))
                    used += 1
                begun[0].slot.stream.wait_event(read.begun)
                left = self._queue(begun[0], plan, output, read)
                if left.size:
                    begun[0].slot.settle()  # payloads that stay in device memory are found there
                    waiting.appendleft(left)
                begun.popleft()
        finally:
            for each in begun:  # threads must not write to a slot after it is reused
                if each.staging is not None:
                    with suppress(OSError):
                        each.staging.wait()
        for slot in slots[:used]:
            slot.join(stream)

    def _find_resident(self) -> None:
        """Finds out which payloads are in device memory now."""
        for slot in self._ranges.slots:
            if slot.has_arriving:
                slot.settle()
        # only then: payloads that were about to arrive may have been dropped, too
        if self._num_cleared != self._device.store.num_cleared:
            self._num_cleared = self._device.store.num_cleared
            self._payloads.fill(0)

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

    def _begin(self, slot: RangeSlot, plan: RangePlan, indexes: NDArray[np.intp]) -> _Slice:
        """Has threads read the blocks of the plan with these indexes whose payloads are not in device memory."""
        slot.settle()
        numbers = plan.blocks.take(indexes)
        facts, payloads = self._facts.take(numbers.view(np.int64)), self._payloads.take(numbers.view(np.int64))
        absent = np.flatnonzero(payloads == 0)
        staging = None
        if absent.size:
            missing = numbers.take(absent)
            targets, size = lay_out(self._source.compressed_sizes.take(missing.view(np.int64)), PAYLOAD_ALIGNMENT)
            pinned = slot.pinned("payloads", size)
            wait = self._source.begin_staging(missing, targets, pinned.data)
            staging = _Staging(absent, targets, pinned, wait)
        return _Slice(slot, indexes, numbers, facts, payloads, staging)

    def _queue(self, each: _Slice, plan: RangePlan, output: cupy.ndarray, read: RangeRead) -> NDArray[np.intp]:
        """Queues a slice.

        Returns the indexes of blocks that must be in another slice, because their heads have no space beside those of
        the others.
        """
        heads, of_heads, is_left = self._heads.load(each.numbers)
        left: NDArray[np.intp] = each.indexes[is_left]
        arriving = None
        with each.slot.stream:
            if 0 < left.size == each.indexes.size:
                left = left[:0]
                each = self._decode_on_host(each)
            else:
                arriving = self._upload(each)
                if left.size:
                    each, heads, of_heads = each.take(~is_left), heads[~is_left], of_heads[~is_left]
            columns = SliceColumns(plan, each.indexes, each.facts.data, of_heads, heads, each.payloads)
            statuses = self._queue_kernels(each.slot, columns, each.indexes.size, output)

            def take(found: NDArray[np.uint8]) -> None:
                # the kernels leave the statuses of blocks that the host has found to be damaged
                if found.any():
                    read.statuses[columns.indexes] = found
                if arriving is not None:
                    numbers, facts, payloads = arriving
                    self._facts.put(numbers, facts)
                    self._payloads.put(numbers, payloads)

            each.slot.end_with(statuses, take, has_arriving=arriving is not None)
        return left

    def _upload(self, each: _Slice) -> tuple[NDArray[np.int64], NDArray[np.void], NDArray[np.uint64]] | None:
        """Queues the copy of staged payloads to the device, and writes to `each` what is then known of them.

        Returns the numbers, facts and payloads of blocks that will stay in device memory, once the slice is done.
        """
        if each.staging is None:
            return None
        absent, targets, pinned, wait = each.staging
        staged = wait()
        kept = self._device.store.reserve(pinned.size + PADDING)
        on_device = each.slot.device("payloads", pinned.size + PADDING) if kept is None else kept
        on_device[: pinned.size].set(pinned, each.slot.stream)
        payloads = targets + np.uint64(on_device.data.ptr + BLOCK_HEADER_SIZE)
        each.facts.put(absent, staged)
        each.payloads.put(absent, payloads)
        if kept is None:
            return None
        sound = np.flatnonzero(staged["status"] == BlockStatus.OK)
        return each.numbers.view(np.int64)[absent[sound]], staged.take(sound), payloads.take(sound)

    def _decode_on_host(self, each: _Slice) -> _Slice:
        """Returns blocks whose heads do not fit on the device, decoded by the host, as if they were stored."""
        slot, numbers = each.slot, each.numbers
        if each.staging is not None:
            each.staging.wait()  # the memory is used again
        facts = np.zeros(numbers.size, STAGED)
        sizes = facts["uncompressed_size"] = self._source.uncompressed_sizes[numbers]
        pinned = slot.pinned("payloads", int(sizes.sum()))
        facts["status"] = self._source.decode(numbers, pinned.data, verify=self._verify)
        on_device = slot.device("payloads", pinned.size + PADDING)
        on_device[: pinned.size].set(pinned, slot.stream)
        payloads = np.cumsum(sizes, dtype=np.uint64) - sizes + np.uint64(on_device.data.ptr)
        return _Slice(slot, each.indexes, numbers, facts, payloads, None)

    def _queue_kernels(
        self, slot: RangeSlot, columns: SliceColumns, num_blocks: int, output: cupy.ndarray
    ) -> cupy.ndarray:
        """Queues the decoding of blocks and the copying of their pieces. Returns the statuses of the blocks."""
        content = slot.device("content", columns.content_size + PADDING)
        fields, sources, statuses, sizes, checksums, *of_pieces = slot.upload_slice(columns, content)
        num_decoded = columns.num_decoded
        if any(num_decoded):
            launch(self._device, num_decoded, fields, content, statuses)
        if self._verify and columns.has_checksums:  # what the host has decoded has none, and was checked there
            self._ranges.kernels.check(num_blocks, sources, sizes, checksums, statuses)
        self._ranges.kernels.gather(columns.num_pieces, sources, statuses, *of_pieces, output)
        return statuses
