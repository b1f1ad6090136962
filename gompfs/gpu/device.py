"""One GPU: its decode kernels, and its pinned, device and resident memory.

Only the GPU engine's modules import CuPy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from weakref import WeakMethod

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.codec import Codec
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.cuda import CPUS_NEAR_DEVICES, load_kernel, pinned_array
from gompfs.gpu.head_opener import HeadOpener
from gompfs.gpu.heads import HeadStore
from gompfs.gpu.kernels import SHARED_BYTES
from gompfs.options import GpuOptions

if TYPE_CHECKING:
    from gompfs.gpu.range_slots import RangeDevice

# in the order of the codecs' numbers
KERNELS = {
    Codec.GOMPRESSO_BYTE: "codec/decode_byte",
    Codec.GOMPRESSO_BIT: "codec/decode_bit",
    Codec.GOMPRESSO_TADOC: "codec/decode_tadoc",
    Codec.GOMPRESSO_BIT_DICTIONARY: "codec/decode_bit_dictionary",
}
LEAST_SLICE_BYTES = 1 << 20
_SLICE_BYTES = 32 << 20
_NUM_SLOTS = 5
_WARPS_PER_CTA = 4
_LIMIT_MAX_L2_FETCH_GRANULARITY = 5  # cudaLimitMaxL2FetchGranularity, which CuPy has no name for
_L2_FETCH_BYTES = 128  # 3% faster than 64, and 6% faster than 32
_SLAB_BYTES = 64 << 20
# half of the usable memory is for the payloads and output of the slots, an eighth for heads of parts, and the rest for
# resident payloads; a quarter of what is for heads is used while the device opens them
_SLICES_IN_MEMORY = 4 * _NUM_SLOTS
_HEADS_SHARE = 8
_OPENING_SHARE = 4


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


class PayloadStore:
    """Payloads that stay in device memory, found by the checksums of their blocks. All of them were checked before.

    The store fills up to its capacity; it never evicts.
    """

    def __init__(self, capacity: int) -> None:
        """Makes a store of at most `capacity` bytes."""
        self._capacity = capacity
        self._allocated: list[cupy.ndarray] = []
        self._slab: cupy.ndarray | None = None  # which small payloads share
        self._used = 0  # bytes used in it
        self._addresses: dict[int, int] = {}
        self.num_bytes = 0
        self.num_cleared = 0
        """How often all payloads were dropped. Addresses from before are no longer valid."""

    def find(self, checksums: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Returns the device address of each payload, or 0 for payloads that are not in the store."""
        if not self._addresses:
            return np.zeros(checksums.size, np.uint64)
        addresses = self._addresses
        return np.array([addresses.get(checksum, 0) for checksum in checksums.tolist()], np.uint64)

    def reserve(self, size: int) -> cupy.ndarray | None:
        """Returns device memory for payloads that will stay, or None if the store is full."""
        if size > _SLAB_BYTES // 4:  # the rest of a slab would be lost too often
            return self._allocate(size)
        if self._slab is None or self._used + size > self._slab.size:
            slab = self._allocate(max(min(_SLAB_BYTES, self._capacity - self.num_bytes), size))
            if slab is None:
                return None
            self._slab, self._used = slab, 0
        self._used += size
        return self._slab[self._used - size : self._used]

    def _allocate(self, size: int) -> cupy.ndarray | None:
        if self.num_bytes + size > self._capacity:
            return None
        try:
            self._allocated.append(cupy.empty(size, cupy.uint8))
        except cupy.cuda.memory.OutOfMemoryError:
            self._capacity = self.num_bytes
            return None
        self.num_bytes += size
        return self._allocated[-1]

    def clear(self) -> None:
        """Drops all payloads and accepts no more."""
        self.num_cleared += 1
        self._capacity = self._used = self.num_bytes = 0
        self._slab = None
        self._allocated.clear()
        self._addresses.clear()

    def add(self, checksums: NDArray[np.uint64], addresses: NDArray[np.uint64]) -> None:
        """Registers payloads that have arrived in memory returned by `reserve`."""
        self._addresses.update(zip(checksums.tolist(), addresses.tolist(), strict=True))


class Device:
    """One GPU: its kernels, its slots (which work concurrently), its stores, and a thread that checks blocks."""

    def __init__(self, number: int, options: GpuOptions, num_threads: int = 1) -> None:
        """Uses CUDA device `number`, and `num_threads` host threads to check heads of parts.

        Raises EngineUnavailableError if its memory is too small for the options.
        """
        self.number = number
        self.lock = threading.Lock()
        self.slots_beside: list[Slot] = []
        """Slots whose work goes on after the call that has queued it. It may use heads and resident payloads."""
        self.ranges: RangeDevice | None = None
        """What reads ranges of files, once it is needed."""
        self.lenders: list[WeakMethod[Callable[[], None]]] = []
        """What to call if there is too little memory; each gives back memory that was kept for later."""
        with cupy.cuda.Device(number) as device:
            cupy.cuda.runtime.deviceSetLimit(_LIMIT_MAX_L2_FETCH_GRANULARITY, _L2_FETCH_BYTES)
            self.name = str(cupy.cuda.runtime.getDeviceProperties(number)["name"], "utf-8")
            memory = options.memory or device.mem_info[0] // 2
            self.slice_bytes = min(_SLICE_BYTES, max(memory // _SLICES_IN_MEMORY, LEAST_SLICE_BYTES))
            if options.memory is not None:
                cupy.get_default_memory_pool().set_limit(size=options.memory)
            opening = memory // _HEADS_SHARE // _OPENING_SHARE
            self.opener = HeadOpener(opening, self.synchronize)
            self.heads = HeadStore(memory // _HEADS_SHARE - opening, self.opener, num_threads)
            self.store = PayloadStore(self._capacity(memory, options))
            self._num_multiprocessors = device.attributes["MultiProcessorCount"]
            self._kernels = {
                codec: load_kernel(kernel, 32 * _WARPS_PER_CTA, _shared_bytes(codec))
                for codec, kernel in KERNELS.items()
            }
            self.slots = [Slot() for _ in range(_NUM_SLOTS)]
        self.executor = ThreadPoolExecutor(1, f"gompfs-gpu-{number}", cupy.cuda.Device(number).use)

    def _capacity(self, memory: int, options: GpuOptions) -> int:
        """Returns how many bytes of payloads may stay in device memory."""
        if options.resident == "off":
            return 0
        capacity = memory - self.slice_bytes * _SLICES_IN_MEMORY // 2 - memory // _HEADS_SHARE
        if options.resident == "on" and options.archive_size > capacity:
            raise EngineUnavailableError(
                f"gpu_resident=on: the archive needs {options.archive_size >> 20} MiB, "
                f"{self.name} has {max(capacity, 0) >> 20} MiB to spare"
            )
        return capacity

    def launch(self, codec: Codec, arguments: Sequence[object], num_blocks: int) -> None:
        """Starts the kernel of a codec on the current stream, with at most as many CTAs as fit on the GPU at once."""
        kernel, num_resident = self._kernels[codec]
        grid = min(-(-num_blocks // _WARPS_PER_CTA), self._num_multiprocessors * num_resident)
        kernel((grid,), (32 * _WARPS_PER_CTA,), (*arguments, np.uint32(num_blocks)), shared_mem=_shared_bytes(codec))

    def synchronize(self) -> None:
        """Waits for all work of all slots."""
        for slot in (*self.slots, *self.slots_beside):
            slot.stream.synchronize()

    def take_back(self) -> bool:
        """Has all lenders give back their memory. Returns whether there were any."""
        lenders, self.lenders = self.lenders, []
        calls = [give_back for lender in lenders if (give_back := lender()) is not None]
        for give_back in calls:
            give_back()
        return bool(calls)

    def release(self) -> None:
        """Returns all device memory of the slots to CUDA."""
        self.synchronize()
        for slot in (*self.slots, *self.slots_beside):
            slot.release()
        self.opener.release()
        cupy.get_default_memory_pool().free_all_blocks()


def _shared_bytes(codec: Codec) -> int:
    common, per_warp = SHARED_BYTES[KERNELS[codec]]
    return common + _WARPS_PER_CTA * per_warp
