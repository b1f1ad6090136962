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

from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec
from gompfs.gpu.batch import OUTPUT_ALIGNMENT, PAYLOAD_ALIGNMENT, describe, launch, lay_out, slice_ends
from gompfs.gpu.block_source import STAGED, BlockSource, load_heads
from gompfs.gpu.cuda import PADDING
from gompfs.gpu.range_slots import RangeDevice, RangeSlot

if TYPE_CHECKING:
    from gompfs._native.blocks import RangePlan

_UPLOAD_BYTES = 64 << 20


class _Blocks(NamedTuple):
    """Blocks of a slice, in columns: their numbers, the records of their headers, their statuses, and addresses."""

    numbers: NDArray[np.uint64]
    facts: NDArray[np.void]
    statuses: NDArray[np.uint8]
    payloads: NDArray[np.uint64]
    heads: NDArray[np.uint64]
    arriving: NDArray[np.bool_]
    """Which payloads will stay in device memory, once this slice is done."""

    def take(self, order: NDArray[np.intp]) -> _Blocks:
        """Returns the blocks with these indexes, in this order."""
        return _Blocks(
            self.numbers[order], self.facts[order], self.statuses[order], self.payloads[order], self.heads[order],
            self.arriving[order],
        )  # fmt: skip


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
        sizes = self._source.uncompressed_sizes[blocks].astype(np.uint64)
        largest = self._ranges.slice_bytes
        if not self._payloads[blocks].all():
            largest = min(largest, _UPLOAD_BYTES)
        numbers = np.searchsorted(
            slice_ends(int(sizes.sum()), largest), np.cumsum(sizes, dtype=np.uint64) - sizes, side="right"
        )
        return np.split(np.arange(blocks.size), np.flatnonzero(np.diff(numbers)) + 1)

    def _queue(
        self, slot: RangeSlot, plan: RangePlan, indexes: NDArray[np.intp], output: cupy.ndarray, read: RangeRead
    ) -> NDArray[np.intp]:
        """Queues a slice: the blocks of the plan with these indexes.

        Returns those that must be in another slice, because their heads have no space beside those of the others.
        """
        numbers = plan.blocks[indexes]
        symbols = self._source.symbols(numbers)
        heads, statuses = load_heads(self._device.heads, symbols)
        is_left = (symbols.indexes >= 0) & (heads == 0) & (statuses == BlockStatus.OK)
        with slot.stream:
            if is_left.all():
                is_left[:] = False
                blocks = self._decode_on_host(slot, numbers)
            else:
                is_chosen = ~is_left
                blocks = self._load(slot, numbers[is_chosen], heads[is_chosen], statuses[is_chosen])
            self._queue_blocks(slot, plan, indexes[~is_left], blocks, output, read)
        left: NDArray[np.intp] = indexes[is_left]
        return left

    def _load(
        self, slot: RangeSlot, numbers: NDArray[np.uint64], heads: NDArray[np.uint64], of_heads: NDArray[np.uint8]
    ) -> _Blocks:
        """Returns blocks whose payloads are on the device, or on the way there."""
        facts, payloads = self._facts[numbers], self._payloads[numbers]
        arriving = np.zeros(numbers.size, np.bool_)
        absent = np.flatnonzero(payloads == 0)
        if absent.size:
            targets, size = lay_out(self._source.compressed_sizes[numbers[absent]], PAYLOAD_ALIGNMENT)
            pinned = slot.pinned("payloads", size)
            facts[absent] = self._source.stage(numbers[absent], targets, pinned.data)
            kept = self._device.store.reserve(size + PADDING)
            on_device = slot.device("payloads", size + PADDING) if kept is None else kept
            on_device[:size].set(pinned, slot.stream)
            payloads[absent] = targets + np.uint64(on_device.data.ptr + BLOCK_HEADER_SIZE)
            arriving[absent] = (kept is not None) & (facts["status"][absent] == BlockStatus.OK)
        # a block has the status of its head if that is damaged, whatever the block is like
        statuses = np.where(of_heads != BlockStatus.OK, of_heads, facts["status"]).astype(np.uint8)
        return _Blocks(numbers, facts, statuses, payloads, heads, arriving)

    def _decode_on_host(self, slot: RangeSlot, numbers: NDArray[np.uint64]) -> _Blocks:
        """Returns blocks whose heads do not fit on the device, decoded by the host, as if they were stored."""
        facts = np.zeros(numbers.size, STAGED)
        sizes = facts["uncompressed_size"] = self._source.uncompressed_sizes[numbers]
        pinned = slot.pinned("payloads", int(sizes.sum()))
        statuses = np.array(self._source.decode(numbers, pinned.data, verify=self._verify), np.uint8)
        on_device = slot.device("payloads", pinned.size + PADDING)
        on_device[: pinned.size].set(pinned, slot.stream)
        ends = np.cumsum(sizes, dtype=np.uint64)
        payloads = ends - sizes + np.uint64(on_device.data.ptr)
        nothing = np.zeros(numbers.size, np.uint64)
        return _Blocks(numbers, facts, statuses, payloads, nothing, np.zeros(numbers.size, np.bool_))

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
        is_decoded = (blocks.statuses == BlockStatus.OK) & (blocks.facts["codec"] != Codec.STORED)
        decoded = np.flatnonzero(is_decoded)
        decoded = decoded[np.argsort(blocks.facts["codec"][decoded], kind="stable")]
        order = np.concatenate([decoded, np.flatnonzero(~is_decoded)])
        indexes, to_decode, blocks = indexes[order], blocks.take(decoded), blocks.take(order)
        sizes = to_decode.facts["uncompressed_size"]
        offsets, size = lay_out(sizes, OUTPUT_ALIGNMENT) if decoded.size else (np.zeros(0, np.uint64), 0)
        content = slot.device("content", size + PADDING)
        sources = np.concatenate([offsets + np.uint64(content.data.ptr), blocks.payloads[decoded.size :]])
        pieces = self._pieces_of(plan, indexes)
        sizes, checksums = (np.ascontiguousarray(blocks.facts[name]) for name in ("uncompressed_size", "content_xxh3"))
        tasks = describe(to_decode.facts, to_decode.payloads, offsets, to_decode.heads)
        fields, at, statuses, of_blocks, expected, *of_pieces = slot.upload(
            [tasks, sources, blocks.statuses, sizes, checksums, *pieces]
        )
        if decoded.size:
            launch(self._device, to_decode.facts["codec"], fields, content, statuses)
        if self._verify and checksums.any():  # what the host has decoded has none, and was checked there
            self._ranges.kernels.check(at.size, at, of_blocks, expected, statuses)
        self._ranges.kernels.gather(pieces[0].size, at, statuses, *of_pieces, output)

        def take(found: NDArray[np.uint8]) -> None:
            # the kernels leave the statuses of blocks that the host has found to be damaged
            read.statuses[indexes] = found
            numbers = blocks.numbers[blocks.arriving]
            self._payloads[numbers], self._facts[numbers] = (
                blocks.payloads[blocks.arriving], blocks.facts[blocks.arriving],
            )  # fmt: skip

        slot.end_with(statuses, take, has_arriving=bool(blocks.arriving.any()))

    def _pieces_of(self, plan: RangePlan, indexes: NDArray[np.intp]) -> list[NDArray[np.unsignedinteger]]:
        """Returns the pieces of some blocks in columns, as gather_pieces needs them."""
        firsts = plan.first_pieces[indexes].astype(np.int64)
        counts = plan.first_pieces[indexes + 1] - firsts
        of_blocks = np.repeat(np.arange(indexes.size, dtype=np.uint32), counts)
        pieces = np.arange(of_blocks.size) + np.repeat(firsts - (np.cumsum(counts) - counts), counts)
        return [of_blocks, plan.begins[pieces], plan.sizes[pieces], plan.targets[pieces]]
