"""Reads ranges of files into memory of one GPU; see reader.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gompfs._native.blocks import RangePlan
from gompfs.archive import Archive
from gompfs.arrays.caller_memory import device_memory
from gompfs.arrays.result import Arrays
from gompfs.codec import BlockStatus
from gompfs.gpu.decode.archive_source import ArchiveSource
from gompfs.gpu.decode.outputs import DeviceOutput
from gompfs.gpu.decode.plan_decoder import PlanDecoder
from gompfs.gpu.device.caller_arrays import allocate, as_stream

if TYPE_CHECKING:
    from gompfs.gpu.decode.device import Device
    from gompfs.gpu.decode.plan_decoder import Decoding

DamageAt = Callable[[int, BlockStatus], Exception]
"""Returns the error for a damaged block of a plan."""


class DeviceReader:
    """Reads the files of one archive by one GPU. Thread-safe."""

    def __init__(self, archive: Archive, device: Device) -> None:
        """`device` decodes the blocks."""
        self._source = ArchiveSource(archive.stored, archive.engine.num_threads)
        self._number = device.number
        self._decoder = PlanDecoder(device, self._source, verify=archive.verifies_content)

    def read(self, plan: RangePlan, out: Any, stream: Any, locate: Callable[[], None], error_of: DamageAt) -> Arrays:
        """Reads the ranges of a plan. `locate` finds its pieces, or raises an error."""
        size = int(plan.offsets[-1])
        on_stream = as_stream(stream, self._number)
        data = allocate(size, self._number, on_stream) if out is None else device_memory(out, self._number, size)
        locate()
        self._check_ends(plan, error_of)
        holes = zip(*np.split(plan.holes, 2), strict=True)
        output = DeviceOutput(data, in_place=False, holes=[(int(target), int(size)) for target, size in holes])
        read = self._decoder.decode(plan, plan.blocks, output, on_stream)
        arrays = Arrays(data, plan.offsets, f"cuda:{self._number}", lambda: _settle(plan, read, error_of), on_stream)
        return arrays.wait() if stream is None else arrays

    def _check_ends(self, plan: RangePlan, error_of: DamageAt) -> None:
        """Raise an error if a piece ends after the end of its block: an extent crosses the end of a segment."""
        block = plan.overrun_block(self._source.uncompressed_sizes)
        if block is not None:
            raise error_of(block, BlockStatus.OK)


def _settle(plan: RangePlan, read: Decoding, error_of: DamageAt) -> None:
    read.wait()
    damaged = np.flatnonzero(read.statuses)
    if damaged.size:
        block = damaged[0]
        raise error_of(int(plan.blocks[block]), BlockStatus(read.statuses[block]))
