"""Decodes blocks of an archive into one array in the memory of a GPU, for kernels that process the text there.

All threads of the host read the blocks straight into pinned memory, and check them there. One copy brings them to the
device. The host does nothing else for each block but index arrays. Two slots take turns: blocks are read into one while
the device copies from the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec
from gompfs.codec.decode_work import DecodeWork
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.batch import NUM_ROWS, OUTPUT_ALIGNMENT, PAYLOAD_ALIGNMENT, count_codecs, describe, launch, lay_out
from gompfs.gpu.block_source import BlockSource, BlockSymbols, load_heads
from gompfs.gpu.cuda import PADDING
from gompfs.gpu.device import Device
from gompfs.gpu.range_slots import RangeKernels, RangeSlot

_NUM_SLOTS = 2


class StagedText(NamedTuple):
    """Blocks that were read and checked: at `targets` in the pinned memory of a slot, of which they take `size`."""

    source: BlockSource
    numbers: NDArray[np.uint64]
    slot: RangeSlot
    targets: NDArray[np.uint64]
    size: int
    facts: NDArray[np.void]
    symbols: BlockSymbols


class _Content(NamedTuple):
    """Where the content of blocks comes from: kernels decode some, and copy that of stored blocks. On the device."""

    codecs: NDArray[np.uint32]
    """Those of the blocks to decode, in the order of the tasks."""
    tasks: list[cupy.ndarray]
    """What `describe` has returned, and a status for each block. Empty if none is decoded."""
    copies: list[cupy.ndarray]
    """Columns of the stored blocks, for gather_pieces. Empty if there are none."""

    def write(self, device: Device, kernels: RangeKernels, output: cupy.ndarray) -> None:
        """Queues the work on the current stream. The counters of the tasks must be 0."""
        if self.tasks:
            fields, statuses = self.tasks
            launch(device, count_codecs(self.codecs), fields, output, statuses)
        if self.copies:
            kernels.gather(self.copies[0].size, *self.copies, output)

    def copy(self) -> _Content:
        """Returns a copy whose memory no slot uses."""
        return _Content(self.codecs, [each.copy() for each in self.tasks], [each.copy() for each in self.copies])


class StagedDecoder:
    """Stages and decodes blocks, for one thread each at a time."""

    def __init__(self, device: Device) -> None:
        """Uses the slots and stores of `device`, which must be current."""
        self._device = device
        self._slots = [RangeSlot() for _ in range(_NUM_SLOTS)]
        self._turns = itertools.cycle(self._slots)
        self._most_bytes = 0
        self._kernels = RangeKernels()
        device.slots_beside += self._slots

    def stage(self, source: BlockSource, numbers: NDArray[np.uint64]) -> StagedText:
        """See TextDevice.stage. The device must be current."""
        slot = next(self._turns)
        targets, size = lay_out(source.compressed_sizes[numbers], PAYLOAD_ALIGNMENT)
        if size > self._most_bytes:
            self._most_bytes = size + size // 4  # the next batches may be a little larger
        pinned = slot.pinned("payloads", self._most_bytes)
        facts = source.begin_staging(numbers, targets, pinned[:size].data)()
        return StagedText(source, numbers, slot, targets, size, facts, source.symbols(numbers))

    def decode(
        self, staged: StagedText, work: Mapping[str, DecodeWork]
    ) -> tuple[cupy.ndarray, NDArray[np.uint64], NDArray[np.uint8], GpuKeptBlocks | None]:
        """See TextDevice.decode_staged. The array is allocated by the current allocator."""
        offsets, size = lay_out(staged.source.uncompressed_sizes[staged.numbers], OUTPUT_ALIGNMENT)
        output = cupy.empty(size + PADDING, cupy.uint8)
        cupy.cuda.get_current_stream().synchronize()  # work that used the output's memory before is complete
        pool = cupy.get_default_memory_pool()  # slots and stores live longer than the arrays of a search
        with self._device.lock, cupy.cuda.using_allocator(pool.malloc):
            while True:
                try:
                    statuses, kept = self._decode(staged, offsets, output, work)
                    return output, offsets, statuses, kept
                except cupy.cuda.memory.OutOfMemoryError as error:
                    self._make_room(error)

    def _make_room(self, error: cupy.cuda.memory.OutOfMemoryError) -> None:
        """Frees memory of the device. Raises EngineUnavailableError if that was done before."""
        device = self._device
        device.synchronize()
        if not device.take_back():
            if not device.store.num_bytes:
                raise EngineUnavailableError(f"{device.name} has too little free memory") from error
            device.store.clear()
        device.release()

    def _decode(
        self, staged: StagedText, offsets: NDArray[np.uint64], output: cupy.ndarray, work: Mapping[str, DecodeWork]
    ) -> tuple[NDArray[np.uint8], GpuKeptBlocks | None]:
        device, facts = self._device, staged.facts
        losses = num_losses(device)
        statuses = facts["status"].astype(np.uint8)
        with staged.slot.stream:
            addresses, stay = self._upload(staged)
            content: list[_Content] = []
            left = np.arange(statuses.size)
            while left.size:
                symbols = staged.symbols.of(left)
                heads, of_heads = load_heads(device.heads, symbols)
                is_settled = (symbols.indexes < 0) | (heads != 0) | (of_heads != BlockStatus.OK)
                if not is_settled.any():
                    self._decode_on_host(staged, left, offsets, output, statuses, work["cpu"])
                    break
                # a block has the status of its head if that is damaged, whatever the block is like
                statuses[left] = np.where(of_heads != BlockStatus.OK, of_heads, statuses[left])
                ready, heads, left = left[is_settled], heads[is_settled], left[~is_settled]
                with work["gpu"].batch(ready.size, int(facts["uncompressed_size"][ready].sum())):
                    content += self._decode_ready(staged, ready, addresses, heads, offsets, output, statuses)
            kept = None
            # unless the heads of all blocks fit at once
            if stay and len(content) == 1 and not left.size and not statuses.any():
                kept = GpuKeptBlocks(device, self._kernels, losses, content[0].copy(), output.size)
            staged.slot.stream.synchronize()
        if stay:
            sound = facts["status"] == BlockStatus.OK
            device.store.add(facts["block_xxh3"][sound], addresses[sound])
        return statuses, kept

    def _upload(self, staged: StagedText) -> tuple[NDArray[np.uint64], bool]:
        """Returns the addresses of the payloads on the device, and whether they stay there."""
        store, slot, facts = self._device.store, staged.slot, staged.facts
        addresses = store.find(facts["block_xxh3"])
        if addresses.all():
            return addresses, True
        kept = store.reserve(staged.size + PADDING)
        on_device = slot.device("payloads", self._most_bytes + PADDING) if kept is None else kept
        on_device[: staged.size].set(slot.pinned("payloads", staged.size), slot.stream)
        return staged.targets + np.uint64(on_device.data.ptr + BLOCK_HEADER_SIZE), kept is not None

    def _decode_ready(
        self,
        staged: StagedText,
        ready: NDArray[np.intp],
        addresses: NDArray[np.uint64],
        heads: NDArray[np.uint64],
        offsets: NDArray[np.uint64],
        output: cupy.ndarray,
        statuses: NDArray[np.uint8],
    ) -> list[_Content]:
        """Decodes the blocks with the indexes `ready`, whose heads are on the device. Waits until that is done.

        Returns where their content came from, if any of them is sound.
        """
        slot, facts = staged.slot, staged.facts
        is_sound = statuses[ready] == BlockStatus.OK
        is_stored = facts["codec"][ready] == Codec.STORED
        decoded, stored = np.flatnonzero(is_sound & ~is_stored), ready[is_sound & is_stored]
        decoded = decoded[np.argsort(facts["codec"][ready[decoded]], kind="stable")]
        heads, decoded = heads[decoded], ready[decoded]
        if not decoded.size + stored.size:
            return []
        tasks: list[NDArray[Any]] = [
            describe(facts[decoded], addresses[decoded], offsets[decoded], heads),
            np.zeros(decoded.size, np.uint8),
        ]
        copies = _columns(addresses[stored], facts["uncompressed_size"][stored], offsets[stored])
        on_device = slot.upload((tasks if decoded.size else []) + (copies if stored.size else []))
        num_tasks = len(tasks) if decoded.size else 0
        content = _Content(facts["codec"][decoded], on_device[:num_tasks], on_device[num_tasks:])
        content.write(self._device, self._kernels, output)
        on_host = slot.pinned("statuses", decoded.size)
        if decoded.size:
            content.tasks[1].get(slot.stream, out=on_host, blocking=False)
        slot.stream.synchronize()
        statuses[decoded] = on_host
        return [content]

    def _decode_on_host(
        self,
        staged: StagedText,
        left: NDArray[np.intp],
        offsets: NDArray[np.uint64],
        output: cupy.ndarray,
        statuses: NDArray[np.uint8],
        work: DecodeWork,
    ) -> None:
        """Has the host decode the blocks with the indexes `left`, whose heads do not fit on the device."""
        numbers = staged.numbers[left]
        sizes = staged.source.uncompressed_sizes[numbers].tolist()
        content = np.empty(sum(sizes), np.uint8)
        with work.batch(left.size, content.size):
            statuses[left] = staged.source.decode(numbers, content.data, verify=False)
        first = 0
        for index, size in zip(left.tolist(), sizes, strict=True):
            start = int(offsets[index])
            output[start : start + size].set(content[first : first + size])
            first += size


class GpuKeptBlocks:
    """See KeptBlocks. Remembers where the payloads are, and the heads that they need."""

    def __init__(
        self, device: Device, kernels: RangeKernels, losses: tuple[int, int], content: _Content, output_bytes: int
    ) -> None:
        """The blocks are valid as long as num_losses(device) is `losses`. Uses the memory of `content`."""
        self._device = device
        self._kernels = kernels
        self._losses = losses
        self._content = content
        self._output_bytes = output_bytes

    @property
    def is_valid(self) -> bool:
        """See KeptBlocks.is_valid."""
        return num_losses(self._device) == self._losses

    def decode(self) -> cupy.ndarray | None:
        """See KeptBlocks.decode."""
        output = cupy.empty(self._output_bytes, cupy.uint8)
        with self._device.lock:  # memory is freed only under it, after the work that uses it
            if not self.is_valid:
                return None
            for fields in self._content.tasks[:1]:
                fields[fields.size // NUM_ROWS * (NUM_ROWS - 1) :] = 0  # the counters
            self._content.write(self._device, self._kernels, output)
        return output


def num_losses(device: Device) -> tuple[int, int]:
    """Returns how often payloads and heads were dropped from the memory of a device."""
    return device.store.num_cleared, device.heads.num_losses


def _columns(
    addresses: NDArray[np.uint64], sizes: NDArray[np.uint32], offsets: NDArray[np.uint64]
) -> list[NDArray[Any]]:
    """Returns whole blocks as pieces: sources, statuses, blocks, begins, sizes, and targets."""
    count = addresses.size
    return [
        addresses, np.zeros(count, np.uint8), np.arange(count, dtype=np.uint32), np.zeros(count, np.uint32), sizes,
        offsets,
    ]  # fmt: skip
