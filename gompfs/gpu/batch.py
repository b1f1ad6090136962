"""One decode_blocks call of the GPU engine: cuts the batch into parts and passes them through the slots of a device.

For each part, a thread of the device first checks the payloads and copies them to pinned memory ("staging"), unless
they are in device memory already. Then the copies to the device, the kernels and the copies back are queued on the
stream of the part's slot. While one part runs, the next ones are staged and queued.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs.codec import BlockStatus, Codec
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.codec.headers import read_headers
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.device import KERNELS, LEAST_PART_BYTES, PADDING, Device, Slot, is_pinned

PAYLOAD_ALIGNMENT = 16
OUTPUT_ALIGNMENT = 32
_FIRST_PART_BYTES = 8 << 20  # small, so that the device starts early
_STATUSES = tuple(BlockStatus)


@dataclass
class Part:
    """Blocks that are on the device together: their indexes in the batch, and their offsets in the part's output."""

    indexes: NDArray[np.intp]
    output_places: NDArray[np.uint64]
    output_bytes: int
    slot: Slot
    staged: Callable[[], _Staged]
    arriving: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None
    """Checksums and addresses of payloads that will stay in device memory once this part's upload is complete."""


@dataclass
class _Staged:
    """The payloads of a part after their check. Those `absent` from device memory are in pinned memory at `places`."""

    checksums: NDArray[np.uint64]
    addresses: NDArray[np.uint64]
    absent: NDArray[np.intp]
    places: NDArray[np.uint64]
    size: int
    checks: NDArray[np.uint8]


class Batch:
    """A batch of blocks and the host memory that receives their content."""

    def __init__(self, blocks: Sequence[Buffer], out: memoryview, num_threads: int) -> None:
        """Prepares to decode `blocks` into `out`. Raises ValueError if `out` is too small."""
        self._take(blocks, num_threads)
        self._places = np.cumsum(self._sizes, dtype=np.uint64) - self._sizes
        total = int(self._sizes.sum())
        if total > len(out):
            raise ValueError(f"the blocks hold {total} bytes, the output only {len(out)}")
        self._out = out
        self._target = np.frombuffer(out, np.uint8)
        self._is_direct = is_pinned(self._target)

    def _take(self, blocks: Sequence[Buffer], num_threads: int) -> None:
        self._blocks = blocks
        self._num_threads = num_threads
        self._facts = read_headers(blocks)
        self._sizes = self._facts["uncompressed_size"].astype(np.uint64)
        self._statuses = self._facts["status"].copy()

    def decode(self, device: Device, work: Mapping[str, DecodeWork]) -> None:
        """Decodes the blocks whose headers are valid: stored blocks on the CPU, the others on the device."""
        wanted = np.flatnonzero(self._statuses == BlockStatus.OK)
        is_stored = self._facts["codec"][wanted] == Codec.STORED
        stored, rest = wanted[is_stored], wanted[~is_stored]
        if stored.size:
            with work["cpu"].batch(stored.size, int(self._sizes[stored].sum())):
                for index in stored.tolist():
                    self._decode_stored(index)
        if rest.size:
            with work["gpu"].batch(rest.size, int(self._sizes[rest].sum())):
                self._decode_all_parts(device, rest)

    def _decode_all_parts(self, device: Device, wanted: NDArray[np.intp]) -> None:
        """Decodes all parts. Each time the device runs out of memory, tries again with less.

        First the parts are halved, down to LEAST_PART_BYTES; then the payloads kept in device memory are dropped.
        Raises EngineUnavailableError if the memory is still too small.
        """
        while True:
            try:
                self._decode_parts(device, wanted)
                return
            except cupy.cuda.memory.OutOfMemoryError as error:
                if device.part_bytes > LEAST_PART_BYTES:
                    device.part_bytes //= 2
                elif device.store.num_bytes:
                    device.store.clear()
                else:
                    raise EngineUnavailableError(f"{device.name} has too little free memory") from error
                device.release()

    def _decode_stored(self, index: int) -> None:
        place = self._out[int(self._places[index]) :]
        self._statuses[index] = _codec.decode_blocks([self._blocks[index]], place, False, 1)[0]

    def _decode_parts(self, device: Device, wanted: NDArray[np.intp]) -> None:
        """Passes the parts through the slots of the device in turn.

        While one part is queued, the next one is checked.
        """
        running: deque[Part] = deque()
        waiting: Part | None = None
        try:
            for indexes, slot in zip(
                self._cut(wanted, device.part_bytes), itertools.cycle(device.slots), strict=False
            ):
                if len(running) + 1 == len(device.slots):
                    self._finish(device, running.popleft())
                part = self._stage_later(device, slot, indexes)
                if waiting is not None:
                    self._start(device, waiting)
                    running.append(waiting)
                waiting = part
            if waiting is not None:
                self._start(device, waiting)
                running.append(waiting)
        finally:
            if waiting is not None:
                waiting.staged()  # wait: it must not write to its slot after the slot is reused
        for part in running:
            self._finish(device, part)

    def _cut(self, wanted: NDArray[np.intp], part_bytes: int) -> list[NDArray[np.intp]]:
        """Cuts the batch into parts of at most `part_bytes` of output; the first parts are smaller."""
        sizes = self._sizes[wanted]
        ends = _part_ends(int(sizes.sum()), part_bytes)
        numbers = np.searchsorted(ends, np.cumsum(sizes) - sizes, side="right")
        return np.split(wanted, np.flatnonzero(np.diff(numbers)) + 1)

    def _stage_later(self, device: Device, slot: Slot, indexes: NDArray[np.intp]) -> Part:
        """Returns a part whose payloads another thread is checking."""
        future = device.executor.submit(self._stage, device, slot, indexes)
        return Part(indexes, *self._lay_out_output(indexes), slot, future.result)

    def _lay_out_output(self, indexes: NDArray[np.intp]) -> tuple[NDArray[np.uint64], int]:
        """Returns the offsets of the blocks in the part's output, and the size of that output in bytes."""
        return lay_out(self._sizes[indexes], OUTPUT_ALIGNMENT)

    def _stage(self, device: Device, slot: Slot, indexes: NDArray[np.intp]) -> _Staged:
        """Checks the payloads that are not in device memory, and copies them to pinned memory."""
        checksums = self._facts["checksum"][indexes]
        addresses = device.store.find(checksums)
        absent = np.flatnonzero(addresses == 0)
        if absent.size == 0:
            return _Staged(checksums, addresses, absent, addresses, 0, np.zeros(0, np.uint8))
        places, size = lay_out(self._facts["payload_size"][indexes[absent]], PAYLOAD_ALIGNMENT)
        staging = slot.pinned("payloads", size)
        blocks = [self._blocks[index] for index in indexes[absent].tolist()]
        checks = _codec.gather_payloads(blocks, places.data, staging.data, self._num_threads)
        return _Staged(checksums, addresses, absent, places, size, np.frombuffer(checks, np.uint8))

    def _start(self, device: Device, part: Part) -> None:
        """Queues the copies and kernels of a part."""
        slot = part.slot
        with slot.stream:
            addresses = self._upload(device, part)
            output = self._output_of(part)
            statuses = slot.device("statuses", part.indexes.size)
            facts = self._facts[part.indexes]
            # a payload size of 0 makes the kernel refuse the block
            facts["payload_size"][self._statuses[part.indexes] != BlockStatus.OK] = 0
            columns = describe(facts, addresses, part.output_places)
            fields = slot.pinned("fields", columns.nbytes)
            fields[:] = columns.view(np.uint8)
            on_device = slot.device("fields", columns.nbytes)
            on_device.set(fields, slot.stream)
            launch(device, facts["codec"], on_device, output, statuses)
            self._fetch(part, output, statuses)

    def _output_of(self, part: Part) -> cupy.ndarray:
        return part.slot.device("output", part.output_bytes + PADDING)

    def _upload(self, device: Device, part: Part) -> NDArray[np.uint64]:
        """Queues the copy of payloads that are not in device memory. Returns the device addresses of all payloads."""
        staged = part.staged()
        if staged.absent.size == 0:
            return staged.addresses
        self._statuses[part.indexes[staged.absent]] = staged.checks
        kept = device.store.reserve(staged.size + PADDING)
        payloads = part.slot.device("payloads", staged.size + PADDING) if kept is None else kept
        payloads[: staged.size].set(part.slot.pinned("payloads", staged.size), part.slot.stream)
        staged.addresses[staged.absent] = staged.places + np.uint64(payloads.data.ptr)
        if kept is not None:
            sound = staged.absent[staged.checks == BlockStatus.OK]
            part.arriving = staged.checksums[sound], staged.addresses[sound]
        return staged.addresses

    def _fetch(self, part: Part, output: cupy.ndarray, statuses: cupy.ndarray) -> None:
        """Queues the copies of statuses and output to the host."""
        slot = part.slot
        fetch_statuses(part, statuses)
        if not self._is_direct:
            output[: part.output_bytes].get(slot.stream, out=slot.pinned("output", part.output_bytes), blocking=False)
            return
        for first, place, size in self._runs(part):
            output[first : first + size].get(slot.stream, out=self._target[place : place + size], blocking=False)

    def _runs(self, part: Part) -> Iterator[tuple[int, int, int]]:
        """Yields runs of blocks that are adjacent both on the device and in the output.

        Each run is (offset on the device, offset in the output, size), in bytes.
        """
        places = self._places[part.indexes]
        sizes = self._sizes[part.indexes]
        breaks = (part.output_places[1:] - part.output_places[:-1] != sizes[:-1]) | (
            places[1:] - places[:-1] != sizes[:-1]
        )
        for run in np.split(np.arange(places.size), np.flatnonzero(breaks) + 1):
            yield int(part.output_places[run[0]]), int(places[run[0]]), int(sizes[run].sum())

    def _finish(self, device: Device, part: Part) -> None:
        """Waits for a part and takes over its statuses and output."""
        slot = part.slot
        slot.stream.synchronize()
        if part.arriving is not None:
            device.store.add(*part.arriving)
        order = np.argsort(self._facts["codec"][part.indexes], kind="stable")
        indexes = part.indexes[order]
        is_sound = self._statuses[indexes] == BlockStatus.OK
        self._statuses[indexes[is_sound]] = slot.pinned("statuses", part.indexes.size)[is_sound]
        if not self._is_direct:
            output = slot.pinned("output", part.output_bytes)
            for first, place, size in self._runs(part):
                self._target[place : place + size] = output[first : first + size]

    def settle(self, *, verify: bool) -> list[BlockStatus]:
        """Fills the output of damaged blocks with zeros and returns the statuses.

        With `verify`, compares the contents of the other blocks with their checksums first.
        """
        if verify:
            matches = _codec.check_contents(self._blocks, self._places.data, self._out, self._num_threads)
            wrong = np.frombuffer(matches, np.uint8) == 0
            self._statuses[(self._statuses == BlockStatus.OK) & wrong] = BlockStatus.BAD_CONTENT
        damaged = np.flatnonzero(self._statuses).tolist()
        settled = [BlockStatus.OK] * self._statuses.size
        for index in damaged:
            settled[index] = _STATUSES[self._statuses[index]]
            start = int(self._places[index])
            self._target[start : start + int(self._sizes[index])] = 0
        return settled


def fetch_statuses(part: Part, statuses: cupy.ndarray) -> None:
    """Queues the copy of the statuses to the pinned memory of the part's slot."""
    statuses.get(part.slot.stream, out=part.slot.pinned("statuses", part.indexes.size), blocking=False)


def describe(
    facts: NDArray[np.void], addresses: NDArray[np.uint64], output_places: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Returns what the kernels need about each block, in four rows of 64 bits per block.

    The rows are: payload addresses; output offsets; payload sizes, then uncompressed sizes (both 32 bits); zeros for
    counters. Columns are sorted by codec, so that the blocks of one codec are adjacent.
    """
    order = np.argsort(facts["codec"], kind="stable")
    rows = np.zeros((4, order.size), np.uint64)
    rows[0] = addresses[order]
    rows[1] = output_places[order]
    sizes = rows[2].view(np.uint32)
    sizes[: order.size] = facts["payload_size"][order]
    sizes[order.size :] = facts["uncompressed_size"][order]
    return rows.ravel()


def launch(
    device: Device,
    codecs: NDArray[np.uint32],
    fields: cupy.ndarray,
    output: cupy.ndarray,
    statuses: cupy.ndarray,
) -> None:
    """Starts one kernel per codec on the current stream; `fields` are the bytes of `describe`."""
    count = codecs.size
    payloads_from = np.uint64(0)  # the offsets are absolute addresses, since payloads may be in several allocations
    rows = fields.view(cupy.uint64)
    sizes = rows[2 * count : 3 * count].view(cupy.uint32)
    counters = rows[3 * count :].view(cupy.uint32)
    start = 0
    for codec in KERNELS:
        end = start + int(np.count_nonzero(codecs == codec))
        if end > start:
            device.launch(
                codec,
                (payloads_from, rows[start:end], sizes[start:end], output, rows[count + start : count + end],
                 sizes[count + start : count + end], statuses[start:end], counters[start:]),
                end - start,
            )  # fmt: skip
        start = end


def lay_out(sizes: NDArray[np.integer], alignment: int) -> tuple[NDArray[np.uint64], int]:
    """Returns offsets for pieces of these sizes in a row, each at a multiple of `alignment`, and the total size."""
    padded = -(-sizes.astype(np.int64) // alignment) * alignment
    ends = np.cumsum(padded)
    return (ends - padded).astype(np.uint64), int(ends[-1])


def _part_ends(total: int, part_bytes: int) -> NDArray[np.uint64]:
    """Returns where the parts end when `total` bytes of output are cut.

    If they fit in `part_bytes`, there is one part. Otherwise each part is twice as large as the one before, up to
    `part_bytes`.
    """
    size = part_bytes if total <= part_bytes else min(_FIRST_PART_BYTES, part_bytes)
    ends = [size]
    while ends[-1] < total:
        size = min(2 * size, part_bytes)
        ends.append(ends[-1] + size)
    return np.array(ends, np.uint64)
