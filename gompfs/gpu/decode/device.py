"""One GPU that decodes: its kernels, its slots, and its pinned, device and resident memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from weakref import WeakMethod

import cupy
import numpy as np

from gompfs.codec import Codec
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.decode.head_opener import HeadOpener
from gompfs.gpu.decode.head_store import HeadStore
from gompfs.gpu.decode.payload_store import PayloadStore
from gompfs.gpu.decode.slots import DecodeSlot
from gompfs.gpu.device.cuda import load_kernel
from gompfs.gpu.device.kernel_sources import SHARED_BYTES
from gompfs.options import GpuOptions

# in the order of the codecs' numbers
KERNELS = {
    Codec.GOMPRESSO_BYTE: "codec/decode_byte",
    Codec.GOMPRESSO_BIT: "codec/decode_bit",
    Codec.GOMPRESSO_TADOC: "codec/decode_tadoc",
    Codec.GOMPRESSO_BIT_DICTIONARY: "codec/decode_bit_dictionary",
}
_CODECS_WITH_HEADS = {Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT_DICTIONARY}
_LEAST_SLICE_BYTES = 1 << 20
_SLICE_BYTES = 256 << 20
_NUM_SLOTS = 6
_WARPS_PER_CTA = 4
_READING_THREADS = 256
_LIMIT_MAX_L2_FETCH_GRANULARITY = 5  # cudaLimitMaxL2FetchGranularity, which CuPy has no name for
_L2_FETCH_BYTES = 128  # 3% faster than 64, and 6% faster than 32
# half of the usable memory is for payloads and contents of the slots, an eighth for heads of parts, and the rest for
# resident payloads; a quarter of the memory for heads is used while the device opens them
_SLICES_IN_MEMORY = 4 * _NUM_SLOTS
_HEADS_SHARE = 8
_OPENING_SHARE = 4


class Device:
    """One GPU: its kernels, its slots, which work concurrently, and its stores. Callers hold its lock."""

    def __init__(self, number: int, options: GpuOptions, num_threads: int = 1) -> None:
        """Uses CUDA device `number`, and `num_threads` host threads to check heads of parts.

        Raises EngineUnavailableError if its memory is too small for the options.
        """
        self.number = number
        self.lock = threading.Lock()
        self.lenders: list[WeakMethod[Callable[[], None]]] = []
        """Functions to call if there is too little memory; each gives back memory that was kept for later."""
        with cupy.cuda.Device(number) as device:
            cupy.cuda.runtime.deviceSetLimit(_LIMIT_MAX_L2_FETCH_GRANULARITY, _L2_FETCH_BYTES)
            self.name = str(cupy.cuda.runtime.getDeviceProperties(number)["name"], "utf-8")
            memory = options.memory or device.mem_info[0] // 2
            self.slice_bytes = min(_SLICE_BYTES, max(memory // _SLICES_IN_MEMORY, _LEAST_SLICE_BYTES))
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
            self.slots = [DecodeSlot() for _ in range(_NUM_SLOTS)]
            self.turns = itertools.cycle(self.slots)
            """The next slots to use, also by another batch: work on the one before may go on."""
            self.stream = cupy.cuda.Stream(non_blocking=True)
            """For work that no other stream waits for."""

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

    def decode(self, num_blocks: Sequence[int], tasks: np.uint64, output: cupy.ndarray, statuses: np.uint64) -> None:
        """Starts one kernel per codec on the current stream.

        `num_blocks` is the number of blocks of each codec, by the codec's number. `tasks` is the address of the columns
        that SliceColumns has written, and `statuses` the address of a status for each block.
        """
        count = sum(num_blocks)
        if count == 0:
            return
        payloads_from = np.uint64(0)  # the offsets are absolute addresses, since payloads may be in several allocations
        payloads, targets, heads, payload_sizes, counters = (tasks + np.uint64(8 * count * row) for row in range(5))
        output_sizes = payload_sizes + np.uint64(4 * count)
        for codec in KERNELS:
            of_codec = num_blocks[codec]
            if of_codec:
                of_heads = (heads,) if codec in _CODECS_WITH_HEADS else ()
                self.launch(
                    codec,
                    (payloads_from, payloads, payload_sizes, output, targets, output_sizes, statuses, counters,
                     *of_heads),
                    of_codec,
                )  # fmt: skip
                payloads, targets, heads = (each + np.uint64(8 * of_codec) for each in (payloads, targets, heads))
                payload_sizes, output_sizes, counters = (
                    each + np.uint64(4 * of_codec) for each in (payload_sizes, output_sizes, counters)
                )
                statuses += np.uint64(of_codec)

    def launch(self, codec: Codec, arguments: Sequence[object], num_blocks: int) -> None:
        """Starts the kernel of a codec on the current stream, with at most as many CTAs as fit on the GPU at once."""
        kernel, num_resident = self._kernels[codec]
        grid = min(-(-num_blocks // _WARPS_PER_CTA), self._num_multiprocessors * num_resident)
        kernel((grid,), (32 * _WARPS_PER_CTA,), (*arguments, np.uint32(num_blocks)), shared_mem=_shared_bytes(codec))

    def gather(self, num_pieces: int, *arguments: np.uint64 | cupy.ndarray) -> None:
        """Starts gather_pieces on the current stream; `arguments` are all arguments of the kernel except the last."""
        self._launch_reading(self._gather, num_pieces, num_pieces, arguments)

    def check(self, num_blocks: int, *arguments: np.uint64) -> None:
        """Starts check_contents on the current stream; `arguments` are all arguments of the kernel except the last."""
        self._launch_reading(self._check, -(-num_blocks * 32 // _READING_THREADS), num_blocks, arguments)

    @cached_property
    def _gather(self) -> tuple[cupy.cuda.Function, int]:
        return load_kernel("reading/gather_pieces", _READING_THREADS, 0)

    @cached_property
    def _check(self) -> tuple[cupy.cuda.Function, int]:
        return load_kernel("reading/check_contents", _READING_THREADS, 0)

    def _launch_reading(
        self, compiled: tuple[cupy.cuda.Function, int], num_ctas: int, count: int, arguments: Sequence[object]
    ) -> None:
        kernel, num_resident = compiled
        grid = min(num_ctas, self._num_multiprocessors * num_resident)
        if grid:
            kernel((grid,), (_READING_THREADS,), (*arguments, np.uint32(count)))

    def synchronize(self) -> None:
        """Waits for all work of all slots."""
        for slot in self.slots:
            slot.stream.synchronize()

    def settle(self) -> None:
        """Waits for all work of all slots, and does what must be done after it."""
        for slot in self.slots:
            slot.settle()

    def make_room(self, error: MemoryError) -> None:
        """Frees memory after `error`: halves the slices, down to a least size; then drops what stays.

        Raises EngineUnavailableError if that was done before.
        """
        self.synchronize()
        if self.slice_bytes > _LEAST_SLICE_BYTES:
            self.slice_bytes = max(self.slice_bytes // 2, _LEAST_SLICE_BYTES)
        elif self.take_back():
            pass
        elif self.store.num_bytes:
            self.store.clear()
        else:
            raise EngineUnavailableError(f"{self.name} has too little free memory") from error
        self.release()

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
        for slot in self.slots:
            slot.release()
        self.opener.release()
        cupy.get_default_memory_pool().free_all_blocks()


def _shared_bytes(codec: Codec) -> int:
    common, per_warp = SHARED_BYTES[KERNELS[codec]]
    return common + _WARPS_PER_CTA * per_warp
