"""Runs the kernels that build grammars on the host: NumPy for arrays, and the library of grammar_kernels.cpp."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class HostDevice:
    """An ArrayDevice without a device."""

    arrays = np

    def __init__(self, library: Path) -> None:
        """Take the kernels from the library that was built."""
        self._launch = ctypes.CDLL(str(library)).launch_kernel
        self._launch.restype = ctypes.c_bool
        self._launch.argtypes = [
            ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint,
        ]  # fmt: skip

    def fetch(self, array: NDArray[np.uint32]) -> NDArray[np.uint32]:
        return array.copy()

    def launch(
        self, kernel: str, num_ctas: int, num_threads: int, shared_bytes: int, arguments: tuple[Any, ...]
    ) -> None:
        values = [value.ctypes.data if isinstance(value, np.ndarray) else int(value) for value in arguments]
        array = (ctypes.c_uint64 * len(values))(*values)
        assert self._launch(kernel.encode(), num_ctas, num_threads, shared_bytes, array, len(values)), kernel
