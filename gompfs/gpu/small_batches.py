"""Small batches of blocks on one GPU: a whole CTA for each block, started from C++ (native/gpu)."""

from __future__ import annotations

from collections.abc import Sequence

import cupy

from gompfs._native import gpu as _gpu
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.gpu.cuda import PADDING, load_kernel, pinned_array
from gompfs.gpu.kernels import SHARED_BYTES

MAX_BLOCKS = 256  # larger batches are faster in slices that overlap
_MAX_BLOCK_SIZE = 1 << 16
_DRIVER = "libcuda.so.1"
_KERNELS = ("codec/decode_byte_wide", "codec/decode_bit_wide")  # in the order of the codecs' numbers
_SHARED_BYTES = [SHARED_BYTES[name][0] for name in _KERNELS]
_THREADS_PER_CTA = 1024
_BYTES_PER_BLOCK = 32  # of what the kernels read about a block, and of its status


class SmallBatches:
    """Decodes batches of up to `max_blocks` blocks of gompresso-byte and gompresso-bit, each of at most 64 KiB."""

    def __init__(self, memory: int) -> None:
        """Loads the kernels for the current device, and allocates up to `memory` bytes on it; see `are_possible`."""
        max_blocks = self.max_blocks = min(memory // (2 * _MAX_BLOCK_SIZE), MAX_BLOCKS)
        self._kernels = [
            load_kernel(name, _THREADS_PER_CTA, size)[0] for name, size in zip(_KERNELS, _SHARED_BYTES, strict=True)
        ]
        size = max_blocks * (_MAX_BLOCK_SIZE + _BYTES_PER_BLOCK) + PADDING
        self._input, self._output = cupy.empty(size, cupy.uint8), cupy.empty(size, cupy.uint8)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._native = _gpu.SmallBatches(
            library=_DRIVER,
            functions=[kernel.ptr for kernel in self._kernels],
            num_threads=_THREADS_PER_CTA,
            shared_bytes=_SHARED_BYTES,
            context_and_stream=(cupy.cuda.driver.ctxGetCurrent(), self._stream.ptr),
            pinned=(pinned_array(size).data, pinned_array(size).data),
            on_device=(self._input.data.ptr, self._output.data.ptr),
            max_blocks=max_blocks,
        )

    @staticmethod
    def are_possible() -> bool:
        """Returns whether the current device has enough shared memory. Hopper is the first generation that has."""
        return bool(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] >= max(_SHARED_BYTES))

    def decode(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        sizes: Sequence[int] | None,
        verify: bool,
        num_threads: int,
        work: DecodeWork,
    ) -> bytes | None:
        """Checks and decodes blocks like `_native.codec.decode_blocks`, and returns a status for each. Counts `work`.

        Returns None, and leaves `out` as it is, for a batch that must be decoded in another way: one that is too large,
        or that has a block with a damaged header, of another codec, or above 64 KiB. Raises RuntimeError if the device
        fails. One thread at a time may call it.
        """
        return self._native.decode(blocks, out, sizes, verify, num_threads, work)
