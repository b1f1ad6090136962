"""The GPU engine: decodes and encodes on GPUs, by the CUDA kernels of kernels/codec and kernels/encode."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakMethod

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.codec import BlockStatus, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.decode.archive_decoder import ArchiveDecoder
from gompfs.gpu.decode.archive_source import ArchiveSource
from gompfs.gpu.decode.buffer_source import BufferSource
from gompfs.gpu.decode.buffers import decode_to_host
from gompfs.gpu.decode.device import Device
from gompfs.gpu.decode.plan_decoder import PlanDecoder
from gompfs.gpu.decode.shares import share_blocks
from gompfs.gpu.decode.text import GpuText
from gompfs.gpu.device.cuda import CPUS_NEAR_DEVICES, KERNEL_MODULES, check_process, pinned_array
from gompfs.gpu.device.spread import run_together
from gompfs.gpu.encode.encoder import GpuEncoder, can_encode
from gompfs.light_types import replaced
from gompfs.options import GpuOptions

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary
    from gompfs.engine.base import PartSymbols
    from gompfs.gpu.decode.archive_source import StoredBlocks

_BATCH_BYTES = 32 << 20  # of a device
_LEAST_ENCODED = 8 << 20
_RESIDENT_SHARE = 8  # of the free memory, for the words of an archive


class GpuEngine:
    """Decompresses and compresses on one or more GPUs, and accelerates on the first of them.

    Large batches are divided among the GPUs, and smaller ones go to the GPUs in turn. The CPU decodes batches below
    `least_decoded` bytes of output, which take a GPU longer.

    The CPU encodes gompresso-byte from level 6 on, and blocks with dependency elimination, with the same bytes.
    Several host threads may use it. In a forked child, every method that needs a device raises EngineUnavailableError.
    """

    name = "gpu"
    # Two batches fill the slots of a GpuEncoder. Larger ones would not encode faster, and four are in memory at a time.
    encode_batch_bytes = 64 << 20
    least_decoded = 8 << 20

    def __init__(
        self,
        devices: Sequence[int] = (0,),
        num_threads: int = 0,
        reason: str = "asked for",
        options: GpuOptions | None = None,
        cpu: CpuEngine | None = None,
    ) -> None:
        """Uses the CUDA devices with these numbers, and the host threads of `cpu` or `num_threads` (0: one per core).

        Without `options`, no payloads stay in device memory. `options` limits the memory of each device. Raises
        EngineUnavailableError if a device cannot be used.
        """
        self._cpu = cpu or CpuEngine(num_threads)
        self.decode_work = {**self._cpu.decode_work, self.name: DecodeWork()}
        self.num_threads = self._cpu.num_threads
        options = options or GpuOptions(resident="off")
        self.batch_bytes = _BATCH_BYTES * len(devices)
        self.num_encode_batches = 2 * len(devices)
        # an archive is divided among the devices
        options = replaced(options, archive_size=-(-options.archive_size // len(devices)))
        try:
            self._devices = [Device(number, options, self.num_threads) for number in devices]
            for number in devices if len(devices) > 1 else ():
                CPUS_NEAR_DEVICES.add(number)
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.compiler.CompileException) as error:
            raise EngineUnavailableError(f"the GPU cannot be used: {error}") from None
        self._threads = ThreadPoolExecutor(len(devices), thread_name_prefix="gompfs-device")
        self._encoders: dict[int, GpuEncoder] = {}
        self._encode_lock = threading.Lock()
        self._encode_memory = options.memory or 0
        self._process = os.getpid()
        self._turns, self._encode_turns = itertools.cycle(self._devices), itertools.cycle(self._devices)
        self.first_device = self._devices[0]
        texts = [GpuText(device, self.decode_work, options.memory or 0) for device in self._devices]
        free_memory = min(text.free_memory for text in texts)
        room = 0 if options.resident == "off" else free_memory // _RESIDENT_SHARE
        if options.resident != "off" and options.stats_memory is not None:
            room = options.stats_memory
        self.accelerator = GpuAccelerator(texts, self._process, GpuResidentMemory(self._devices, texts, room))
        self._reason = f"{reason} ({', '.join(device.name for device in self._devices)})"

    @property
    def reason(self) -> str:
        """Why this engine was chosen, its kernels, and how much device memory holds payloads, as text for users."""
        kept = sum(device.store.num_bytes for device in self._devices)
        memory = f"; {kept >> 20} MiB for payloads that stay" if kept else ""
        small = f"; the CPU decodes batches below {self.least_decoded >> 20} MiB" if self.least_decoded else ""
        return f"{self._reason}; {KERNEL_MODULES.describe()}{memory}{small}"

    def device(self, number: int) -> Device | None:
        """Returns the CUDA device with a number, or None if this engine does not use it."""
        check_process(self._process)
        return next((device for device in self._devices if device.number == number), None)

    def encode_blocks(
        self, stream: Buffer, block_size: int, options: CodecOptions, dictionary: Dictionary | None = None
    ) -> list[EncodedBlock]:
        """See Engine.encode_blocks.

        The CPU encodes batches that are too small for a GPU, those of codecs and levels that no kernel has, and those
        with a dictionary.
        """
        is_small = memoryview(stream).nbytes < _LEAST_ENCODED
        if is_small or dictionary is not None or not can_encode(block_size, options):
            return self._cpu.encode_blocks(stream, block_size, options, dictionary)
        check_process(self._process)
        return self._next_encoder().encode(stream, block_size, options)

    def _next_encoder(self) -> GpuEncoder:
        """Returns the encoder of the next device. Its kernels are loaded when they are first used."""
        number = next(self._encode_turns).number
        with self._encode_lock:
            if number not in self._encoders:
                self._encoders[number] = GpuEncoder(number, self._encode_memory, self.num_threads)
            return self._encoders[number]

    @property
    def num_reencoded(self) -> int:
        """See Engine.num_reencoded."""
        return sum(encoder.num_failed for encoder in list(self._encoders.values()))

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu."""
        return num_bytes < self.least_decoded

    def archive_decoder(self, stored: StoredBlocks, *, verify: bool) -> ArchiveDecoder:
        """See Engine.archive_decoder. Heads of parts stay in device memory until newer ones need the space."""
        check_process(self._process)
        source = ArchiveSource(stored, self.num_threads)
        return ArchiveDecoder(
            self._devices,
            source,
            stored.block_size,
            self.allocate,
            self._threads,
            self.num_threads,
            self.decode_work,
            verify=verify,
        )

    def note_batch(self, num_bytes: int, seconds: float, *, on_cpu: bool) -> None:
        """See Engine.note_batch. There is no choice."""

    def prepare(self, path: str | None) -> None:
        """See Engine.prepare."""

    def allocate(self, size: int) -> memoryview:
        """See Engine.allocate. Large buffers are pinned memory, which the device writes to without a further copy."""
        check_process(self._process)
        if size < self.least_decoded:
            return self._cpu.allocate(size)
        with cupy.cuda.Device(self.first_device.number):
            return pinned_array(size).data

    def decode_blocks(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        *,
        sizes: Sequence[int] | None = None,
        symbols: Sequence[PartSymbols | None] | None = None,
        verify: bool = False,
    ) -> list[BlockStatus]:
        """See Engine.decode_blocks. The host checks the checksums before it uploads the payloads."""
        check_process(self._process)
        if len(out) < self.least_decoded:
            return self._cpu.decode_blocks(blocks, out, sizes=sizes, symbols=symbols, verify=verify)
        device = next(self._turns)
        source = BufferSource(blocks, sizes, symbols, self.num_threads)
        offsets = np.cumsum(source.uncompressed_sizes, dtype=np.uint64) - source.uncompressed_sizes
        total = int(source.uncompressed_sizes.sum(dtype=np.uint64))
        if total > len(out):
            raise ValueError(f"the blocks hold {total} bytes, the output only {len(out)}")

        def decode_share(device: Device, indexes: NDArray[np.intp]) -> NDArray[np.uint8]:
            decoder = PlanDecoder(device, source, verify=verify)
            numbers = indexes.astype(np.uint64)
            return decode_to_host(decoder, numbers, offsets[indexes], out, self.num_threads, self.decode_work)

        shares = share_blocks(source.facts, source.uncompressed_sizes, self._devices, device)
        found = run_together([partial(decode_share, *share) for share in shares], self._threads)
        statuses = np.zeros(len(blocks), np.uint8)
        for (_, indexes), of_share in zip(shares, found, strict=True):
            statuses[indexes] = of_share
        return _settle(statuses, source.uncompressed_sizes, out)


def _settle(statuses: NDArray[np.uint8], sizes: NDArray[np.unsignedinteger], out: memoryview) -> list[BlockStatus]:
    """Fills the output of damaged blocks with zeros, and returns the statuses."""
    settled = [BlockStatus.OK] * statuses.size
    ends = np.cumsum(sizes, dtype=np.uint64)
    for index in np.flatnonzero(statuses).tolist():
        settled[index] = BlockStatus(statuses[index])
        end, size = int(ends[index]), int(sizes[index])
        out[end - size : end] = bytes(size)
    return settled


class GpuResidentMemory:
    """See ResidentMemory."""

    is_asked_for = True

    def __init__(self, devices: Sequence[Device], texts: Sequence[GpuText], room: int) -> None:
        """`texts` compute on `devices`, on each of which an archive may keep `room` bytes."""
        self._devices = devices
        self._texts = texts
        self.room = room

    def open(self) -> tuple[Sequence[GpuText], int]:
        """See ResidentMemory.open."""
        return self._texts, self.room

    def call_if_needed(self, give_back: Callable[[], None]) -> None:
        """See ResidentMemory.call_if_needed."""
        for device in self._devices:
            device.lenders.append(WeakMethod(give_back))


class GpuAccelerator:
    """See Accelerator. Searches, and keeps words, on all GPUs. Does other work on the first one."""

    def __init__(self, devices: Sequence[GpuText], process: int, resident: GpuResidentMemory) -> None:
        """Uses `devices`, which work in the process with the number `process`."""
        self._devices = devices
        self._device = devices[0]
        self._process = process
        self._resident = resident

    def arrays(self, num_symbols: int) -> GpuText:
        """See Accelerator.arrays."""
        check_process(self._process)
        return self._device

    def search(self, num_bytes: int) -> Sequence[GpuText]:
        """See Accelerator.search."""
        check_process(self._process)
        return self._devices

    def resident_memory(self) -> GpuResidentMemory | None:
        """See Accelerator.resident_memory."""
        check_process(self._process)
        return self._resident if self._resident.room else None
