"""A device for tests: NumPy replaces CuPy, and the kernels of kernels/ run as threads of the host."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.arrays import Tile, as_argument

_THREADS_PER_CTA = 64
_MAX_CTAS = 3
_LAUNCHING = threading.Lock()  # the library runs one launch at a time


class HostDevice:
    """See ArrayDevice. A launch has few threads, so that each processes several items."""

    name = "the host"
    xp = np

    def __init__(self, library: Path, memory: int = 1 << 30, shared_memory: int = 227 << 10) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.launch_kernel.restype = ctypes.c_bool
        self.memory = memory
        self.shared_memory = shared_memory
        self.launched: set[str] = set()
        self.reserved = 0

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy()

    def download(self, array: NDArray[Any], *, pinned: bool = False) -> NDArray[Any]:
        return array.copy()

    def launch(
        self,
        source: str,
        kernel: str,
        num_items: int,
        *arguments: object,
        one_cta: bool = False,
        tile: Tile | None = None,
    ) -> None:
        assert kernel in _kernels_of(source)
        if num_items == 0:
            return
        self.launched.add(kernel)
        is_tiled = tile is not None
        tile = tile or Tile(_THREADS_PER_CTA, _THREADS_PER_CTA)
        grid = -(-num_items // tile.num_items)
        if not is_tiled:
            grid = 1 if one_cta else min(grid, _MAX_CTAS)
        self.launch_exactly(kernel, grid, tile.num_threads, tile.shared_bytes, list(map(as_argument, arguments)))

    def launch_exactly(self, kernel: str, grid: int, threads: int, shared: int, arguments: Sequence[object]) -> None:
        """Launches so many CTAs of so many threads."""
        values = [_as_value(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        shape = (grid, threads, ctypes.c_size_t(shared))
        with _LAUNCHING:
            assert self._library.launch_kernel(kernel.encode(), *shape, pointers, len(values)), kernel

    def reserve(self, num_bytes: int) -> None:
        self.reserved += num_bytes
        assert self.reserved >= 0

    def synchronize(self) -> None:
        pass

    def __enter__(self) -> HostDevice:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def kernels_in(source: str) -> set[str]:
    """Returns the names of the kernels that a text of CUDA declares."""
    return set(re.findall(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(', source))


@cache
def _kernels_of(source: str) -> set[str]:
    return kernels_in((Path(__file__).parents[2] / "kernels" / f"{source}.cu").read_text())


def _as_value(argument: object) -> NDArray[Any]:
    """Returns memory that holds an argument: a number, or the address of an array."""
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return np.array([argument.ctypes.data], np.uint64)
    assert isinstance(argument, np.generic), argument
    return np.array([argument])
