"""Blocks whose payloads are in device memory already, to measure kernels without transfers."""

from __future__ import annotations

from collections.abc import Sequence

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs._native.parts import SymbolTable
from gompfs.codec.block import Buffer
from gompfs.codec.headers import read_headers
from gompfs.engine.gpu import GpuEngine
from gompfs.gpu.batch import NUM_ROWS, OUTPUT_ALIGNMENT, PAYLOAD_ALIGNMENT, describe, launch, lay_out
from gompfs.gpu.cuda import PADDING


class ResidentBlocks:
    """Blocks whose payloads are in the memory of an engine's first device."""

    def __init__(
        self,
        engine: GpuEngine,
        blocks: Sequence[Buffer],
        symbols: Sequence[SymbolTable | None] | None = None,
        heads: NDArray[np.uint64] | None = None,
    ) -> None:
        """Uploads the payloads of `blocks`. Raises ValueError if a block is damaged or has the codec `stored`.

        Blocks of gompresso-tadoc need the symbols of their parts, and the device addresses of their heads.
        """
        self._facts = read_headers(blocks, symbols)
        if self._facts["status"].any() or not self._facts["codec"].all():
            raise ValueError("only undamaged, compressed blocks can stay in device memory")
        self._device = engine.first_device
        offsets, size = lay_out(self._facts["payload_size"], PAYLOAD_ALIGNMENT)
        output_offsets, self.output_bytes = lay_out(self._facts["uncompressed_size"], OUTPUT_ALIGNMENT)
        staging = np.zeros(size + PADDING, np.uint8)
        if any(_codec.gather_payloads(blocks, self._facts.data, offsets.data, staging.data, engine.num_threads)):
            raise ValueError("only undamaged blocks can stay in device memory")
        with cupy.cuda.Device(self._device.number):
            self.payloads = cupy.asarray(staging)
            addresses = offsets + np.uint64(self.payloads.data.ptr)
            of_heads = np.zeros(len(blocks), np.uint64) if heads is None else heads
            fields = describe(self._facts, addresses, output_offsets, of_heads)
            self._fields = cupy.asarray(fields.view(np.uint8))
            self._statuses = cupy.empty(len(blocks), cupy.uint8)
            self.output = cupy.empty(self.output_bytes + PADDING, cupy.uint8)

    def decode(self) -> None:
        """Queues the decoding of all blocks on the current stream.

        The blocks are decoded into `output`, each at a multiple of 32 bytes.
        """
        self._fields[8 * (NUM_ROWS - 1) * self._facts.size :].fill(0)
        launch(self._device, self._facts["codec"], self._fields, self.output, self._statuses)

    def all_decoded(self) -> bool:
        """Waits for the last decode and returns whether every payload was valid."""
        return not bool(self._statuses.any())
