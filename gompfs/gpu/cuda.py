"""Pinned host memory and compiled kernels, for all that works on a GPU."""

from __future__ import annotations

from pathlib import Path

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.kernels import compile_options, read_source

PADDING = 256  # kernels may read this many bytes past the end of their input


def pinned_array(size: int) -> NDArray[np.uint8]:
    """Returns `size` bytes of pinned host memory, which devices read and write directly."""
    # round up: CuPy reuses freed pinned memory for requests of the same size only
    unit = 1 << max(size.bit_length() - 3, 9)
    capacity = max(-(-size // unit), 1) * unit
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(capacity), np.uint8, size)


def is_pinned(array: NDArray[np.uint8]) -> bool:
    """Returns whether `array` is pinned memory, which the device can write to directly."""
    if not array.size:
        return False
    attributes = cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data)
    return bool(attributes.type == cupy.cuda.runtime.memoryTypeHost)


def compile_kernel(name: str, num_threads: int, shared_bytes: int) -> tuple[cupy.RawKernel, int]:
    """Returns a kernel for the current device, and how many of its CTAs fit on one multiprocessor.

    A CTA has `num_threads` threads and `shared_bytes` of dynamic shared memory. The kernel comes from CuPy's cache if
    it was compiled before.
    """
    module = cupy.RawModule(code=read_source(name), options=compile_options(), backend="nvrtc")
    kernel = module.get_function(Path(name).name)
    kernel.max_dynamic_shared_size_bytes = shared_bytes
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, num_threads, shared_bytes)
    return kernel, max(int(resident), 1)
