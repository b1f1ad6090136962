"""The GPU engine: the kernels of kernels/cuda through CuPy. Nothing else imports CuPy."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs import _codec
from gompfs.codec import BlockStatus, Codec, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.kernel_source import SHARED_BYTES, compile_options, read_source
from gompfs.errors import EngineUnavailableError

# What a batch is cut into: enough to fill a GPU, and so little that the copies of one part hide behind another.
_PART_BYTES = 32 << 20
_FIRST_PART_BYTES = 4 << 20  # small, for the device to begin soon
_LEAST_PART_BYTES = 1 << 20
_NUM_SLOTS = 4
_PAYLOAD_ALIGNMENT = 16
_OUTPUT_ALIGNMENT = 32
_PADDING = 256  # kernels may read so far behind what they need
_WARPS_PER_CTA = 4
_FACTS = np.dtype([("status", "<u4"), ("codec", "<u4"), ("payload_size", "<u4"), ("uncompressed_size", "<u4")])
_KERNELS = {Codec.GOMPRESSO_BYTE: "decode_byte", Codec.GOMPRESSO_BIT: "decode_bit"}
_STATUSES = tuple(BlockStatus)


@dataclass(frozen=True)
class _Part:
    """Blocks that are on the device together: their indexes in the batch, and where their bytes lie there."""

    indexes: NDArray[np.intp]
    payload_places: NDArray[np.uint64]
    payload_bytes: int
    output_places: NDArray[np.uint64]
    output_bytes: int


class _Slot:
    """A stream, and memory for one part at a time, which grows to what is asked of it."""

    def __init__(self) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._pinned: dict[str, NDArray[np.uint8]] = {}
        self._device: dict[str, cupy.ndarray] = {}

    def pinned(self, name: str, size: int) -> NDArray[np.uint8]:
        """Host memory that the device reads and writes by itself."""
        if name not in self._pinned or self._pinned[name].size < size:
            self._pinned[name] = _pinned_array(size)
        return self._pinned[name][:size]

    def device(self, name: str, size: int) -> cupy.ndarray:
        """Device memory, in bytes."""
        if name not in self._device or self._device[name].size < size:
            self._device.pop(name, None)
            self._device[name] = cupy.empty(size, cupy.uint8)
        return self._device[name][:size]

    def release(self) -> None:
        """Give all device memory back."""
        self._device.clear()


class _Device:
    """One GPU: its kernels, and slots that work at the same time."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.Lock()
        self.part_bytes = _PART_BYTES
        with cupy.cuda.Device(number) as device:
            self.name = str(cupy.cuda.runtime.getDeviceProperties(number)["name"], "utf-8")
            self._num_processors = device.attributes["MultiProcessorCount"]
            self._kernels = {codec: _compile(codec) for codec in _KERNELS}
            self.slots = [_Slot() for _ in range(_NUM_SLOTS)]

    def launch(self, codec: Codec, arguments: Sequence[object], num_blocks: int) -> None:
        """Start the kernel of a codec on the current stream, with no more CTAs than the device holds at once."""
        kernel, num_resident = self._kernels[codec]
        grid = min(-(-num_blocks // _WARPS_PER_CTA), self._num_processors * num_resident)
        kernel((grid,), (32 * _WARPS_PER_CTA,), (*arguments, np.uint32(num_blocks)), shared_mem=_shared_bytes(codec))

    def release(self) -> None:
        """Give all device memory of the slots back to CUDA."""
        for slot in self.slots:
            slot.stream.synchronize()
            slot.release()
        cupy.get_default_memory_pool().free_all_blocks()


class GpuEngine:
    """Decompresses on one or more GPUs, in turn; compresses on the CPU. Host threads may share it."""

    name = "gpu"

    def __init__(self, devices: Sequence[int] = (0,), num_threads: int = 0, reason: str = "asked for") -> None:
        """Use the CUDA devices of these numbers, and `num_threads` host threads (0: one per core).

        Raises EngineUnavailableError where one of them cannot be used.
        """
        self._cpu = CpuEngine(num_threads)
        self.num_threads = self._cpu.num_threads
        try:
            self._devices = [_Device(number) for number in devices]
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.compiler.CompileException) as error:
            raise EngineUnavailableError(f"the GPU cannot be used: {error}") from None
        self._turns = itertools.cycle(self._devices)
        self.first_device = self._devices[0]
        self.reason = f"{reason} ({', '.join(device.name for device in self._devices)})"

    def encode_blocks(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """See Engine.encode_blocks; the CPU engine does it."""
        return self._cpu.encode_blocks(stream, block_size, options)

    def allocate(self, size: int) -> memoryview:
        """See Engine.allocate: pinned memory, to which the device writes without a further copy."""
        return _pinned_array(size).data

    def decode_blocks(self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool = False) -> list[BlockStatus]:
        """See Engine.decode_blocks. Checksums are checked on the host."""
        batch = _Batch(blocks, out, self.num_threads)
        device = next(self._turns)
        with device.lock, cupy.cuda.Device(device.number):
            batch.decode(device)
        return batch.settle(verify=verify)


class ResidentBlocks:
    """Blocks whose payloads stay in the memory of an engine's first device: `payloads`, which decode to `output`."""

    def __init__(self, engine: GpuEngine, blocks: Sequence[Buffer]) -> None:
        """Upload `blocks`, none of them stored; raises ValueError where one is damaged."""
        self._facts = np.frombuffer(_codec.read_headers(blocks), _FACTS)
        if self._facts["status"].any() or not self._facts["codec"].all():
            raise ValueError("only undamaged, compressed blocks can stay in device memory")
        self._device = engine.first_device
        payload_places, payload_bytes = _lay_out(self._facts["payload_size"], _PAYLOAD_ALIGNMENT)
        output_places, self.output_bytes = _lay_out(self._facts["uncompressed_size"], _OUTPUT_ALIGNMENT)
        part = _Part(np.arange(len(blocks)), payload_places, payload_bytes, output_places, self.output_bytes)
        staging = np.zeros(payload_bytes + _PADDING, np.uint8)
        if any(_codec.gather_payloads(blocks, payload_places.data, staging.data, engine.num_threads)):
            raise ValueError("only undamaged blocks can stay in device memory")
        with cupy.cuda.Device(self._device.number):
            self.payloads = cupy.asarray(staging)
            self._fields = cupy.asarray(_describe(self._facts, part).view(np.uint8))
            self._statuses = cupy.empty(len(blocks), cupy.uint8)
            self.output = cupy.empty(self.output_bytes + _PADDING, cupy.uint8)

    def decode(self) -> None:
        """Queue the decoding of all blocks into `output`, each at a multiple of 32 bytes, on the current stream."""
        count = self._facts.size
        self._fields[24 * count :].fill(0)
        _launch(self._device, self._facts["codec"], self.payloads, self._fields, self.output, self._statuses)

    def all_decoded(self) -> bool:
        """Wait for the last decode; whether every payload was valid."""
        return not bool(self._statuses.any())


class _Batch:
    """One call of decode_blocks."""

    def __init__(self, blocks: Sequence[Buffer], out: memoryview, num_threads: int) -> None:
        self._blocks = blocks
        self._num_threads = num_threads
        self._facts = np.frombuffer(_codec.read_headers(blocks), _FACTS)
        self._sizes = self._facts["uncompressed_size"].astype(np.uint64)
        self._places = np.cumsum(self._sizes, dtype=np.uint64) - self._sizes
        total = int(self._sizes.sum())
        if total > len(out):
            raise ValueError(f"the blocks hold {total} bytes, the output only {len(out)}")
        self._out = out
        self._target = np.frombuffer(out, np.uint8)
        self._statuses = self._facts["status"].copy()
        self._is_direct = _is_pinned(self._target)

    def decode(self, device: _Device) -> None:
        """Decode what passed its checks; parts are halved where the device has too little memory for them."""
        wanted = np.flatnonzero(self._statuses == BlockStatus.OK)
        stored = self._facts["codec"][wanted] == Codec.STORED
        for index in wanted[stored].tolist():
            place = self._out[int(self._places[index]) :]
            self._statuses[index] = _codec.decode_blocks([self._blocks[index]], place, False, 1)[0]
        rest = wanted[~stored]
        while rest.size:
            try:
                self._decode_parts(device, rest)
                return
            except cupy.cuda.memory.OutOfMemoryError as error:
                device.release()
                if device.part_bytes <= _LEAST_PART_BYTES:
                    raise EngineUnavailableError(f"{device.name} has too little free memory") from error
                device.part_bytes //= 2

    def _decode_parts(self, device: _Device, wanted: NDArray[np.intp]) -> None:
        """Let parts pass through the slots of the device."""
        running: deque[tuple[_Slot, _Part]] = deque()
        for part, slot in zip(self._cut(wanted, device.part_bytes), itertools.cycle(device.slots), strict=False):
            if len(running) == len(device.slots):
                self._finish(*running.popleft())
            with slot.stream:
                self._start(device, slot, part)
            running.append((slot, part))
        for slot, part in running:
            self._finish(slot, part)

    def _cut(self, wanted: NDArray[np.intp], part_bytes: int) -> Iterator[_Part]:
        """Parts with up to `part_bytes` of output each, and less at first."""
        sizes = self._sizes[wanted]
        ends = _part_ends(int(sizes.sum()), part_bytes)
        numbers = np.searchsorted(ends, np.cumsum(sizes) - sizes, side="right")
        for indexes in np.split(wanted, np.flatnonzero(np.diff(numbers)) + 1):
            payload_places, payload_bytes = _lay_out(self._facts["payload_size"][indexes], _PAYLOAD_ALIGNMENT)
            output_places, output_bytes = _lay_out(self._sizes[indexes], _OUTPUT_ALIGNMENT)
            yield _Part(indexes, payload_places, payload_bytes, output_places, output_bytes)

    def _start(self, device: _Device, slot: _Slot, part: _Part) -> None:
        """Queue the copies and kernels of a part."""
        staging = slot.pinned("payloads", part.payload_bytes)
        blocks = [self._blocks[index] for index in part.indexes]
        checks = _codec.gather_payloads(blocks, part.payload_places.data, staging.data, self._num_threads)
        self._statuses[part.indexes] = np.frombuffer(checks, np.uint8)
        payloads = slot.device("payloads", part.payload_bytes + _PADDING)
        payloads[: part.payload_bytes].set(staging, slot.stream)
        output = slot.device("output", part.output_bytes + _PADDING)
        statuses = slot.device("statuses", part.indexes.size)
        facts = self._facts[part.indexes]
        facts["payload_size"][self._statuses[part.indexes] != BlockStatus.OK] = 0  # refused, not decoded
        columns = _describe(facts, part)
        fields = slot.pinned("fields", columns.nbytes)
        fields[:] = columns.view(np.uint8)
        on_device = slot.device("fields", columns.nbytes)
        on_device.set(fields, slot.stream)
        _launch(device, facts["codec"], payloads, on_device, output, statuses)
        self._fetch(slot, part, output, statuses)

    def _fetch(self, slot: _Slot, part: _Part, output: cupy.ndarray, statuses: cupy.ndarray) -> None:
        """Queue the copies of what the kernels made."""
        statuses.get(slot.stream, out=slot.pinned("statuses", part.indexes.size), blocking=False)
        if not self._is_direct:
            output[: part.output_bytes].get(slot.stream, out=slot.pinned("output", part.output_bytes), blocking=False)
            return
        for first, place, size in self._runs(part):
            output[first : first + size].get(slot.stream, out=self._target[place : place + size], blocking=False)

    def _runs(self, part: _Part) -> Iterator[tuple[int, int, int]]:
        """Blocks that lie behind each other on the device and in the output: place in each, and bytes."""
        places = self._places[part.indexes]
        sizes = self._sizes[part.indexes]
        breaks = (part.output_places[1:] - part.output_places[:-1] != sizes[:-1]) | (
            places[1:] - places[:-1] != sizes[:-1]
        )
        for run in np.split(np.arange(places.size), np.flatnonzero(breaks) + 1):
            yield int(part.output_places[run[0]]), int(places[run[0]]), int(sizes[run].sum())

    def _finish(self, slot: _Slot, part: _Part) -> None:
        """Wait for a part, and take over its statuses and output."""
        slot.stream.synchronize()
        order = np.argsort(self._facts["codec"][part.indexes], kind="stable")
        indexes = part.indexes[order]
        is_sound = self._statuses[indexes] == BlockStatus.OK
        self._statuses[indexes[is_sound]] = slot.pinned("statuses", part.indexes.size)[is_sound]
        if not self._is_direct:
            output = slot.pinned("output", part.output_bytes)
            for first, place, size in self._runs(part):
                self._target[place : place + size] = output[first : first + size]

    def settle(self, *, verify: bool) -> list[BlockStatus]:
        """Check the decoded bytes if asked to, and leave zeros for damaged blocks."""
        if verify:
            matches = _codec.check_contents(self._blocks, self._places.data, self._out, self._num_threads)
            wrong = np.frombuffer(matches, np.uint8) == 0
            self._statuses[(self._statuses == BlockStatus.OK) & wrong] = BlockStatus.BAD_CONTENT
        for index in np.flatnonzero(self._statuses):
            start = int(self._places[index])
            self._target[start : start + int(self._sizes[index])] = 0
        return [_STATUSES[status] for status in self._statuses]


def _describe(facts: NDArray[np.void], part: _Part) -> NDArray[np.uint64]:
    """What kernels must know of each block: rows of payload places, output places and sizes, and a row of zeros.

    Columns are in the order of the codecs, so that the blocks of one lie behind each other.
    """
    order = np.argsort(facts["codec"], kind="stable")
    rows = np.zeros((4, order.size), np.uint64)
    rows[0] = part.payload_places[order]
    rows[1] = part.output_places[order]
    sizes = rows[2].view(np.uint32)
    sizes[: order.size] = facts["payload_size"][order]
    sizes[order.size :] = facts["uncompressed_size"][order]
    return rows.ravel()


def _launch(
    device: _Device,
    codecs: NDArray[np.uint32],
    payloads: cupy.ndarray,
    fields: cupy.ndarray,
    output: cupy.ndarray,
    statuses: cupy.ndarray,
) -> None:
    """Start a kernel for each codec, on the current stream; `fields` are the bytes of _describe."""
    count = codecs.size
    rows = fields.view(cupy.uint64)
    sizes = rows[2 * count : 3 * count].view(cupy.uint32)
    counters = rows[3 * count :].view(cupy.uint32)
    start = 0
    for codec in _KERNELS:
        end = start + int(np.count_nonzero(codecs == codec))
        if end > start:
            device.launch(
                codec,
                (payloads, rows[start:end], sizes[start:end], output, rows[count + start : count + end],
                 sizes[count + start : count + end], statuses[start:end], counters[start:]),
                end - start,
            )  # fmt: skip
        start = end


def _part_ends(total: int, part_bytes: int) -> NDArray[np.uint64]:
    """Where parts of `total` bytes end: each is twice the one before, up to `part_bytes`."""
    size = min(_FIRST_PART_BYTES, part_bytes)
    ends = [size]
    while ends[-1] < total:
        size = min(2 * size, part_bytes)
        ends.append(ends[-1] + size)
    return np.array(ends, np.uint64)


def _lay_out(sizes: NDArray[np.integer], alignment: int) -> tuple[NDArray[np.uint64], int]:
    """Places for pieces of these sizes, one behind the other at multiples of `alignment`, and where they end."""
    padded = -(-sizes.astype(np.int64) // alignment) * alignment
    ends = np.cumsum(padded)
    return (ends - padded).astype(np.uint64), int(ends[-1])


def _shared_bytes(codec: Codec) -> int:
    common, per_warp = SHARED_BYTES[_KERNELS[codec]]
    return common + _WARPS_PER_CTA * per_warp


def _compile(codec: Codec) -> tuple[cupy.RawKernel, int]:
    """A kernel for the present device, from CuPy's cache where it is there, and how many CTAs a processor holds."""
    module = cupy.RawModule(code=read_source(_KERNELS[codec]), options=compile_options(), backend="nvrtc")
    kernel = module.get_function(_KERNELS[codec])
    kernel.max_dynamic_shared_size_bytes = _shared_bytes(codec)
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        kernel.kernel.ptr, 32 * _WARPS_PER_CTA, _shared_bytes(codec)
    )
    return kernel, max(int(resident), 1)


def _pinned_array(size: int) -> NDArray[np.uint8]:
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(max(size, 1)), np.uint8, size)


def _is_pinned(array: NDArray[np.uint8]) -> bool:
    """Whether the device can write to host memory by itself."""
    if not array.size:
        return False
    attributes = cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data)
    return bool(attributes.type == cupy.cuda.runtime.memoryTypeHost)
