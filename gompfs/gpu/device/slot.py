"""A stream of a device, and memory for the work that is queued on it."""

from __future__ import annotations

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.cuda import CPUS_NEAR_DEVICES, pinned_array


class Slot:
    """A CUDA stream, and the memory of one slice at a time. The memory grows to the largest size requested."""

    def __init__(self) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._pinned: dict[str, NDArray[np.uint8]] = {}
        self._device: dict[str, cupy.ndarray] = {}

    def pinned(self, name: str, size: int) -> NDArray[np.uint8]:
        """Returns `size` bytes of pinned host memory under this name, which the device can read and write."""
        if name not in self._pinned or self._pinned[name].size < size:
            with CPUS_NEAR_DEVICES.run_near(int(cupy.cuda.Device().id)):
                self._pinned[name] = pinned_array(size)
        return self._pinned[name][:size]

    def device(self, name: str, size: int) -> cupy.ndarray:
        """Returns `size` bytes of device memory under this name."""
        if name not in self._device or self._device[name].size < size:
            self._device.pop(name, None)
            self._device[name] = cupy.empty(size, cupy.uint8)
        return self._device[name][:size]

    def release(self) -> None:
        """Frees all device memory of the slot."""
        self._device.clear()
