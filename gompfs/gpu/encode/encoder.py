"""Encodes batches of blocks on one GPU, with the bytes of the CPU engine.

A batch is cut into slices. A slice is copied from pinned memory to the device, parsed, encoded, decoded again and
compared, and its payloads are copied back. Then host threads add headers and checksums. Each slot has a stream: while
one slice is parsed, which leaves much of the device idle, others are copied, parsed, encoded, or framed.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs.codec import Codec, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.device.cuda import is_pinned
from gompfs.gpu.device.cupy_arrays import GpuArrays
from gompfs.gpu.device.host_copy import copy_bytes
from gompfs.gpu.device.slot import Slot
from gompfs.gpu.encode.encode_kernels import (
    ALIGNMENT,
    READABLE,
    BlockBatch,
    Payloads,
    check_payloads,
    encode_payloads,
    gather_payloads,
    payload_bytes,
)
from gompfs.gpu.encode.parser import Parser, can_parse

_SLICE_BYTES = 32 << 20
_LEAST_SLICE_BYTES = 1 << 20
_NUM_SLOTS = 4
_NUM_COLLECTORS = 2  # while other work keeps the host's threads, one alone would frame slower than the device encodes
_BLOCK_UNIT = 32  # the kernels need block sizes that are multiples of this


def can_encode(block_size: int, options: CodecOptions) -> bool:
    """Returns whether a GpuEncoder has the parser of these options, and can work with blocks of this size."""
    return can_parse(options) and block_size % _BLOCK_UNIT == 0


@dataclass(frozen=True)
class _Slice:
    """Blocks that are on the device together. `done` is the event after their last kernel."""

    content: memoryview
    num_blocks: int
    slot: Slot
    done: cupy.cuda.Event


class GpuEncoder:
    """Encodes with the kernels of one GPU. Several threads may use it; their slices share the slots.

    `num_failed` counts the blocks for which a kernel wrote a payload that decodes to another content. The CPU encodes
    these blocks again.
    """

    def __init__(self, number: int, memory: int, num_threads: int) -> None:
        """Uses CUDA device `number`, at most `memory` bytes of it (0: half of the free memory), and host threads."""
        with cupy.cuda.Device(number) as device:
            self._arrays = GpuArrays(number, memory or device.mem_info[0] // 2, keeps_memory=True)
            self._free_slots: SimpleQueue[Slot] = SimpleQueue()
            for _ in range(_NUM_SLOTS):
                self._free_slots.put(Slot())
        self._number = number
        self._num_threads = num_threads
        self._shrinking = threading.Lock()
        self._counting = threading.Lock()
        self._slice_bytes = _SLICE_BYTES
        self.num_failed = 0
        self._parser = Parser(self._arrays)
        self._collectors = ThreadPoolExecutor(_NUM_COLLECTORS, thread_name_prefix=f"gompfs-frame-{number}")

    def encode(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """Encodes a batch, see Engine.encode_blocks. `can_encode` must be true for the options.

        If the device runs out of memory, tries again with smaller slices. Raises EngineUnavailableError if the memory
        is too small even then.
        """
        content = memoryview(stream).cast("B")
        while True:
            slice_bytes = self._slice_bytes
            try:
                return self._encode_slices(content, slice_bytes, block_size, options)
            except cupy.cuda.memory.OutOfMemoryError as error:
                if slice_bytes == _LEAST_SLICE_BYTES:
                    raise EngineUnavailableError(f"{self._arrays.name} has too little free memory") from error
            self._halve_slices(slice_bytes)

    def _halve_slices(self, slice_bytes: int) -> None:
        """Frees all device memory, and halves the slices unless another thread has halved them already."""
        with self._shrinking:
            slots = [self._free_slots.get() for _ in range(_NUM_SLOTS)]  # waits for all slices
            self._slice_bytes = min(self._slice_bytes, slice_bytes // 2)
            for slot in slots:
                slot.release()
            self._arrays.release()
            for slot in slots:
                self._free_slots.put(slot)

    def _encode_slices(
        self, content: memoryview, slice_bytes: int, block_size: int, options: CodecOptions
    ) -> list[EncodedBlock]:
        """Passes slices through the slots."""
        step = max(slice_bytes // block_size, 1) * block_size
        framed: list[Future[list[EncodedBlock]]] = []
        try:
            for start in range(0, len(content), step):
                slot = self._free_slots.get()
                try:
                    started = self._start(slot, content[start : start + step], block_size, options)
                except BaseException:
                    slot.stream.synchronize()
                    self._free_slots.put(slot)
                    raise
                framed.append(self._collectors.submit(self._finish, started, block_size, options))
        finally:
            wait(framed)  # they use the content
        return [block for future in framed for block in future.result()]

    def _start(self, slot: Slot, content: memoryview, block_size: int, options: CodecOptions) -> _Slice:
        """Copies a slice to the device, and queues all its kernels."""
        staged = np.frombuffer(content, np.uint8)
        with cupy.cuda.Device(self._number):
            if not is_pinned(staged):
                staged = slot.pinned("content", len(content))
                copy_bytes(content, staged.data, self._num_threads)
        with self._arrays, slot.stream:
            return self._queue(slot, content, staged, block_size, options)

    def _queue(
        self, slot: Slot, content: memoryview, staged: NDArray[np.uint8], block_size: int, options: CodecOptions
    ) -> _Slice:
        """Queues the copy of a slice to the device, and all kernels."""
        size = len(content)
        on_device = slot.device("content", size + READABLE)
        scratch = slot.device("scratch", size + READABLE)
        on_device[:size].set(staged, slot.stream)
        batch = BlockBatch(on_device, size, block_size)
        parsed = self._parser.parse(on_device, size, block_size, options)
        data = cupy.empty(payload_bytes(block_size, batch.num_blocks), np.uint8)
        payloads = encode_payloads(self._arrays, batch, parsed, options, data, scratch)
        check_payloads(self._arrays, batch, payloads, options, scratch)
        gather_payloads(self._arrays, payloads, scratch)
        self._fetch_results(slot, payloads)
        return _Slice(content, batch.num_blocks, slot, slot.stream.record())

    def _fetch_results(self, slot: Slot, payloads: Payloads) -> None:
        """Queues the copy of sizes and statuses to pinned memory."""
        sizes = slot.pinned("sizes", payloads.sizes.nbytes).view(np.uint32)
        payloads.sizes.get(slot.stream, out=sizes, blocking=False)
        payloads.statuses.get(slot.stream, out=slot.pinned("statuses", payloads.statuses.nbytes), blocking=False)

    def _finish(self, encoded: _Slice, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """Returns the blocks of a slice, and frees its slot."""
        try:
            return self._frame(encoded, block_size, options)
        finally:
            self._free_slots.put(encoded.slot)

    def _frame(self, encoded: _Slice, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """Waits for the kernels of a slice, copies its payloads back, and returns the blocks."""
        slot = encoded.slot
        encoded.done.synchronize()
        sizes = slot.pinned("sizes", 4 * encoded.num_blocks).view(np.uint32)
        statuses = slot.pinned("statuses", encoded.num_blocks)
        total = int((-(-sizes.astype(np.int64) // ALIGNMENT) * ALIGNMENT).sum())
        with cupy.cuda.Device(self._number):
            packed = slot.pinned("packed", len(encoded.content))[:total]
            slot.device("scratch", total).get(slot.stream, out=packed, blocking=False)
            slot.stream.synchronize()
        with self._counting:
            self.num_failed += int(np.count_nonzero(statuses))
        blocks = _codec.frame_payloads(
            encoded.content, block_size, options.codec, options.level, options.dependency_elimination,
            self._num_threads, packed.data, sizes.data, statuses.data, options.group_size_log2, options.strict_sources,
        )  # fmt: skip
        return [EncodedBlock(block, Codec(codec), size) for block, codec, size in blocks]
