"""One decode_blocks call of the GPU engine: cuts the batch into slices and passes them through the slots of a device.

For each slice, a thread of the device first checks the payloads and copies them to pinned memory ("staging"), unless
they are in device memory already. Then the copies to the device, the kernels and the copies back are queued on the
stream of the slice's slot. While one slice runs, the next ones are staged and queued, and if the caller's memory is not
pinned, threads of the host copy the output of finished ones there.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs._native.gpu import copy_runs
from gompfs._native.parts import SymbolTable
from gompfs.codec import BlockStatus, Codec
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.codec.headers import read_headers
from gompfs.codec.stored_head import StoredHead
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.cuda import PADDING, is_pinned
from gompfs.gpu.device import KERNELS, LEAST_SLICE_BYTES, Device, Slot

PAYLOAD_ALIGNMENT = 16
OUTPUT_ALIGNMENT = 32
NUM_ROWS = 5  # of what `describe` returns; the last one has the counters
_FIRST_SLICE_BYTES = 8 << 20  # small, so that the device starts early
_STATUSES = tuple(BlockStatus)
_CODECS_WITH_HEADS = {Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT_DICTIONARY}


@dataclass
class GpuSlice:
    """Blocks that are on the device together: their indexes in the batch, and their offsets in the slice's output."""

    indexes: NDArray[np.intp]
    output_offsets: NDArray[np.uint64]
    output_bytes: int
    slot: Slot
    staged: Callable[[], _Staged]
    arriving: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None
    """Checksums and addresses of payloads that will stay in device memory once this slice's upload is complete."""


@dataclass
class _Staged:
    """The payloads of a slice after their check. Those `absent` on the device are in pinned memory at `offsets`."""

    checksums: NDArray[np.uint64]
    addresses: NDArray[np.uint64]
    absent: NDArray[np.intp]
    offsets: NDArray[np.uint64]
    size: int
    checks: NDArray[np.uint8]


class GpuBatch:
    """A batch of blocks and the host memory that receives their content."""

    def __init__(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        num_threads: int,
        sizes: Sequence[int] | None = None,
        symbols: Sequence[SymbolTable | StoredHead | None] | None = None,
    ) -> None:
        """Prepares to decode `blocks` into `out`, see Engine.decode_blocks."""
        self._take(blocks, num_threads, sizes, symbols)
        self._offsets = np.cumsum(self._sizes, dtype=np.uint64) - self._sizes
        total = int(self._sizes.sum())
        if total > len(out):
            raise ValueError(f"the blocks hold {total} bytes, the output only {len(out)}")
        self._out = out
        self._target = np.frombuffer(out, np.uint8)
        self._is_direct = is_pinned(self._target)

    def _take(
        self,
        blocks: Sequence[Buffer],
        num_threads: int,
        sizes: Sequence[int] | NDArray[np.integer] | None,
        symbols: Sequence[SymbolTable | StoredHead | None] | None,
    ) -> None:
        self._blocks = blocks
        self._num_threads = num_threads
        self._symbols = symbols  # may have heads that are not opened yet
        self._facts = read_headers(blocks, symbols)
        self._heads = np.zeros(len(blocks), np.uint64)  # device addresses
        self._sizes = self._facts["uncompressed_size"].astype(np.uint64)
        self._statuses = self._facts["status"].copy()
        if sizes is not None:
            if len(sizes) != len(blocks):
                raise ValueError("each block needs a size")
            expected = np.array(sizes, np.uint64)
            self._statuses[self._sizes != expected] = BlockStatus.BAD_HEADER
            self._sizes = expected

    @property
    def checksums(self) -> NDArray[np.uint64]:
        """The checksum of each block."""
        checksums: NDArray[np.uint64] = self._facts["checksum"]
        return checksums

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """How many bytes each block should decode to."""
        return self._sizes

    def decode(self, device: Device, work: Mapping[str, DecodeWork], chosen: NDArray[np.bool_] | None = None) -> None:
        """Decodes the blocks whose headers are valid: all of them, or those that are `chosen`.

        The CPU decodes stored blocks, and those whose head is too large for the memory of the device. The device
        decodes all others. Other threads may decode other blocks of the batch at the same time, on other devices.
        """
        is_wanted = self._statuses == BlockStatus.OK
        if self._symbols is not None:
            # a block has the status of its head if that is damaged, whatever the block is like
            is_wanted |= np.array([isinstance(symbols, StoredHead) for symbols in self._symbols], np.bool_)
        if chosen is not None:
            is_wanted &= chosen
        rest, for_cpu = np.flatnonzero(is_wanted), np.zeros(0, np.intp)
        while rest.size:
            is_settled = self._load_heads(device, rest)
            if not is_settled.any():
                for_cpu = np.append(for_cpu, rest)
                break
            ready, rest = rest[is_settled], rest[~is_settled]
            ready = ready[self._statuses[ready] == BlockStatus.OK]
            is_stored = self._facts["codec"][ready] == Codec.STORED
            for_cpu, ready = np.append(for_cpu, ready[is_stored]), ready[~is_stored]
            if ready.size:
                with work["gpu"].batch(ready.size, int(self._sizes[ready].sum())):
                    self._decode_all_slices(device, ready)
        if for_cpu.size:
            with work["cpu"].batch(for_cpu.size, int(self._sizes[for_cpu].sum())):
                for index in for_cpu.tolist():
                    self._decode_on_cpu(index)

    def _load_heads(self, device: Device, indexes: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Loads heads of blocks into device memory, as many as there is space for. Returns which blocks are settled.

        These are blocks that need no head, those whose head was loaded, and those whose head is damaged: they get its
        status.
        """
        is_settled = np.ones(indexes.size, np.bool_)
        if self._symbols is None:
            return is_settled
        found = [(position, self._symbols[index]) for position, index in enumerate(indexes.tolist())]
        in_parts = [(position, head) for position, head in found if head is not None]
        if not in_parts:
            return is_settled
        addresses, statuses = device.heads.load(head for _, head in in_parts)
        positions = np.array([position for position, _ in in_parts])
        self._heads[indexes[positions]] = addresses
        is_damaged = statuses != BlockStatus.OK
        self._statuses[indexes[positions[is_damaged]]] = statuses[is_damaged]
        is_settled[positions] = (addresses != 0) | is_damaged
        return is_settled

    def _decode_all_slices(self, device: Device, wanted: NDArray[np.intp]) -> None:
        """Decodes all slices. Each time the device runs out of memory, tries again with less.

        First the slices are halved, down to LEAST_SLICE_BYTES; then words and payloads that stay in device memory are
        dropped. Raises EngineUnavailableError if the memory is still too small.
        """
        while True:
            try:
                self._decode_slices(device, wanted)
                return
            except cupy.cuda.memory.OutOfMemoryError as error:
                if device.slice_bytes > LEAST_SLICE_BYTES:
                    device.slice_bytes //= 2
                elif device.take_back():
                    pass
                elif device.store.num_bytes:
                    device.synchronize()  # reads of ranges may still use the payloads
                    device.store.clear()
                else:
                    raise EngineUnavailableError(f"{device.name} has too little free memory") from error
                device.release()

    def _decode_on_cpu(self, index: int) -> None:
        self._decode_into(index, self._out[int(self._offsets[index]) :])

    def _decode_into(self, index: int, out: memoryview) -> None:
        symbols = None if self._symbols is None else self._symbols[index]
        if isinstance(symbols, StoredHead):
            symbols, status = symbols.open_on_host()
            if status is not BlockStatus.OK:
                self._statuses[index] = status
        if self._statuses[index] == BlockStatus.OK:
            decoded = _codec.decode_blocks([self._blocks[index]], out, False, 1, None, [symbols])
            self._statuses[index] = decoded[0]

    def _decode_slices(self, device: Device, wanted: NDArray[np.intp]) -> None:
        """Passes the slices through the slots of the device in turn.

        While one slice is queued, the next one is checked.
        """
        running: deque[GpuSlice] = deque()
        waiting: GpuSlice | None = None
        try:
            for indexes, slot in zip(
                self._cut(wanted, device.slice_bytes), itertools.cycle(device.slots), strict=False
            ):
                if len(running) + 1 == len(device.slots):
                    self._finish(device, running.popleft())
                gpu_slice = self._stage_later(device, slot, indexes)
                if waiting is not None:
                    self._start(device, waiting)
                    running.append(waiting)
                waiting = gpu_slice
            if waiting is not None:
                self._start(device, waiting)
                running.append(waiting)
        finally:
            if waiting is not None:
                waiting.staged()  # wait: it must not write to its slot after the slot is reused
        for gpu_slice in running:
            self._finish(device, gpu_slice)

    def _cut(self, wanted: NDArray[np.intp], slice_bytes: int) -> list[NDArray[np.intp]]:
        """Cuts the batch into slices of at most `slice_bytes` of output; the first slices are smaller."""
        sizes = self._sizes[wanted]
        ends = slice_ends(int(sizes.sum()), slice_bytes)
        numbers = np.searchsorted(ends, np.cumsum(sizes) - sizes, side="right")
        return np.split(wanted, np.flatnonzero(np.diff(numbers)) + 1)

    def _stage_later(self, device: Device, slot: Slot, indexes: NDArray[np.intp]) -> GpuSlice:
        """Returns a slice whose payloads another thread is checking."""
        future = device.executor.submit(self._stage, device, slot, indexes)
        return GpuSlice(indexes, *self._lay_out_output(indexes), slot, future.result)

    def _lay_out_output(self, indexes: NDArray[np.intp]) -> tuple[NDArray[np.uint64], int]:
        """Returns the offsets of the blocks in the slice's output, and the size of that output in bytes."""
        return lay_out(self._sizes[indexes], OUTPUT_ALIGNMENT)

    def _stage(self, device: Device, slot: Slot, indexes: NDArray[np.intp]) -> _Staged:
        """Checks the payloads that are not in device memory, and copies them to pinned memory."""
        checksums = self._facts["checksum"][indexes]
        addresses = device.store.find(checksums)
        absent = np.flatnonzero(addresses == 0)
        if absent.size == 0:
            return _Staged(checksums, addresses, absent, addresses, 0, np.zeros(0, np.uint8))
        offsets, size = lay_out(self._facts["payload_size"][indexes[absent]], PAYLOAD_ALIGNMENT)
        staging = slot.pinned("payloads", size)
        blocks = [self._blocks[index] for index in indexes[absent].tolist()]
        headers = self._facts[indexes[absent]]
        checks = _codec.gather_payloads(blocks, headers.data, offsets.data, staging.data, self._num_threads)
        return _Staged(checksums, addresses, absent, offsets, size, np.frombuffer(checks, np.uint8))

    def _start(self, device: Device, gpu_slice: GpuSlice) -> None:
        """Queues the copies and kernels of a slice."""
        slot = gpu_slice.slot
        with slot.stream:
            addresses = self._upload(device, gpu_slice)
            output = self._output_of(gpu_slice)
            statuses = slot.device("statuses", gpu_slice.indexes.size)
            facts = self._facts[gpu_slice.indexes]
            # a payload size of 0 makes the kernel refuse the block
            facts["payload_size"][self._statuses[gpu_slice.indexes] != BlockStatus.OK] = 0
            columns = describe(facts, addresses, gpu_slice.output_offsets, self._heads[gpu_slice.indexes])
            fields = slot.pinned("fields", columns.nbytes)
            fields[:] = columns.view(np.uint8)
            on_device = slot.device("fields", columns.nbytes)
            on_device.set(fields, slot.stream)
            launch(device, count_codecs(facts["codec"]), on_device, output, statuses)
            self._fetch(gpu_slice, output, statuses)

    def _output_of(self, gpu_slice: GpuSlice) -> cupy.ndarray:
        return gpu_slice.slot.device("output", gpu_slice.output_bytes + PADDING)

    def _upload(self, device: Device, gpu_slice: GpuSlice) -> NDArray[np.uint64]:
        """Queues the copy of payloads that are not in device memory. Returns the device addresses of all payloads."""
        staged = gpu_slice.staged()
        if staged.absent.size == 0:
            return staged.addresses
        self._statuses[gpu_slice.indexes[staged.absent]] = staged.checks
        kept = device.store.reserve(staged.size + PADDING)
        payloads = gpu_slice.slot.device("payloads", staged.size + PADDING) if kept is None else kept
        payloads[: staged.size].set(gpu_slice.slot.pinned("payloads", staged.size), gpu_slice.slot.stream)
        staged.addresses[staged.absent] = staged.offsets + np.uint64(payloads.data.ptr)
        if kept is not None:
            sound = staged.absent[staged.checks == BlockStatus.OK]
            gpu_slice.arriving = staged.checksums[sound], staged.addresses[sound]
        return staged.addresses

    def _fetch(self, gpu_slice: GpuSlice, output: cupy.ndarray, statuses: cupy.ndarray) -> None:
        """Queues the copies of statuses and output to the host."""
        slot = gpu_slice.slot
        fetch_statuses(gpu_slice, statuses)
        if not self._is_direct:
            pinned = slot.pinned("output", gpu_slice.output_bytes)
            output[: gpu_slice.output_bytes].get(slot.stream, out=pinned, blocking=False)
            return
        for first, offset, size in zip(*(column.tolist() for column in self._runs(gpu_slice)), strict=True):
            output[first : first + size].get(slot.stream, out=self._target[offset : offset + size], blocking=False)

    def _runs(self, gpu_slice: GpuSlice) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Returns runs of blocks that are adjacent both on the device and in the output.

        Columns in bytes: the offsets of the runs on the device, their offsets in the output, and their sizes.
        """
        offsets = self._offsets[gpu_slice.indexes]
        sizes = self._sizes[gpu_slice.indexes]
        breaks = (gpu_slice.output_offsets[1:] - gpu_slice.output_offsets[:-1] != sizes[:-1]) | (
            offsets[1:] - offsets[:-1] != sizes[:-1]
        )
        firsts = np.append(0, np.flatnonzero(breaks) + 1)
        return gpu_slice.output_offsets[firsts], offsets[firsts], np.add.reduceat(sizes, firsts)

    def _finish(self, device: Device, gpu_slice: GpuSlice) -> None:
        """Waits for a slice and takes over its statuses and output."""
        slot = gpu_slice.slot
        slot.stream.synchronize()
        if gpu_slice.arriving is not None:
            device.store.add(*gpu_slice.arriving)
        order = np.argsort(self._facts["codec"][gpu_slice.indexes], kind="stable")
        indexes = gpu_slice.indexes[order]
        is_sound = self._statuses[indexes] == BlockStatus.OK
        self._statuses[indexes[is_sound]] = slot.pinned("statuses", gpu_slice.indexes.size)[is_sound]
        if not self._is_direct:
            output = slot.pinned("output", gpu_slice.output_bytes)
            copy_runs(output.data, self._out, *self._runs(gpu_slice), self._num_threads)

    def settle(self, *, verify: bool) -> list[BlockStatus]:
        """Fills the output of damaged blocks with zeros and returns the statuses.

        With `verify`, compares the contents of the other blocks with their checksums first.
        """
        if verify:
            matches = _codec.check_contents(self._blocks, self._offsets.data, self._out, self._num_threads)
            wrong = np.frombuffer(matches, np.uint8) == 0
            self._statuses[(self._statuses == BlockStatus.OK) & wrong] = BlockStatus.BAD_CONTENT
        damaged = np.flatnonzero(self._statuses).tolist()
        settled = [BlockStatus.OK] * self._statuses.size
        for index in damaged:
            settled[index] = _STATUSES[self._statuses[index]]
            start = int(self._offsets[index])
            self._target[start : start + int(self._sizes[index])] = 0
        return settled


def fetch_statuses(gpu_slice: GpuSlice, statuses: cupy.ndarray) -> None:
    """Queues the copy of the statuses to the pinned memory of the slice's slot."""
    statuses.get(gpu_slice.slot.stream, out=gpu_slice.slot.pinned("statuses", gpu_slice.indexes.size), blocking=False)


def describe(
    facts: NDArray[np.void],
    addresses: NDArray[np.uint64],
    output_offsets: NDArray[np.uint64],
    heads: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """Returns what the kernels need about each block, in NUM_ROWS rows of 64 bits per block.

    The rows are: payload addresses; output offsets; addresses of heads or dictionaries; payload sizes, then
    uncompressed sizes (both 32 bits); zeros for counters. Columns are sorted by codec, so that the blocks of one codec
    are adjacent.
    """
    order = np.argsort(facts["codec"], kind="stable")
    rows = np.zeros((NUM_ROWS, order.size), np.uint64)
    rows[0] = addresses[order]
    rows[1] = output_offsets[order]
    rows[2] = heads[order]
    sizes = rows[3].view(np.uint32)
    sizes[: order.size] = facts["payload_size"][order]
    sizes[order.size :] = facts["uncompressed_size"][order]
    return rows.ravel()


def count_codecs(codecs: NDArray[np.integer]) -> list[int]:
    """Returns how many blocks have each codec, by the codec's number."""
    counts = [0] * (max(Codec) + 1)
    for codec in KERNELS:
        counts[codec] = int(np.count_nonzero(codecs == codec))
    return counts


def launch(
    device: Device, num_blocks: Sequence[int], fields: cupy.ndarray, output: cupy.ndarray, statuses: cupy.ndarray
) -> None:
    """Starts one kernel per codec on the current stream; `fields` are the bytes of `describe`.

    `num_blocks` says how many blocks have each codec, by the codec's number.
    """
    count = sum(num_blocks)
    payloads_from = np.uint64(0)  # the offsets are absolute addresses, since payloads may be in several allocations
    rows = fields.view(cupy.uint64)
    sizes = rows[3 * count : 4 * count].view(cupy.uint32)
    counters = rows[4 * count :].view(cupy.uint32)
    start = 0
    for codec in KERNELS:
        end = start + num_blocks[codec]
        if end > start:
            heads = (rows[2 * count + start : 2 * count + end],) if codec in _CODECS_WITH_HEADS else ()
            device.launch(
                codec,
                (payloads_from, rows[start:end], sizes[start:end], output, rows[count + start : count + end],
                 sizes[count + start : count + end], statuses[start:end], counters[start:], *heads),
                end - start,
            )  # fmt: skip
        start = end


def lay_out(sizes: NDArray[np.integer], alignment: int) -> tuple[NDArray[np.uint64], int]:
    """Returns offsets for pieces of these sizes in a row, each at a multiple of `alignment`, and the total size."""
    padded = -(-sizes.astype(np.int64) // alignment) * alignment
    ends = np.cumsum(padded)
    return (ends - padded).astype(np.uint64), int(ends[-1])


def slice_ends(total: int, slice_bytes: int, first_bytes: int = _FIRST_SLICE_BYTES) -> NDArray[np.uint64]:
    """Returns where the slices end when `total` bytes of output are cut.

    If they fit in `slice_bytes`, there is one slice. Otherwise the first has `first_bytes`, and each other is twice as
    large as the one before, up to `slice_bytes`.
    """
    size = slice_bytes if total <= slice_bytes else min(first_bytes, slice_bytes)
    ends = [size]
    while ends[-1] < total:
        size = min(2 * size, slice_bytes)
        ends.append(ends[-1] + size)
    return np.array(ends, np.uint64)
