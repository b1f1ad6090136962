"""A GPU that keeps the content of decoded blocks in its memory, so that kernels can process the text there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.codec import BlockStatus
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.gpu.arrays import Array
from gompfs.gpu.batch import OUTPUT_ALIGNMENT, GpuBatch, GpuSlice, fetch_statuses, lay_out
from gompfs.gpu.cuda import PADDING
from gompfs.gpu.cupy_arrays import GpuArrays
from gompfs.gpu.device import Device
from gompfs.gpu.staged_text import GpuKeptBlocks, StagedDecoder, StagedText

if TYPE_CHECKING:
    from gompfs._native.parts import SymbolTable
    from gompfs.gpu.block_source import BlockSource


class GpuText(GpuArrays):
    """See TextDevice. It shares the device of a GPU engine and decodes between the engine's batches."""

    def __init__(
        self, device: Device, num_threads: int, decode_work: Mapping[str, DecodeWork], memory: int = 0
    ) -> None:
        """Uses the GPU of `device`. `num_threads` host threads check payloads; `decode_work` is the engine's."""
        super().__init__(device.number, memory)
        self._device = device
        self._num_threads = num_threads
        self._decode_work = decode_work

    def decode_blocks(
        self,
        blocks: Sequence[Buffer],
        sizes: NDArray[np.integer],
        symbols: Sequence[SymbolTable | None] | None = None,
    ) -> tuple[Array, NDArray[np.uint64], NDArray[np.uint8]]:
        """See TextDevice.decode_blocks."""
        batch = self._decode(blocks, sizes, symbols)
        return batch.output, batch.offsets, batch.statuses

    def stage(self, source: BlockSource, numbers: NDArray[np.uint64]) -> StagedText:
        """See TextDevice.stage."""
        with cupy.cuda.Device(self._device.number):
            return self._staged.stage(source, numbers)

    def decode_staged(
        self, staged: StagedText
    ) -> tuple[Array, NDArray[np.uint64], NDArray[np.uint8], GpuKeptBlocks | None]:
        """See TextDevice.decode_staged."""
        return self._staged.decode(staged, self._decode_work)

    @cached_property
    def _staged(self) -> StagedDecoder:
        return StagedDecoder(self._device)

    def _decode(
        self, blocks: Sequence[Buffer], sizes: NDArray[np.integer], symbols: Sequence[SymbolTable | None] | None
    ) -> DeviceBatch:
        batch = DeviceBatch(blocks, self._num_threads, sizes, symbols)
        cupy.cuda.get_current_stream().synchronize()  # work that used the output's memory before is complete
        pool = cupy.get_default_memory_pool()  # allocate slots outside this object's own pool, since slots live longer
        with self._device.lock, cupy.cuda.using_allocator(pool.malloc):
            batch.decode(self._device, self._decode_work)
        return batch


class DeviceBatch(GpuBatch):
    """Blocks that are decoded into one array in device memory, each at a multiple of OUTPUT_ALIGNMENT bytes."""

    def __init__(
        self,
        blocks: Sequence[Buffer],
        num_threads: int,
        sizes: NDArray[np.integer],
        symbols: Sequence[SymbolTable | None] | None = None,
    ) -> None:
        """Allocates the array (`output`, uint8) with the current allocator."""
        self._take(blocks, num_threads, sizes, symbols)
        self._is_direct = True
        self.offsets, size = lay_out(self._sizes, OUTPUT_ALIGNMENT) if len(blocks) else (self._sizes, 0)
        self.output = cupy.empty(size + PADDING, cupy.uint8)

    @property
    def statuses(self) -> NDArray[np.uint8]:
        """One BlockStatus per block (uint8)."""
        return self._statuses.astype(np.uint8)

    def _decode_on_cpu(self, index: int) -> None:
        content = np.empty(int(self._sizes[index]), np.uint8)
        self._decode_into(index, content.data)
        if self._statuses[index] == BlockStatus.OK and content.size:
            start = int(self.offsets[index])
            self.output[start : start + content.size].set(content)

    def _lay_out_output(self, indexes: NDArray[np.intp]) -> tuple[NDArray[np.uint64], int]:
        return self.offsets[indexes], 0

    def _output_of(self, gpu_slice: GpuSlice) -> cupy.ndarray:
        return self.output

    def _fetch(self, gpu_slice: GpuSlice, output: cupy.ndarray, statuses: cupy.ndarray) -> None:
        fetch_statuses(gpu_slice, statuses)
