"""A GPU that keeps the content of decoded blocks in its memory, so that kernels can process the text there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native.blocks import WholeBlocks
from gompfs.codec.decode_work import DecodeWork
from gompfs.gpu.decode.buffers import count_work
from gompfs.gpu.decode.device import Device
from gompfs.gpu.decode.layout import OUTPUT_ALIGNMENT, lay_out
from gompfs.gpu.decode.outputs import DeviceOutput
from gompfs.gpu.decode.plan_decoder import Decoding, PlanDecoder
from gompfs.gpu.device.arrays import DecodedText
from gompfs.gpu.device.cuda import PADDING
from gompfs.gpu.device.cupy_arrays import GpuArrays

if TYPE_CHECKING:
    from gompfs.gpu.decode.block_source import BlockSource


class GpuText(GpuArrays):
    """See TextDevice. It shares the device of a GPU engine and decodes between the engine's batches."""

    def __init__(self, device: Device, decode_work: Mapping[str, DecodeWork], memory: int = 0) -> None:
        """Uses the GPU of `device`, and `memory` bytes of it as GpuArrays does. `decode_work` is the engine's."""
        super().__init__(device.number, memory)
        self._device = device
        self._decode_work = decode_work

    def decoder(self, source: BlockSource) -> GpuTextDecoder:
        """See TextDevice.decoder."""
        return GpuTextDecoder(self._device, source, self._decode_work)


class GpuTextDecoder:
    """See TextDecoder."""

    def __init__(self, device: Device, source: BlockSource, decode_work: Mapping[str, DecodeWork]) -> None:
        """Decodes blocks of `source` on `device`."""
        self._source = source
        self._decoder = PlanDecoder(device, source)
        self._decode_work = decode_work

    def decode(self, numbers: NDArray[np.uint64]) -> DecodedText:
        """See TextDecoder.decode. The text is allocated by the current allocator."""
        sizes = self._source.uncompressed_sizes[numbers].astype(np.uint32)
        offsets, size = lay_out(sizes, OUTPUT_ALIGNMENT)
        text = cupy.empty(size + PADDING, cupy.uint8)
        plan, output = WholeBlocks(sizes, offsets), DeviceOutput(text, in_place=True)
        stream = cupy.cuda.get_current_stream()

        def run() -> Decoding:
            return self._decoder.decode(plan, numbers, output, stream)

        decoding = count_work(self._decode_work, run, numbers.size, int(sizes.sum()))

        def statuses() -> NDArray[np.uint8]:
            decoding.wait()
            return decoding.statuses

        return DecodedText(text, offsets, statuses)
