"""A GPU that keeps the content of decoded blocks in its memory, so that kernels can process the text there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.codec import BlockStatus
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.gpu.arrays import Array
from gompfs.gpu.batch import NUM_ROWS, OUTPUT_ALIGNMENT, GpuBatch, GpuSlice, describe, fetch_statuses, launch, lay_out
from gompfs.gpu.cuda import PADDING
from gompfs.gpu.cupy_arrays import GpuArrays
from gompfs.gpu.device import Device

if TYPE_CHECKING:
    from gompfs._native.parts import SymbolTable

_MOST_COPIED = 64  # blocks of a batch whose content stays in device memory, if they have no payloads there


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

    def decode_and_keep(
        self,
        blocks: Sequence[Buffer],
        sizes: NDArray[np.integer],
        symbols: Sequence[SymbolTable | None] | None = None,
    ) -> tuple[Array, NDArray[np.uint64], NDArray[np.uint8], ResidentBlocks | None]:
        """See TextDevice.decode_and_keep."""
        losses = num_losses(self._device)
        batch = self._decode(blocks, sizes, symbols)
        return batch.output, batch.offsets, batch.statuses, batch.resident_blocks(self._device, losses)

    def _decode(
        self, blocks: Sequence[Buffer], sizes: NDArray[np.integer], symbols: Sequence[SymbolTable | None] | None
    ) -> DeviceBatch:
        batch = DeviceBatch(blocks, self._num_threads, sizes, symbols)
        cupy.cuda.get_current_stream().synchronize()  # work that used the output's memory before is complete
        pool = cupy.get_default_memory_pool()  # allocate slots outside this object's own pool, since slots live longer
        with self._device.lock, cupy.cuda.using_allocator(pool.malloc):
            batch.decode(self._device, self._decode_work)
        return batch


def num_losses(device: Device) -> tuple[int, int]:
    """Returns how often payloads and heads were dropped from the memory of a device."""
    return device.store.num_cleared, device.heads.num_losses


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

    def resident_blocks(self, device: Device, losses: tuple[int, int]) -> ResidentBlocks | None:
        """Returns the blocks, if all are sound and their payloads and heads stay in the memory of `device`.

        `losses` are those before the blocks were decoded: a head may have been dropped for another one of this batch.
        Of a few blocks that the CPU has decoded, such as stored ones, the content stays.
        """
        addresses = device.store.find(self._facts["checksum"])
        present, absent = np.flatnonzero(addresses), np.flatnonzero(addresses == 0)
        if not present.size or absent.size > _MOST_COPIED or self._statuses.any():
            return None
        facts = self._facts[present]
        fields = describe(facts, addresses[present], self.offsets[present], self._heads[present])
        ranges = zip(self.offsets[absent].tolist(), self._sizes[absent].tolist(), strict=True)
        copied = [(slice(start, start + size), self.output[start : start + size].copy()) for start, size in ranges]
        return ResidentBlocks(device, losses, facts["codec"].copy(), fields, self.output.size, copied)

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


class ResidentBlocks:
    """See KeptBlocks. Remembers where the payloads are, and the heads that they need."""

    def __init__(
        self,
        device: Device,
        losses: tuple[int, int],
        codecs: NDArray[np.uint32],
        fields: NDArray[np.uint64],
        output_bytes: int,
        copied: Sequence[tuple[slice, cupy.ndarray]],
    ) -> None:
        """The blocks are valid until `device` has other `losses`.

        `fields` are what `describe` has returned. `copied` are ranges of the output, and their content.
        """
        self._device = device
        self._losses = losses
        self._codecs = codecs
        self._output_bytes = output_bytes
        self._copied = copied
        self._fields = cupy.empty(fields.nbytes, cupy.uint8)
        self._fields.set(fields.view(np.uint8))

    @property
    def is_valid(self) -> bool:
        """See KeptBlocks.is_valid."""
        return num_losses(self._device) == self._losses

    def decode(self) -> cupy.ndarray:
        """See KeptBlocks.decode."""
        output = cupy.empty(self._output_bytes, cupy.uint8)
        statuses = cupy.empty(self._codecs.size, cupy.uint8)  # the blocks are sound
        counters = self._fields.size // NUM_ROWS * (NUM_ROWS - 1)
        self._fields[counters:] = 0
        launch(self._device, self._codecs, self._fields, output, statuses)
        for target, content in self._copied:
            output[target] = content
        return output
