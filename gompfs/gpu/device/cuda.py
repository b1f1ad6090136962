"""Pinned host memory and compiled kernels, for all that works on a GPU."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.errors import EngineUnavailableError
from gompfs.gpu.device.compiled_kernels import read_compiled
from gompfs.gpu.device.kernel_sources import compile_options, read_source
from gompfs.log import Logger

PADDING = 256  # kernels may read this many bytes past the end of their input

log = Logger(__name__)


def pinned_array(size: int) -> NDArray[np.uint8]:
    """Returns `size` bytes of pinned host memory, which devices read and write directly."""
    # round up: CuPy reuses freed pinned memory for requests of the same size only
    unit = 1 << max(size.bit_length() - 3, 9)
    capacity = max(-(-size // unit), 1) * unit
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(capacity), np.uint8, size)


def clear(array: cupy.ndarray) -> None:
    """Queues zeros for an array on the current stream. CuPy's `fill` would have to compile a kernel first."""
    array.data.memset_async(0, array.nbytes, cupy.cuda.get_current_stream())


def check_process(process: int) -> None:
    """Raises EngineUnavailableError in a process that was forked from the one with this number, which started CUDA."""
    if os.getpid() != process:
        raise EngineUnavailableError(
            "the gpu engine cannot be used in a forked process, as CUDA does not work there: start processes by "
            "spawn, or open the archive with engine='cpu'"
        )


class CpusNearDevices:
    """The CPUs that are near the devices of a process: of the same NUMA node. Only for devices that were added."""

    def __init__(self, directory: Path = Path("/sys/bus/pci/devices")) -> None:
        """`directory` has a directory for each device on the PCI bus, as sysfs has."""
        self._directory = directory
        self._cpus: dict[int, set[int]] = {}

    def add(self, number: int) -> None:
        """Finds the CPUs near a CUDA device. There are none if the system does not say which."""
        address = str(cupy.cuda.runtime.deviceGetPCIBusId(number)).lower()
        try:
            ranges = (self._directory / address / "local_cpulist").read_text().strip().split(",")
            bounds = [[int(bound) for bound in each.split("-")] for each in ranges]
        except (OSError, ValueError):
            return
        self._cpus[number] = {cpu for each in bounds for cpu in range(each[0], each[-1] + 1)}

    @contextmanager
    def run_near(self, number: int) -> Iterator[None]:
        """Has this thread run on a CPU near a device during the `with` body, so that memory is allocated there."""
        allowed = os.sched_getaffinity(0)
        near = self._cpus.get(number, allowed) & allowed
        if not near or near == allowed:
            yield
            return
        os.sched_setaffinity(0, near)
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)


CPUS_NEAR_DEVICES = CpusNearDevices()
"""The devices of this process. One device alone is not added: the system decides where its memory is."""


def is_pinned(array: NDArray[Any]) -> bool:
    """Returns whether `array` is pinned memory, which the device can write to directly."""
    if not array.size:
        return False
    attributes = cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data)
    return bool(attributes.type == cupy.cuda.runtime.memoryTypeHost)


class KernelModules:
    """The compiled kernels that this process has loaded, by device. Several threads may use it.

    A file of kernels that was compiled before the installation is loaded as it is. Any other comes from CuPy's cache,
    or CuPy compiles it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modules: dict[tuple[str, int], cupy.cuda.Module] = {}
        self._sources_of_cupy: set[str] = set()

    def function(self, source: str, name: str) -> cupy.cuda.Function:
        """Returns the kernel `name` of a source file, such as codec/decode_bit, for the current device."""
        key = source, int(cupy.cuda.Device().id)
        with self._lock:
            if key not in self._modules:
                self._modules[key] = self._load_compiled(source) or self._compile(source)
            return self._modules[key].get_function(name)

    @staticmethod
    def _load_compiled(source: str) -> cupy.cuda.Module | None:
        cubin = read_compiled(source, int(cupy.cuda.Device().compute_capability))
        if cubin is None:
            return None
        module = cupy.cuda.Module()
        try:
            module.load(cubin)
        except cupy.cuda.driver.CUDADriverError as error:  # a driver that is older than the compiler, for example
            log.warning("%s: the driver refuses the compiled kernel: %s", source, error)
            return None
        return module

    def _compile(self, source: str) -> cupy.cuda.Module:
        module = cupy.RawModule(code=read_source(source), options=compile_options(), backend="nvrtc").module
        self._sources_of_cupy.add(source)
        return module

    def describe(self) -> str:
        """Says where the kernels came from, as text for users. A number counts source files."""
        num_by_cupy = len(self._sources_of_cupy)
        num_precompiled = len({source for source, _ in list(self._modules)} - self._sources_of_cupy)
        counts = ((num_precompiled, "precompiled"), (num_by_cupy, "compiled by CuPy"))
        return "kernels: " + ", ".join(f"{count} {kind}" for count, kind in counts if count)


KERNEL_MODULES = KernelModules()
"""The modules of this process."""


def allow_shared_bytes(function: cupy.cuda.Function, size: int) -> None:
    """Lets launches of a kernel have up to `size` bytes of dynamic shared memory. Without this call, 48 KiB."""
    attribute = cupy.cuda.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    cupy.cuda.driver.funcSetAttribute(function.ptr, attribute, size)


def load_kernel(source: str, num_threads: int, shared_bytes: int) -> tuple[cupy.cuda.Function, int]:
    """Returns the kernel of a file of the same name, and how many of its CTAs fit on one multiprocessor.

    The kernel is for the current device. A CTA has `num_threads` threads and `shared_bytes` of dynamic shared memory.
    """
    function = KERNEL_MODULES.function(source, Path(source).name)
    allow_shared_bytes(function, shared_bytes)
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, num_threads, shared_bytes)
    return function, max(int(resident), 1)
