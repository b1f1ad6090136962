"""Opens heads of parts on a GPU (kernels/codec/open_heads.cu)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.decode.head_store import HeadTask
from gompfs.gpu.device.cuda import PADDING, clear, load_kernel, pinned_array
from gompfs.gpu.device.kernel_sources import SHARED_BYTES

_KERNEL = "codec/open_heads"
_THREADS_PER_CTA = 128
_SHARED_BYTES, _ = SHARED_BYTES[_KERNEL]
_WORKSPACE_ALIGNMENT = 256
_TASK = np.dtype(
    [("payload", "<u8"), ("head", "<u8"), ("workspace", "<u8"), ("words", "<u8"), ("payload_size", "<u4"),
     ("pool_size", "<u4"), ("num_symbols", "<u4"), ("workspace_size", "<u4")]
)  # fmt: skip


class HeadOpener:
    """See HeadDevice. For the current device, and for one thread at a time."""

    def __init__(self, workspace_bytes: int, synchronize: Callable[[], None]) -> None:
        """Uses at most `workspace_bytes` of device memory besides the heads and their payloads.

        `synchronize` waits for all kernels that may read heads.
        """
        self.workspace_bytes = workspace_bytes
        self._synchronize = synchronize
        self._pinned = np.zeros(0, np.uint8)
        self._workspace = cupy.empty(0, cupy.uint8)

    def wait_for_readers(self) -> None:
        """See HeadDevice."""
        self._synchronize()

    def pinned_payloads(self, size: int) -> NDArray[np.uint8]:
        """See HeadDevice."""
        if self._pinned.size < size:
            self._pinned = pinned_array(size)
        return self._pinned[:size]

    def reserve(self, size: int) -> None:
        """See HeadDevice. CuPy keeps the memory for allocations on the same stream, and cuts it."""
        cupy.empty(size, cupy.uint8)

    def allocate_head(self, size: int) -> cupy.ndarray:
        """See HeadDevice."""
        return cupy.empty(size, cupy.uint8)

    def upload_head(self, packed: NDArray[np.uint8]) -> cupy.ndarray:
        """See HeadDevice."""
        head = cupy.empty(packed.size, cupy.uint8)
        head.set(packed)
        cupy.cuda.get_current_stream().synchronize()
        return head

    def open_heads(self, payloads: NDArray[np.uint8], tasks: Collection[HeadTask]) -> NDArray[np.uint8]:
        """See HeadDevice."""
        stream = cupy.cuda.get_current_stream()
        on_device = cupy.empty(payloads.size + PADDING, cupy.uint8)
        on_device[: payloads.size].set(payloads, stream)
        batch = self.prepare(on_device, tasks)
        batch.launch()
        return batch.statuses()

    def prepare(self, payloads: cupy.ndarray, tasks: Collection[HeadTask]) -> HeadBatch:
        """Returns a batch of heads whose payloads are in device memory, each at its offset in `payloads`.

        It can be launched until the next call.
        """
        records, rounds = self._describe(int(payloads.data.ptr), tasks)
        return HeadBatch(*self._compiled, records, rounds, payloads)

    @cached_property
    def _compiled(self) -> tuple[cupy.cuda.Function, int]:
        """The kernel, and the number of its CTAs that the device holds at once. Not every archive has heads."""
        kernel, num_resident = load_kernel(_KERNEL, _THREADS_PER_CTA, _SHARED_BYTES)
        return kernel, num_resident * int(cupy.cuda.Device().attributes["MultiProcessorCount"])

    def release(self) -> None:
        """Frees the workspace."""
        self._workspace = cupy.empty(0, cupy.uint8)

    def _describe(self, payloads: int, tasks: Collection[HeadTask]) -> tuple[NDArray[np.void], list[tuple[int, int]]]:
        """Returns the task of the kernel for each head, and the first and the number of the heads of each launch.

        The workspaces of a launch fit into the memory for them.
        """
        records = np.zeros(len(tasks), _TASK)
        rounds: list[tuple[int, int]] = []
        first = end = largest = 0
        for index, task in enumerate(tasks):
            size = -(-task.memory.workspace_size // _WORKSPACE_ALIGNMENT) * _WORKSPACE_ALIGNMENT
            if end + size > self.workspace_bytes and index > first:
                rounds.append((first, index - first))
                first, end = index, 0
            records[index] = (
                payloads + task.payload_offset, task.target.data.ptr, end, task.words, task.payload_size,
                task.pool_size, task.memory.num_symbols, task.memory.workspace_size,
            )  # fmt: skip
            end += size
            largest = max(largest, end)
        if len(tasks) > first:
            rounds.append((first, len(tasks) - first))
        if self._workspace.size < largest:
            self._workspace = cupy.empty(0, cupy.uint8)
            self._workspace = cupy.empty(largest, cupy.uint8)
        records["workspace"] += np.uint64(self._workspace.data.ptr)
        return records, rounds


class HeadBatch:
    """Heads that the device can open."""

    def __init__(
        self,
        kernel: cupy.cuda.Function,
        max_ctas: int,
        records: NDArray[np.void],
        rounds: list[tuple[int, int]],
        payloads: cupy.ndarray,
    ) -> None:
        """See HeadOpener.prepare."""
        self._kernel = kernel
        self._max_ctas = max_ctas
        self._rounds = rounds
        self._payloads = payloads  # the kernel reads them
        self._records = cupy.asarray(records.view(np.uint8))
        self._statuses = cupy.empty(len(records), cupy.uint8)
        self._counters = cupy.empty(len(rounds), cupy.uint32)
        self._done = cupy.cuda.Event(block=True, disable_timing=True)  # a thread that waits leaves its core to others

    def launch(self) -> None:
        """Queues the opening of the heads on the current stream."""
        clear(self._counters)
        for number, (first, count) in enumerate(self._rounds):
            arguments = (
                self._records[first * _TASK.itemsize :], self._statuses[first:], self._counters[number:],
                np.uint32(count),
            )  # fmt: skip
            grid = min(count, self._max_ctas)
            self._kernel((grid,), (_THREADS_PER_CTA,), arguments, shared_mem=_SHARED_BYTES)

    def statuses(self) -> NDArray[np.uint8]:
        """Waits, and returns a BlockStatus for each head."""
        self._done.record()
        self._done.synchronize()
        statuses: NDArray[np.uint8] = self._statuses.get()
        return statuses
