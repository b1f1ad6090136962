"""Reads many files of an archive at once.

All ranges together become one plan (native/blocks/range_plan.h): the different blocks that have bytes of them, and
which piece of each block goes where. On the CPU, C++ threads decode the blocks straight into the result where a block
is one piece of it. A GPU decodes them into its memory, and a kernel moves the pieces (gpu/decode/plan_decoder.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gompfs._native.blocks import RangePlan, ReadFailure
from gompfs.archive import Archive
from gompfs.arrays.caller_memory import device_number, host_memory
from gompfs.arrays.ranges import AnyPath, FileOrRange, Ranges
from gompfs.arrays.result import Arrays
from gompfs.codec import BlockStatus
from gompfs.errors import CorruptBlockError, CorruptIndexError, GompfsError, OptionError, display_path
from gompfs.gpu.device.spread import cut_evenly, run_together
from gompfs.memory import ALWAYS_FREE, check_memory_for, free_memory
from gompfs.options import GpuOptions

if TYPE_CHECKING:
    from gompfs.arrays.device_reader import DeviceReader

_MAX_CACHED_PATHS = 1 << 17


class ArrayReader:
    """Reads the files of one archive. Thread-safe."""

    def __init__(self, archive: Archive, inode_number: Callable[[AnyPath], int], gpu: GpuOptions) -> None:
        """`inode_number` returns the inode number of the regular file at a path, or raises an error.

        `gpu` says what a GPU may use that is not the archive's engine.
        """
        self._archive = archive
        self._find_inode_number = inode_number
        self._gpu = gpu
        self._inode_numbers: dict[str | bytes, int] = {}
        self._device_readers: dict[tuple[int, int], DeviceReader] = {}  # by process and number of the device

    def read(self, wanted: Iterable[FileOrRange] | NDArray[np.integer], device: str, out: Any, stream: Any) -> Arrays:
        """See ArchiveFiles.read_many."""
        number = device_number(device)
        ranges = Ranges(wanted, self._inode_number)
        if number is None and stream is not None:
            raise OptionError("a stream needs a CUDA device", archive=self._archive.path)
        return self._read(ranges, number, out, stream)

    def read_on(self, wanted: Iterable[FileOrRange] | NDArray[np.integer], devices: Sequence[str]) -> list[Arrays]:
        """See ArchiveFiles.read_many_on."""
        numbers = [device_number(device) for device in devices]
        if not numbers:
            raise OptionError("no device is given", archive=self._archive.path)
        ranges = Ranges(wanted, self._inode_number)
        sizes = np.diff(self._plan(ranges).offsets)
        runs = zip(numbers, cut_evenly(sizes, len(numbers)), strict=True)
        return run_together([partial(self._read, ranges.only(run), number, None, None) for number, run in runs])

    def _plan(self, ranges: Ranges) -> RangePlan:
        plan = RangePlan(self._archive.blocks.reader, ranges.inos, ranges.begins, ranges.ends)
        if plan.failure is not None:
            raise self._error(plan.failure, ranges, plan.failed_range)
        return plan

    def _read(self, ranges: Ranges, number: int | None, out: Any, stream: Any) -> Arrays:
        plan = self._plan(ranges)
        if number is None:
            return self._read_on_host(plan, ranges, out)
        reader = self._device_reader(number)
        return reader.read(
            plan, out, stream, lambda: self._locate(plan, ranges),
            lambda block, status: self._block_error(block, status, ranges, plan.range_of(block)),
        )  # fmt: skip

    def _read_on_host(self, plan: RangePlan, ranges: Ranges, out: Any) -> Arrays:
        size = int(plan.offsets[-1])
        if out is None:
            check_memory_for(size)  # before the decoder uses it: sizes may be forged
        data = np.empty(size, np.uint8) if out is None else host_memory(out, size)
        self._locate(plan, ranges)
        engine = self._archive.engine
        on_cpu = engine.decodes_on_cpu(size)
        failure = plan.decode(self._archive.blocks.reader, data.data, engine.num_threads, on_cpu)
        if failure is not None:
            raise self._error(failure, ranges, plan.range_of(failure.block))
        return Arrays(data, plan.offsets)

    def _device_reader(self, number: int) -> DeviceReader:
        key = os.getpid(), number  # a forked child cannot use the device of its parent
        reader = self._device_readers.get(key)
        if reader is None:
            from gompfs.engine.selection import select_device

            device = select_device(number, self._archive.engine, self._gpu)
            from gompfs.arrays.device_reader import DeviceReader

            reader = self._device_readers.setdefault(key, DeviceReader(self._archive, device))
        return reader

    def _locate(self, plan: RangePlan, ranges: Ranges) -> None:
        try:
            failure = plan.locate(ALWAYS_FREE)
        except MemoryError:
            failure = plan.locate(free_memory())
        if failure is not None:
            raise self._error(failure, ranges, plan.failed_range)

    def _error(self, failure: ReadFailure, ranges: Ranges, number: int) -> GompfsError:
        """Returns the error of a range that cannot be read."""
        try:
            error = self._archive.read_error(int(ranges.inos[number]), failure)
        except GompfsError as no_such_file:
            error = no_such_file
        return self._with_path(error, ranges, number)

    def _block_error(self, block: int, status: BlockStatus, ranges: Ranges, number: int) -> GompfsError:
        """Returns the error of a range with bytes of a block that is damaged or, with the status OK, too short."""
        error: GompfsError
        if status is BlockStatus.OK:
            reason = f"inode {ranges.inos[number]} has bytes outside its segment"
            error = CorruptIndexError(reason, archive=self._archive.path)
        else:
            error = CorruptBlockError(status.reason, archive=self._archive.path, block=block)
        return self._with_path(error, ranges, number)

    def _with_path(self, error: GompfsError, ranges: Ranges, number: int) -> GompfsError:
        path = ranges.path(number) or self._archive.path_of(int(ranges.inos[number]))
        error.path = error.path or display_path(path)
        return error

    def _inode_number(self, path: AnyPath) -> int:
        if not isinstance(path, str | bytes):
            return self._find_inode_number(path)
        found = self._inode_numbers.get(path)
        if found is None:
            if len(self._inode_numbers) >= _MAX_CACHED_PATHS:
                self._inode_numbers.clear()
            found = self._inode_numbers[path] = self._find_inode_number(path)
        return found
