"""The GPU engine: runs the CUDA kernels of kernels through CuPy."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

import cupy
import numpy as np

from gompfs._native import codec as _codec
from gompfs.codec import BlockStatus, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.codec.headers import read_headers
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.batch import OUTPUT_ALIGNMENT, PAYLOAD_ALIGNMENT, Batch, describe, launch, lay_out
from gompfs.gpu.cupy_arrays import GpuArrays
from gompfs.gpu.cupy_text import GpuText
from gompfs.gpu.device import PADDING, Device, pinned_array
from gompfs.gpu.repair import build_rules
from gompfs.grammar import PartsInRules, PartsInText
from gompfs.options import GpuOptions


class GpuEngine:
    """Decompresses on one or more GPUs in turn, and builds grammars on the first of them. Compresses on the CPU.

    Several host threads may use it. In a forked child, every method that needs a device raises EngineUnavailableError.
    """

    name = "gpu"
    batch_bytes = 32 << 20

    def __init__(
        self,
        devices: Sequence[int] = (0,),
        num_threads: int = 0,
        reason: str = "asked for",
        options: GpuOptions | None = None,
        cpu: CpuEngine | None = None,
    ) -> None:
        """Uses the CUDA devices with these numbers, and the host threads of `cpu` or `num_threads` (0: one per core).

        Without `options`, no payloads stay in device memory. Raises EngineUnavailableError if a device cannot be used.
        """
        self._cpu = cpu or CpuEngine(num_threads)
        self.decode_work = {**self._cpu.decode_work, self.name: DecodeWork()}
        self.num_threads = self._cpu.num_threads
        options = options or GpuOptions(resident="off")
        try:
            self._devices = [Device(number, options) for number in devices]
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.compiler.CompileException) as error:
            raise EngineUnavailableError(f"the GPU cannot be used: {error}") from None
        self._process = os.getpid()
        self._turns = itertools.cycle(self._devices)
        self.first_device = self._devices[0]
        self._arrays = GpuText(self.first_device, self.num_threads, self.decode_work, options.memory or 0)
        self._reason = f"{reason} ({', '.join(device.name for device in self._devices)})"

    @property
    def reason(self) -> str:
        """Why this engine was chosen, and how much device memory holds payloads, as text for users."""
        kept = sum(device.store.num_bytes for device in self._devices)
        return f"{self._reason}; {kept >> 20} MiB for payloads that stay" if kept else self._reason

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise EngineUnavailableError(
                "the gpu engine cannot be used in a forked process, as CUDA does not work there: start processes by "
                "spawn, or open the archive with engine='cpu'"
            )

    def array_device(self, num_symbols: int) -> GpuArrays:
        """See Engine.array_device. Returns the first of the devices."""
        self._check_process()
        return self._arrays

    def text_device(self, num_bytes: int) -> GpuText:
        """See Engine.text_device. Returns the first of the devices."""
        self._check_process()
        return self._arrays

    def encode_blocks(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """See Engine.encode_blocks. The CPU engine does the work."""
        return self._cpu.encode_blocks(stream, block_size, options)

    def build_rules(self, parts: PartsInText) -> PartsInRules:
        """See RuleBuilder. Uses the first of the devices."""
        self._check_process()
        return build_rules(self._arrays, parts)

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu. Returns False: the user asked for the GPU."""
        return False

    def allocate(self, size: int) -> memoryview:
        """See Engine.allocate. Returns pinned memory, which the device writes to without a further copy."""
        self._check_process()
        return pinned_array(size).data

    def decode_blocks(self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool = False) -> list[BlockStatus]:
        """See Engine.decode_blocks. The host checks the checksums before it uploads the payloads."""
        self._check_process()
        batch = Batch(blocks, out, self.num_threads)
        device = next(self._turns)
        with device.lock, cupy.cuda.Device(device.number):
            batch.decode(device, self.decode_work)
        return batch.settle(verify=verify)


class ResidentBlocks:
    """Blocks whose payloads are in the memory of an engine's first device, to measure kernels without transfers."""

    def __init__(self, engine: GpuEngine, blocks: Sequence[Buffer]) -> None:
        """Uploads the payloads of `blocks`. Raises ValueError if a block is damaged or has the codec `stored`."""
        self._facts = read_headers(blocks)
        if self._facts["status"].any() or not self._facts["codec"].all():
            raise ValueError("only undamaged, compressed blocks can stay in device memory")
        self._device = engine.first_device
        places, size = lay_out(self._facts["payload_size"], PAYLOAD_ALIGNMENT)
        output_places, self.output_bytes = lay_out(self._facts["uncompressed_size"], OUTPUT_ALIGNMENT)
        staging = np.zeros(size + PADDING, np.uint8)
        if any(_codec.gather_payloads(blocks, places.data, staging.data, engine.num_threads)):
            raise ValueError("only undamaged blocks can stay in device memory")
        with cupy.cuda.Device(self._device.number):
            self.payloads = cupy.asarray(staging)
            addresses = places + np.uint64(self.payloads.data.ptr)
            self._fields = cupy.asarray(describe(self._facts, addresses, output_places).view(np.uint8))
            self._statuses = cupy.empty(len(blocks), cupy.uint8)
            self.output = cupy.empty(self.output_bytes + PADDING, cupy.uint8)

    def decode(self) -> None:
        """Queues the decoding of all blocks on the current stream.

        The blocks are decoded into `output`, each at a multiple of 32 bytes.
        """
        self._fields[24 * self._facts.size :].fill(0)
        launch(self._device, self._facts["codec"], self._fields, self.output, self._statuses)

    def all_decoded(self) -> bool:
        """Waits for the last decode and returns whether every payload was valid."""
        return not bool(self._statuses.any())
