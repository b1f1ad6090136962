"""A GPU that computes with arrays for statistics. It does not decode."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.errors import EngineUnavailableError
from gompfs.gpu.device.arrays import Tile, as_argument
from gompfs.gpu.device.cuda import KERNEL_MODULES, allow_shared_bytes, is_pinned, pinned_array
from gompfs.gpu.device.pinned_copies import Staging

_THREADS_PER_CTA = 256
_THREADS_OF_ONE_CTA = 1024
_CTAS_PER_MULTIPROCESSOR = 8
_DEFAULT_SHARED_BYTES = 48 << 10  # a kernel that needs more must ask for it
_LEAST_STAGED = 1 << 20  # smaller copies do not gain from several threads
_MOST_MEMORY = 9 << 28  # default limit: a device needs less than 4 GB including CUDA and the decoder


class GpuArrays:
    """See ArrayDevice: one CUDA device, used through CuPy.

    `peak_bytes` is the most device memory used so far; `free_memory` are the bytes that were free at first.
    """

    xp = cupy

    def __init__(self, number: int = 0, memory: int = 0, *, keeps_memory: bool = False) -> None:
        """Uses the CUDA device `number` and at most `memory` bytes of it (0: half of the free memory, up to 2.25 GiB).

        Freed memory stays with this object for the next use as long as all of it is within the reserved memory; with
        `keeps_memory`, always, until `release`.

        Raises EngineUnavailableError if the device cannot be used.
        """
        self._number = number
        self._keeps_memory = keeps_memory
        self._lock = threading.RLock()
        self._context = cupy.cuda.Device(number)
        self._allocators: list[AbstractContextManager[None]] = []  # one for each time that it has been entered
        self._staging = Staging()
        self._kernels: dict[tuple[str, str], cupy.cuda.Function] = {}
        self.peak_bytes = 0
        self._reserved = 0
        try:
            with self._context as device:
                self.name = str(cupy.cuda.runtime.getDeviceProperties(number)["name"], "utf-8")
                self.free_memory = int(device.mem_info[0])
                self.memory = memory or min(self.free_memory // 2, _MOST_MEMORY)
                self._pool = cupy.cuda.MemoryPool()
                self._pool.set_limit(size=self.memory)
                self.shared_memory = device.attributes["MaxSharedMemoryPerBlockOptin"]
                self._max_ctas = device.attributes["MultiProcessorCount"] * _CTAS_PER_MULTIPROCESSOR
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise EngineUnavailableError(f"the GPU cannot be used: {error}") from None

    def upload(self, array: NDArray[Any]) -> cupy.ndarray:
        """See ArrayDevice.upload. From pinned memory, the copy needs no intermediate buffer."""
        copy = cupy.empty(array.shape, array.dtype)
        if array.nbytes >= _LEAST_STAGED and array.flags.c_contiguous and not is_pinned(array):
            self._staging.upload(array.reshape(-1).view(np.uint8), copy.reshape(-1).view(np.uint8))
        else:
            copy.set(array)  # cupy.asarray would make a pinned copy and keep it
        return copy

    def download(self, array: cupy.ndarray, *, pinned: bool = False) -> NDArray[Any]:
        """See ArrayDevice.download."""
        if array.nbytes >= _LEAST_STAGED and array.flags.c_contiguous and not pinned:
            staged: NDArray[Any] = np.empty(array.shape, array.dtype)
            self._staging.download(array.reshape(-1).view(np.uint8), staged.reshape(-1).view(np.uint8))
            return staged
        out = pinned_array(array.nbytes).view(array.dtype).reshape(array.shape) if pinned else None
        host: NDArray[Any] = cupy.asnumpy(array, out=out)
        return host

    def launch(
        self,
        source: str,
        kernel: str,
        num_items: int,
        *arguments: object,
        one_cta: bool = False,
        tile: Tile | None = None,
    ) -> None:
        """See ArrayDevice.launch."""
        if num_items == 0:
            return
        threads = tile.num_threads if tile else _THREADS_OF_ONE_CTA if one_cta else _THREADS_PER_CTA
        grid = -(-num_items // (tile.num_items if tile else threads))
        if not tile:
            grid = 1 if one_cta else min(grid, self._max_ctas)
        if (source, kernel) not in self._kernels:
            self._kernels[source, kernel] = KERNEL_MODULES.function(source, kernel)
        function, shared = self._kernels[source, kernel], tile.shared_bytes if tile else 0
        if shared > _DEFAULT_SHARED_BYTES:
            allow_shared_bytes(function, shared)
        function((grid,), (threads,), tuple(map(as_argument, arguments)), shared_mem=shared)

    def reserve(self, num_bytes: int) -> None:
        """See ArrayDevice.reserve."""
        with self._lock, self._context:
            self._reserved += num_bytes
            self._pool.set_limit(size=self.memory + self._reserved)

    def synchronize(self) -> None:
        """See ArrayDevice.synchronize."""
        cupy.cuda.get_current_stream().synchronize()

    def __enter__(self) -> GpuArrays:
        """See ArrayDevice. Memory comes from a pool of this object, so that it can be freed at the end."""
        self._lock.acquire()
        self._context.__enter__()
        self._allocators.append(cupy.cuda.using_allocator(self._pool.malloc))
        self._allocators[-1].__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """See ArrayDevice."""
        self._allocators.pop().__exit__(None, None, None)
        self.peak_bytes = max(self.peak_bytes, self._pool.total_bytes())
        if not self._keeps_memory and self._pool.total_bytes() > self._reserved:
            self._pool.free_all_blocks()
        self._context.__exit__(None, None, None)
        self._lock.release()

    def release(self) -> None:
        """Returns freed memory to CUDA, after everything that was started has ended."""
        with self._context as device:
            device.synchronize()
            self._pool.free_all_blocks()
