"""Work on a GPU that is started from C++ (native/gpu). The GIL is released."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from gompfs._native.codec import DecodeWork

class SmallBatches:
    """Decodes small batches of blocks, with one copy to the device, one launch per codec, and one copy back."""

    def __init__(
        self,
        library: str,
        functions: Sequence[int],
        num_threads: int,
        shared_bytes: Sequence[int],
        context_and_stream: tuple[int, int],
        pinned: tuple[Buffer, Buffer],
        on_device: tuple[int, int],
        max_blocks: int,
    ) -> None:
        """Uses CUDA objects that the caller keeps alive, all given by their addresses.

        `library` has the functions of the CUDA driver. `functions` are the kernels for gompresso-byte and
        gompresso-bit, launched with a CTA of `num_threads` per block and with `shared_bytes` of shared memory each.
        `pinned` and `on_device` are pinned and device memory of the same sizes: for input, and for output.
        Raises RuntimeError if the library is missing.
        """

    def decode(
        self,
        blocks: Sequence[Buffer],
        out: Buffer,
        sizes: Sequence[int] | None,
        verify: bool,
        num_threads: int,
        work: DecodeWork,
    ) -> bytes | None:
        """See gompfs.gpu.small_batches.SmallBatches.decode."""

def copy_runs(
    source: Buffer,
    target: Buffer,
    source_offsets: NDArray[np.uint64],
    target_offsets: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
    num_threads: int,
) -> None:
    """Copies runs of bytes from `source` to `target` on several threads. All three columns are in bytes.

    The runs must not overlap in the target. Raises ValueError, before anything is copied, if a run is not inside both.
    """
