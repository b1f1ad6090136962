"""A stand-in for CuPy and for a GPU, so that tests read ranges of files "into device memory" without a GPU.

Arrays are those of NumPy; streams do everything at once. The kernels of kernels/reading run on the host. Decoding
kernels are replaced by the CPU's decoders, which find the header of a block before its payload.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from host_device import HostDevice
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs._native.text import SymbolTable
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.codec.stored_head import StoredHead


class HostArray(np.ndarray):
    """See cupy.ndarray."""

    device = SimpleNamespace(id=0)  # type: ignore[assignment]
    __cuda_array_interface__ = None

    @property
    def data(self) -> Any:
        address = self.ctypes.data
        return SimpleNamespace(ptr=address, memset_async=lambda value, size, _: ctypes.memset(address, value, size))

    def set(self, array: NDArray[Any], stream: object = None) -> None:
        assert self.nbytes == array.nbytes
        self[...] = array

    def get(self, stream: object = None, out: NDArray[Any] | None = None, blocking: bool = True) -> NDArray[Any]:
        out = np.empty(self.shape, self.dtype) if out is None else out
        out[...] = self
        return out


def empty(size: int, dtype: type = np.uint8) -> HostArray:
    """See cupy.empty. The bytes are not zeros, and at the alignment of device memory."""
    memory = np.full(size * np.dtype(dtype).itemsize + 512, 0xC3, np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + size * np.dtype(dtype).itemsize].view(dtype).view(HostArray)


class Stream:
    """See cupy.cuda.Stream: whatever is queued is done."""

    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait_event(self, event: Event) -> None:
        assert event.is_recorded, "waits for nothing"


class Event:
    """See cupy.cuda.Event."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.is_recorded = False
        self.recorded_at = 0.0

    def record(self, stream: Stream | None = None) -> None:
        self.is_recorded = True
        self.recorded_at = time.perf_counter()

    def synchronize(self) -> None:
        assert self.is_recorded, "waits for nothing"


class OutOfMemoryError(MemoryError):
    """See cupy.cuda.memory.OutOfMemoryError."""


class HostDeviceContext:
    """See cupy.cuda.Device."""

    attributes: ClassVar = {"MultiProcessorCount": 2}
    mem_info = 1 << 30, 1 << 30

    def __init__(self, number: int = 0) -> None:
        self.id = number

    def __enter__(self) -> HostDeviceContext:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def module() -> ModuleType:
    """Returns the module that stands in for CuPy."""
    cupy = ModuleType("cupy")
    cupy.__dict__.update(
        ndarray=HostArray, empty=empty, asarray=np.asanyarray, uint8=np.uint8, uint32=np.uint32, uint64=np.uint64,
        RawKernel=object, get_default_memory_pool=lambda: SimpleNamespace(get_limit=lambda: 0, malloc=None),
    )  # fmt: skip
    cupy.cuda = SimpleNamespace(
        Device=HostDeviceContext, Stream=Stream, Event=Event, ExternalStream=lambda _address: Stream(),
        get_current_stream=lambda _number=-1: Stream(), memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        alloc_pinned_memory=bytearray, stream=SimpleNamespace(Stream=Stream), using_allocator=lambda _: nullcontext(),
    )  # fmt: skip
    return cupy


class FakeHeads:
    """See HeadStore. The address of a head is its number here; at most `capacity` are in the store."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.num_losses = 0
        self.num_loads = 0
        self.loaded: dict[int, SymbolTable | None] = {}

    def load(self, heads: Iterable[SymbolTable | StoredHead]) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        addresses, statuses, heads = [], [], list(heads)
        self.num_loads += 1
        if len(heads) > self.capacity:
            self.num_losses += 1
        for number, head in enumerate(heads):
            symbols, status = head.open_on_host() if isinstance(head, StoredHead) else (head, BlockStatus.OK)
            is_loaded = number < self.capacity and status is BlockStatus.OK
            addresses.append(len(self.loaded) + 1 if is_loaded else 0)
            if is_loaded:
                self.loaded[addresses[-1]] = symbols
            statuses.append(status)
        return np.array(addresses, np.uint64), np.array(statuses, np.uint8)


def columns_at(addresses: Sequence[np.uint64], count: int) -> list[Any]:
    """Returns what a decoding kernel reads and writes at its arguments from the payloads on, without the output.

    These are columns of `count` blocks: payloads, sizes, offsets, output sizes, statuses, and heads if there are any.
    """
    payloads, sizes, offsets, output_sizes, statuses, _, *heads = addresses
    wide, narrow = ctypes.c_uint64 * count, ctypes.c_uint32 * count
    kinds = [(wide, payloads), (narrow, sizes), (wide, offsets), (narrow, output_sizes),
             (ctypes.c_uint8 * count, statuses), *((wide, each) for each in heads)]  # fmt: skip
    return [kind.from_address(int(address)) for kind, address in kinds]


def fake_device(library: Path, *, capacity: int = 0, slice_bytes: int = 1 << 20, num_heads: int = 100) -> Any:
    """Returns a stand-in for a Device. `num_heads` is for FakeHeads, `capacity` for the store of payloads."""
    from gompfs.gpu.decode.device import Device
    from gompfs.gpu.decode.payload_store import PayloadStore
    from gompfs.gpu.decode.slots import DecodeSlot

    class FakeDevice(Device):
        name = "the stand-in"
        number = 0

        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.lenders = []
            self.store = PayloadStore(capacity)
            self.heads = FakeHeads(num_heads)  # type: ignore[assignment]
            self.slots = [DecodeSlot() for _ in range(6)]
            self.turns = itertools.cycle(self.slots)
            self.stream = Stream()
            self.slice_bytes = slice_bytes
            self._host = HostDevice(library)

        def release(self) -> None:
            for slot in self.slots:
                slot.release()

        def launch(self, codec: object, arguments: Sequence[Any], num_blocks: int) -> None:
            """Decodes blocks as the kernels would."""
            _, payloads_at, sizes_at, output, *others_at = arguments
            columns = columns_at([payloads_at, sizes_at, *others_at], num_blocks)
            payloads, sizes, offsets, output_sizes, statuses, *heads = columns
            for number in range(num_blocks):
                address, size = int(payloads[number]) - BLOCK_HEADER_SIZE, int(sizes[number]) + BLOCK_HEADER_SIZE
                block = ctypes.string_at(address, size)
                symbols = self.heads.loaded[int(heads[0][number])] if heads else None  # type: ignore[attr-defined]
                start = int(offsets[number])
                out = np.asarray(output)[start : start + int(output_sizes[number])]
                (status,) = _codec.decode_blocks([block], memoryview(out.view(np.ndarray)), False, 1, None, [symbols])
                statuses[number] = status

        def gather(self, num_pieces: int, *arguments: object) -> None:
            self._host.launch("reading/gather_pieces", "gather_pieces", num_pieces, *arguments, np.uint32(num_pieces))

        def check(self, num_blocks: int, *arguments: object) -> None:
            threads = num_blocks * 32
            self._host.launch("reading/check_contents", "check_contents", threads, *arguments, np.uint32(num_blocks))

    return FakeDevice()


@contextmanager
def cupy_on_host(stand_in: ModuleType | None = None) -> Iterator[None]:
    """Lets modules of gompfs and of tools import the stand-in. They are forgotten at the end."""
    before = set(sys.modules)
    with patch.dict(sys.modules, {"cupy": stand_in or module()}):
        try:
            yield
        finally:
            for name in set(sys.modules) - before:
                if name.startswith(("gompfs.", "tools.")):
                    parent, _, child = name.rpartition(".")
                    if parent in sys.modules:
                        vars(sys.modules[parent]).pop(child, None)
                    del sys.modules[name]
