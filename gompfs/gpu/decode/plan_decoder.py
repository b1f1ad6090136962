"""Decodes the blocks of a plan on one GPU: the one way in which blocks are decoded on a device.

A plan names blocks of a source, and says which of their pieces go where in an output (native/blocks/block_pieces.h):
ranges of files for `read_many`, whole blocks for searches and for memory of the host. The blocks are cut into slices,
which pass through the slots of the device. For each slice, blocks whose payloads are not in device memory are read and
checked by host threads, straight into pinned memory, while this thread queues the slices before; then they are copied
to the device. There, kernels decode them into memory of the slot, and move the pieces to the output; or they decode
them to their targets in the output. Stored blocks need no decoding: their pieces come from the payload. Finally the
output (outputs.py) copies contents that belong in memory of the host.

If a payload stays in device memory, the next read of its block only needs the number of the block: the host only
indexes arrays.

All work is queued on the streams of the slots. They wait for the stream of the caller, and then that stream waits for
them. The host waits only for a slot that it needs again and that is still at work.
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
from gompfs.codec.headers import FACTS
from gompfs.gpu.decode.block_source import BlockSource, KnownHeads
from gompfs.gpu.decode.layout import PAYLOAD_ALIGNMENT, lay_out, slice_ends
from gompfs.gpu.decode.slots import Arriving
from gompfs.gpu.device.cuda import PADDING

if TYPE_CHECKING:
    from gompfs._native.blocks import RangePlan, WholeBlocks
    from gompfs.gpu.decode.device import Device
    from gompfs.gpu.decode.outputs import Output
    from gompfs.gpu.decode.slots import DecodeSlot

_NUM_AHEAD = 2  # slices whose blocks are read while another one is queued


class _Staging(NamedTuple):
    """Blocks of a slice that are not in device memory: their indexes, and their offsets in pinned memory.

    `wait` waits until they were read and checked there, and returns FACTS records.
    """

    absent: NDArray[np.intp]
    targets: NDArray[np.uint64]
    pinned: NDArray[np.uint8]
    wait: Callable[[], NDArray[np.void]]


class _Slice(NamedTuple):
    """Blocks that pass through a slot together: their indexes in the plan, and the known facts of each; see FACTS."""

    slot: DecodeSlot
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


class _Kept(NamedTuple):
    """Payloads that will stay in device memory: the numbers, facts and addresses of their blocks.

    `num_cleared` is PayloadStore.num_cleared at the time when the payloads got their memory.
    """

    num_cleared: int
    numbers: NDArray[np.int64]
    facts: NDArray[np.void]
    payloads: NDArray[np.uint64]


class Decoding:
    """Work that is queued. `statuses` has a BlockStatus for each block of the plan, once `wait` returns."""

    def __init__(self, device: Device, num_blocks: int) -> None:
        """The blocks are decoded by `device`."""
        self._device = device
        self.begun = cupy.cuda.Event(block=True, disable_timing=True)
        """Recorded before any block is decoded."""
        self.statuses = np.zeros(num_blocks, np.uint8)
        self.num_on_host = self.bytes_on_host = 0
        """How much the host has decoded, because heads do not fit on the device: blocks, and bytes of contents."""

    def wait(self) -> None:
        """Wait until the output is complete."""
        device = self._device
        with device.lock, cupy.cuda.Device(device.number):
            self.begun.synchronize()
            device.settle()


class PlanDecoder:
    """Decodes blocks of one source on one device. Thread-safe."""

    def __init__(self, device: Device, source: BlockSource, *, verify: bool = False) -> None:
        """`verify` also compares decoded bytes with their checksums."""
        self.device = device
        self.source = source
        self._verify = verify
        num_blocks = source.uncompressed_sizes.size
        self._facts = np.zeros(num_blocks, FACTS)  # of payloads that stay in device memory
        self._payloads = np.zeros(num_blocks, np.uint64)  # their addresses, 0 for others
        self._num_cleared = device.store.num_cleared
        self._heads = KnownHeads(device.heads, source)

    def decode(
        self, plan: RangePlan | WholeBlocks, blocks: NDArray[np.uint64], output: Output, stream: cupy.cuda.Stream
    ) -> Decoding:
        """Queues the decoding of the blocks of a plan, after the earlier work of `stream` and before its later work.

        `blocks` are their numbers in the source, ascending. Raises EngineUnavailableError if the device has too little
        memory.
        """
        device = self.device
        pool = cupy.get_default_memory_pool()  # slots and stores live longer than the arrays of a caller
        with device.lock, cupy.cuda.Device(device.number), cupy.cuda.using_allocator(pool.malloc):
            while True:
                decoding = Decoding(device, blocks.size)
                try:
                    self._queue_all(plan, blocks, output, stream, decoding)
                    return decoding
                except cupy.cuda.memory.OutOfMemoryError as error:
                    device.settle()
                    device.make_room(error)
                except BaseException:
                    device.settle()  # nothing is written to the output after this call
                    raise

    def _queue_all(
        self,
        plan: RangePlan | WholeBlocks,
        blocks: NDArray[np.uint64],
        output: Output,
        stream: cupy.cuda.Stream,
        decoding: Decoding,
    ) -> None:
        self._find_resident(blocks)
        output.begin(stream)
        decoding.begun.record(stream)
        waiting = deque(self._cut(blocks, output))
        begun: deque[_Slice] = deque()
        used: dict[DecodeSlot, None] = {}
        try:
            while waiting or begun:
                while waiting and len(begun) <= _NUM_AHEAD:
                    slot = next(self.device.turns)
                    used[slot] = None
                    begun.append(self._begin(slot, blocks, waiting.popleft()))
                begun[0].slot.stream.wait_event(decoding.begun)
                left = self._queue(begun[0], plan, output, decoding)
                if left.size:
                    begun[0].slot.settle()  # payloads that stay in device memory are found there
                    waiting.appendleft(left)
                begun.popleft()
        finally:
            for each in begun:  # threads must not write to a slot after it is reused
                if each.staging is not None:
                    with suppress(OSError):
                        each.staging.wait()
        for slot in used:
            slot.join(stream)

    def _find_resident(self, blocks: NDArray[np.uint64]) -> None:
        """Finds out which payloads that this decoder has found or uploaded are in device memory now."""
        store = self.device.store
        for slot in self.device.slots:
            if slot.arriving is not None and blocks.size and slot.arriving.may_have(self.source, blocks):
                slot.settle()
        if self._num_cleared != store.num_cleared:
            self._num_cleared = store.num_cleared
            self._payloads.fill(0)

    def _cut(self, blocks: NDArray[np.uint64], output: Output) -> list[NDArray[np.intp]]:
        """Cuts the blocks of a plan into slices: larger ones if all payloads are on the device."""
        if not blocks.size:
            return []
        numbers = blocks.view(np.int64)
        ends = np.cumsum(self.source.uncompressed_sizes.take(numbers), dtype=np.uint64)
        has_absent = not self._payloads.take(numbers).all()
        sizes = output.slice_sizes(self.device.slice_bytes, has_absent=has_absent)
        # a block belongs to the slice that its first byte is in
        bounds = np.searchsorted(ends, slice_ends(int(ends[-1]), *sizes)[:-1]) + 1
        slices = np.split(np.arange(blocks.size), bounds)
        return [indexes for indexes in slices if indexes.size]

    def _begin(self, slot: DecodeSlot, blocks: NDArray[np.uint64], indexes: NDArray[np.intp]) -> _Slice:
        """Has threads read the blocks of the plan with these indexes whose payloads are not in device memory."""
        slot.settle()
        numbers = blocks.take(indexes)
        facts, payloads = self._facts.take(numbers.view(np.int64)), self._payloads.take(numbers.view(np.int64))
        absent = np.flatnonzero(payloads == 0)
        if absent.size and self.source.facts is not None:
            # slice by slice: meanwhile the device decodes the slices before
            known = self.source.facts.take(numbers.take(absent).view(np.int64))
            found = self.device.store.find(known)
            facts.put(absent, known)
            payloads.put(absent, found)
            absent = absent[found == 0]
        staging = None
        if absent.size:
            missing = numbers.take(absent)
            targets, size = lay_out(self.source.compressed_sizes.take(missing.view(np.int64)), PAYLOAD_ALIGNMENT)
            pinned = slot.pinned("payloads", size)
            wait = self.source.begin_staging(missing, targets, pinned.data)
            staging = _Staging(absent, targets, pinned, wait)
        return _Slice(slot, indexes, numbers, facts, payloads, staging)

    def _queue(
        self, each: _Slice, plan: RangePlan | WholeBlocks, output: Output, decoding: Decoding
    ) -> NDArray[np.intp]:
        """Queues a slice.

        Returns the indexes of blocks that must be in another slice, because their heads have no space beside those of
        the others.
        """
        heads, of_heads, is_left = self._heads.load(each.numbers)
        left: NDArray[np.intp] = each.indexes[is_left]
        kept = None
        with each.slot.stream:
            if 0 < left.size == each.indexes.size:
                left = left[:0]
                each = self._decode_on_host(each)
                decoding.num_on_host += each.indexes.size
                decoding.bytes_on_host += int(each.facts["uncompressed_size"].sum())
            else:
                kept = self._upload(each)
                if left.size:
                    each, heads, of_heads = each.take(~is_left), heads[~is_left], of_heads[~is_left]
            columns = SliceColumns(
                plan, each.indexes, each.facts.data, of_heads, heads, each.payloads, in_place=output.in_place
            )
            statuses = self._queue_kernels(each, columns, output)
            complete = output.fetch(each.slot, each.indexes)

            def take(found: NDArray[np.uint8]) -> None:
                # the kernels leave the statuses of blocks that the host has found to be damaged
                if found.any():
                    decoding.statuses[columns.indexes] = found
                if kept is not None:
                    self._keep(kept)
                if complete is not None:
                    complete()

            arriving = None
            if kept is not None and kept.numbers.size:
                arriving = Arriving(self.source, int(kept.numbers[0]), int(kept.numbers[-1]))
            each.slot.end_with(statuses, take, arriving)
        return left

    def _keep(self, kept: _Kept) -> None:
        """Notes payloads that have arrived in memory where they stay, unless they were dropped in the meantime."""
        store = self.device.store
        if kept.num_cleared == store.num_cleared:
            self._facts.put(kept.numbers, kept.facts)
            self._payloads.put(kept.numbers, kept.payloads)
            store.add(kept.facts, kept.payloads)

    def _upload(self, each: _Slice) -> _Kept | None:
        """Queues the copy of staged payloads to the device, and writes their addresses and facts to `each`.

        Returns the payloads that will stay in device memory, once the slice is done.
        """
        if each.staging is None:
            return None
        absent, targets, pinned, wait = each.staging
        staged = wait()
        each.facts.put(absent, staged)
        store, numbers = self.device.store, each.numbers.view(np.int64)
        if self.source.facts is None and (found := store.find(staged)).all():  # another source may have them
            each.payloads.put(absent, found)
            return _Kept(store.num_cleared, numbers[absent], staged, found)
        kept = store.reserve(pinned.size + PADDING)
        on_device = each.slot.device("payloads", pinned.size + PADDING) if kept is None else kept
        on_device[: pinned.size].set(pinned, each.slot.stream)
        payloads = targets + np.uint64(on_device.data.ptr + BLOCK_HEADER_SIZE)
        each.payloads.put(absent, payloads)
        if kept is None:
            return None
        sound = np.flatnonzero(staged["status"] == BlockStatus.OK)
        return _Kept(store.num_cleared, numbers[absent[sound]], staged.take(sound), payloads.take(sound))

    def _decode_on_host(self, each: _Slice) -> _Slice:
        """Returns blocks whose heads do not fit on the device, decoded by the host, as if they were stored."""
        slot, numbers = each.slot, each.numbers
        if each.staging is not None:
            each.staging.wait()  # the memory is used again
        facts = np.zeros(numbers.size, FACTS)
        sizes = facts["uncompressed_size"] = self.source.uncompressed_sizes[numbers]
        pinned = slot.pinned("payloads", int(sizes.sum()))
        facts["status"] = self.source.decode(numbers, pinned.data, verify=self._verify)
        on_device = slot.device("payloads", pinned.size + PADDING)
        on_device[: pinned.size].set(pinned, slot.stream)
        payloads = np.cumsum(sizes, dtype=np.uint64) - sizes + np.uint64(on_device.data.ptr)
        return _Slice(slot, each.indexes, numbers, facts, payloads, None)

    def _queue_kernels(self, each: _Slice, columns: SliceColumns, output: Output) -> cupy.ndarray:
        """Queues the decoding of blocks and the copying of their pieces. Returns the statuses of the blocks."""
        device, slot = self.device, each.slot
        array, base = output.memory(slot, each.indexes)
        content = array if output.in_place else slot.device("content", columns.content_size + PADDING)
        addresses, found = slot.upload_columns(columns, content, base)
        tasks, sources, statuses, sizes, checksums, *of_pieces = addresses
        device.decode(columns.num_decoded, tasks, content, statuses)
        if self._verify and columns.has_checksums:  # blocks that the host decoded have none, and were checked there
            device.check(each.indexes.size, sources, sizes, checksums, statuses)
        device.gather(columns.num_pieces, sources, statuses, *of_pieces, array)
        return found
