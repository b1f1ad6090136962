"""Several stand-ins for GPUs, behind a stand-in for CuPy, so that tests run the engine `gpu` without a GPU.

Arrays are those of NumPy; streams do everything at once. The kernels run on the host, one launch at a time. Those of
blocks that need a head or a dictionary are replaced by the CPU's decoders. As with CUDA, a thread has a current device,
and must not use memory, streams and kernels of another one.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from cupy_on_host import Event, FakeHeads, HostArray, OutOfMemoryError, Stream, columns_at, cupy_on_host
from host_device import HostDevice
from numpy.typing import NDArray
from oracle.block import build_block

from gompfs._native import codec as _codec
from gompfs.codec import Codec

_CODECS_ON_CPU = {"decode_tadoc": Codec.GOMPRESSO_TADOC, "decode_bit_dictionary": Codec.GOMPRESSO_BIT_DICTIONARY}
_TYPE_OF_HOST_MEMORY = 1


class Gpu:
    """What one device has done, and its memory in bytes."""

    def __init__(self, number: int, memory: int) -> None:
        self.number = number
        self.memory = memory
        self.used = 0
        self.launches: Counter[str] = Counter()
        self.uploaded = 0
        self.downloaded = 0
        self.pinned = 0
        self.pinned_on: set[frozenset[int]] = set()
        """The CPUs that threads which pinned memory could run on."""
        self.heads = FakeHeads(1000)

    def forget(self) -> None:
        """Counts from zero."""
        self.launches.clear()
        self.uploaded = self.downloaded = 0


class _Threads(threading.local):
    """The current device of each thread."""

    def __init__(self) -> None:
        self.numbers = [0]


class Gpus(Sequence[Gpu]):
    """All devices."""

    def __init__(self, count: int, memory: int, library: Path) -> None:
        self._gpus = [Gpu(number, memory) for number in range(count)]
        self._threads = _Threads()
        self._host = HostDevice(library)
        self._pinned: dict[int, int] = {}
        self.before_launch: Callable[[str], object] = lambda _name: None
        """Called on the thread that launches a kernel, with its name."""

    def __getitem__(self, number: Any) -> Any:
        return self._gpus[number]

    def __len__(self) -> int:
        return len(self._gpus)

    @property
    def current(self) -> Gpu:
        """The current device of this thread."""
        return self._gpus[self._threads.numbers[-1]]

    def enter(self, number: int) -> None:
        assert number < len(self)
        self._threads.numbers.append(number)

    def leave(self) -> None:
        self._threads.numbers.pop()

    def use(self, number: int) -> None:
        self._threads.numbers[-1] = number

    def empty(self, shape: Any, dtype: Any = float) -> GpuArray:
        """Returns memory of the current device, which is not zeros."""
        gpu, size = self.current, int(np.prod(shape)) * np.dtype(dtype).itemsize
        if gpu.used + size > gpu.memory:
            raise OutOfMemoryError
        memory = np.full(size + 512, 0xC3, np.uint8)
        gpu.used += size
        weakref.finalize(memory, self._free, gpu, size)
        start = -memory.ctypes.data % 256
        array = memory[start : start + size].view(dtype).reshape(shape).view(GpuArray)
        array.owner, array.gpus = gpu, self
        return array

    @staticmethod
    def _free(gpu: Gpu, size: int) -> None:
        gpu.used -= size

    def pin(self, size: int) -> bytearray:
        memory = _Pinned(size)
        address = np.frombuffer(memory, np.uint8).ctypes.data
        self._pinned[address] = size
        weakref.finalize(memory, self._pinned.pop, address)
        self.current.pinned += size
        self.current.pinned_on.add(frozenset(os.sched_getaffinity(0)))
        return memory

    def type_of(self, address: int) -> SimpleNamespace:
        is_pinned = any(start <= address < start + size for start, size in self._pinned.items())
        return SimpleNamespace(type=_TYPE_OF_HOST_MEMORY if is_pinned else 0)

    def launch(self, name: str, grid: tuple[int], block: tuple[int], arguments: Sequence[Any], shared: int) -> None:
        self.before_launch(name)
        self.current.launches[name] += 1
        for argument in arguments:
            assert getattr(argument, "owner", None) in {None, self.current}, f"{name} uses memory of another device"
        if name in _CODECS_ON_CPU:
            self._decode(_CODECS_ON_CPU[name], *arguments)
            return
        self._host.launch_exactly(name, grid[0], block[0], shared, arguments)

    def _decode(self, codec: Codec, *arguments: Any) -> None:
        _, payloads_at, sizes_at, output, *others_at, count = arguments
        columns = columns_at([payloads_at, sizes_at, *others_at], int(count))
        payloads, sizes, offsets, output_sizes, statuses, heads = columns
        for number in range(int(count)):
            payload = ctypes.string_at(int(payloads[number]), int(sizes[number]))
            start, size = int(offsets[number]), int(output_sizes[number])
            block = build_block(codec, payload, bytes(size)).data
            symbols = self.current.heads.loaded[int(heads[number])]
            out = memoryview(np.asarray(output)[start : start + size].view(np.ndarray))
            (statuses[number],) = _codec.decode_blocks([block], out, False, 1, None, [symbols])


class _Pinned(bytearray):
    """Memory that can be referred to weakly."""


class GpuArray(HostArray):
    """See cupy.ndarray."""

    owner: Gpu | None = None
    gpus: Gpus | None = None

    def __array_finalize__(self, parent: Any) -> None:
        self.owner, self.gpus = getattr(parent, "owner", None), getattr(parent, "gpus", None)

    def set(self, array: NDArray[Any], stream: StreamOfGpu | None = None) -> None:
        self._check(stream)
        assert self.owner is not None
        self.owner.uploaded += array.nbytes
        super().set(array)

    def get(
        self, stream: StreamOfGpu | None = None, out: NDArray[Any] | None = None, blocking: bool = True
    ) -> NDArray[Any]:
        self._check(stream)
        if self.owner is not None:
            self.owner.downloaded += self.nbytes
        return super().get(None, out)

    def get_anywhere(self) -> NDArray[Any]:
        """Returns a copy, for tests, whatever the current device is."""
        return np.array(self)

    def _check(self, stream: StreamOfGpu | None) -> None:
        if self.owner is not None and self.gpus is not None:
            assert self.owner is self.gpus.current, "memory of another device"
            assert stream is None or stream.owner in {None, self.owner}, "a stream of another device"


class StreamOfGpu(Stream):
    """A stream of one of several devices, which must be the current one where the stream is used."""

    def __init__(self, gpus: Gpus, *, is_null: bool = False) -> None:
        super().__init__()
        self._gpus = gpus
        self.owner = None if is_null else gpus.current
        self.ptr = 0

    def __enter__(self) -> StreamOfGpu:
        assert self.owner in {None, self._gpus.current}, "a stream of another device"
        return self

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.is_recorded = True
        return event


class Function:
    """See cupy.cuda.Function and cupy.RawKernel: a kernel that was loaded for one device."""

    ptr = 0
    max_dynamic_shared_size_bytes = 0

    def __init__(self, gpus: Gpus, name: str) -> None:
        self._gpus = gpus
        self._owner = gpus.current
        self._name = name
        self.kernel = self

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: Sequence[Any], shared_mem: int = 0) -> None:
        assert self._owner is self._gpus.current, f"{self._name} was loaded for another device"
        self._gpus.launch(self._name, grid, block, arguments, shared_mem)


class Pool:
    """See cupy.cuda.MemoryPool."""

    def malloc(self, size: int) -> None:
        raise AssertionError("arrays are in memory of the host")

    def set_limit(self, size: int) -> None:
        self._limit = size

    def get_limit(self) -> int:
        return getattr(self, "_limit", 0)

    def total_bytes(self) -> int:
        return 0

    def free_all_blocks(self) -> None:
        pass


def _device_class(gpus: Gpus) -> type:
    class Device:
        """See cupy.cuda.Device."""

        compute_capability = "90"

        def __init__(self, number: int | None = None) -> None:
            self.id = gpus.current.number if number is None else number
            self.attributes = {"MultiProcessorCount": 2, "MaxSharedMemoryPerBlockOptin": 100 << 10}

        @property
        def mem_info(self) -> tuple[int, int]:
            gpu = gpus[self.id]
            return gpu.memory - gpu.used, gpu.memory

        def use(self) -> None:
            gpus.use(self.id)

        def synchronize(self) -> None:
            pass

        def __enter__(self) -> Device:
            gpus.enter(self.id)
            return self

        def __exit__(self, *_: object) -> None:
            gpus.leave()

    return Device


class _Cupy(ModuleType):
    """The rest of CuPy is like NumPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _module(gpus: Gpus) -> ModuleType:
    def made_by(make: Callable[..., Any]) -> Callable[..., GpuArray]:
        def on_device(*arguments: Any, **options: Any) -> GpuArray:
            made = make(*arguments, **options)
            array = gpus.empty(made.shape, made.dtype)
            array[...] = made
            return array

        return on_device

    module_of_kernels = SimpleNamespace(get_function=lambda name: Function(gpus, name))
    cupy = _Cupy("cupy")
    cupy.__dict__.update(
        ndarray=GpuArray, empty=gpus.empty, zeros=made_by(np.zeros), ones=made_by(np.ones), full=made_by(np.full),
        asarray=lambda array, *rest: array if isinstance(array, GpuArray) else made_by(np.asarray)(array, *rest),
        asnumpy=lambda array, out=None: np.array(array) if out is None else array.get(out=out),
        RawKernel=object, get_default_memory_pool=Pool,
        RawModule=lambda **_: SimpleNamespace(module=module_of_kernels, get_function=module_of_kernels.get_function),
    )  # fmt: skip
    cupy.cuda = SimpleNamespace(
        Device=_device_class(gpus), Stream=lambda non_blocking=False: StreamOfGpu(gpus), Event=Event,
        get_elapsed_time=lambda start, end: 1e3 * (end.recorded_at - start.recorded_at),
        ExternalStream=lambda _address: StreamOfGpu(gpus, is_null=True),
        get_current_stream=lambda number=-1: StreamOfGpu(gpus, is_null=True),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError), MemoryPool=Pool,
        using_allocator=lambda _allocator: nullcontext(), alloc_pinned_memory=gpus.pin,
        stream=SimpleNamespace(Stream=StreamOfGpu), compiler=SimpleNamespace(CompileException=RuntimeError),
        runtime=SimpleNamespace(
            CUDARuntimeError=RuntimeError, deviceSetLimit=lambda *_: None, memoryTypeHost=_TYPE_OF_HOST_MEMORY,
            getDeviceProperties=lambda number: {"name": b"stand-in %d" % number},
            deviceGetPCIBusId=lambda number: f"0000:B{number}:00.0",
            pointerGetAttributes=gpus.type_of,
        ),
        driver=SimpleNamespace(
            CUDADriverError=RuntimeError, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            funcSetAttribute=lambda *_: None, occupancyMaxActiveBlocksPerMultiprocessor=lambda *_: 1,
        ),
    )  # fmt: skip
    return cupy


@contextmanager
def gpus_on_host(count: int, library: Path, memory: int = 1 << 30) -> Iterator[Gpus]:
    """Lets modules of gompfs find `count` devices. They are forgotten at the end. `library` has the kernels."""
    gpus = Gpus(count, memory, library)
    with cupy_on_host(_module(gpus)):
        from gompfs.engine.gpu import GpuEngine
        from gompfs.gpu.decode import device
        from gompfs.gpu.device import cuda

        with (
            patch.object(device, "HeadStore", lambda *_: gpus.current.heads),
            patch.object(cuda, "read_compiled", lambda *_: None),
            patch.object(GpuEngine, "least_decoded", 0),
        ):
            yield gpus
