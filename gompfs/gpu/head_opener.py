"""Opens heads of parts on a GPU (kernels/codec/open_heads.cu)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.cuda import PADDING, compile_kernel, pinned_array
from gompfs.gpu.heads import HeadTask
from gompfs.gpu.kernels import SHARED_BYTES

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

    def pinned_payloads(self, size: int) -> NDArray[np.uint8]:
        """See HeadDevice."""
        if self._pinned.size < size:
            self._pinned = pinned_array(size)
        return self._pinned[:size]

    def allocate_head(self, size: int) -> cupy.ndarray:
        """See HeadDevice."""
        return cupy.empty(size, cupy.uint8)

    def upload_head(self, packed: NDArray[np.uint8]) -> cupy.ndarray:
        """See HeadDevice."""
        self._synchronize()  # no kernel reads the memory any more, even if a batch before has failed
        head = cupy.empty(packed.size, cupy.uint8)
        head.set(packed)
        cupy.cuda.get_current_stream().synchronize()
        return head

    def open_heads(self, payloads: NDArray[np.uint8], tasks: Collection[HeadTask]) -> NDArray[np.uint8]:
        """See HeadDevice."""
        self._synchronize()  # see upload_head
        on_device = cupy.empty(payloads.size + PADDING, cupy.uint8)
        on_device[: payloads.size].set(payloads)
        return self.open_payloads(on_device, tasks)()

    def open_payloads(self, payloads: cupy.ndarray, tasks: Collection[HeadTask]) -> Callable[[], NDArray[np.uint8]]:
        """Queues the opening of heads whose payloads are in device memory.

        The payload of a task is at its offset in `payloads`. Returns a function that waits and returns the statuses.
        """
        kernel, max_ctas = self._compiled
        records, rounds = self._describe(int(payloads.data.ptr), tasks)
        on_device = cupy.asarray(records.view(np.uint8))
        statuses = cupy.empty(len(records), cupy.uint8)
        counters = cupy.zeros(len(rounds), cupy.uint32)
        for number, (first, count) in enumerate(rounds):
            arguments = (
                on_device[first * _TASK.itemsize :], statuses[first:], counters[number:], np.uint32(count),
            )  # fmt: skip
            kernel((min(count, max_ctas),), (_THREADS_PER_CTA,), arguments, shared_mem=_SHARED_BYTES)
        kept = payloads, on_device, counters

        def finish() -> NDArray[np.uint8]:
            found: NDArray[np.uint8] = statuses.get()
            assert kept  # the kernels read these until they end
            return found

        return finish

    @cached_property
    def _compiled(self) -> tuple[cupy.RawKernel, int]:
        """The kernel, and the number of its CTAs that the device holds at once. Not every archive has heads."""
        kernel, num_resident = compile_kernel(_KERNEL, _THREADS_PER_CTA, _SHARED_BYTES)
        return kernel, num_resident * int(cupy.cuda.Device().attributes["MultiProcessorCount"])

    def release(self) -> None:
        """Frees the workspace."""
        self._workspace = cupy.empty(0, cupy.uint8)

    def _describe(
        self, payloads: int, tasks: Collection[HeadTask]
    ) -> tuple[NDArray[np.void], list[tuple[int, int]]]:
        """Returns what the kernel needs about each head, and the first and the number of the heads of each launch.

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
