"""Measures compressing on a GPU: in device memory beside nvCOMP, with each kernel's time, and host to host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import cupy
import numpy as np

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine
from gompfs.gpu.device.arrays import Tile
from gompfs.gpu.device.cupy_arrays import GpuArrays
from gompfs.gpu.encode.encode_kernels import (
    READABLE,
    BlockBatch,
    check_payloads,
    encode_payloads,
    gather_payloads,
    payload_bytes,
)
from gompfs.gpu.encode.parser import Parser

from . import nvcomp
from .device import check, describe_device, time_on_device, time_on_host
from .report import NOT_INSTALLED, Cell, Report

BATCH_BYTES = 128 << 20
_OURS = [(Codec.GOMPRESSO_BIT, level) for level in range(1, 9)] + [
    (Codec.GOMPRESSO_BYTE, level) for level in range(1, 6)
]
_COLUMNS = ["ratio", "GB/s, device memory", "GB/s, host to host"]


class _TimedArrays(GpuArrays):
    """Records an event before and after each kernel while `events` is a list."""

    events: list[tuple[str, cupy.cuda.Event, cupy.cuda.Event]] | None = None

    def launch(
        self,
        source: str,
        kernel: str,
        num_items: int,
        *arguments: object,
        one_cta: bool = False,
        tile: Tile | None = None,
    ) -> None:
        """See ArrayDevice.launch."""
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        super().launch(source, kernel, num_items, *arguments, one_cta=one_cta, tile=tile)
        end.record()
        if self.events is not None:
            self.events.append((kernel, start, end))

    def seconds_by_kernel(self) -> dict[str, float]:
        """Returns the time of each kernel since `events` was an empty list."""
        self.synchronize()
        seconds: dict[str, float] = defaultdict(float)
        for kernel, start, end in self.events or []:
            seconds[kernel] += float(cupy.cuda.get_elapsed_time(start, end)) / 1e3
        return seconds


@dataclass
class _Resident:
    """Blocks in device memory, which are parsed, encoded, checked and gathered there."""

    device: _TimedArrays
    batch: BlockBatch
    options: CodecOptions
    data: cupy.ndarray
    scratch: cupy.ndarray

    def encode(self) -> None:
        """Queues all kernels."""
        parsed = Parser(self.device).parse(
            self.batch.content, self.batch.content_size, self.batch.block_size, self.options
        )
        self.payloads = encode_payloads(self.device, self.batch, parsed, self.options, self.data, self.scratch)
        check_payloads(self.device, self.batch, self.payloads, self.options, self.scratch)
        gather_payloads(self.device, self.payloads, self.scratch)


def measure_gpu_compress(name: str, blocks: Sequence[bytes], rounds: int, only: Sequence[str] = ()) -> list[Report]:
    """Returns a table of speeds and a table of the kernels' times for blocks of one size, repeated to BATCH_BYTES."""
    block_size = len(blocks[0])
    blocks = [block for block in blocks if len(block) == block_size]
    repeats = max(BATCH_BYTES // (len(blocks) * block_size), 1)
    content = b"".join(blocks) * repeats
    title = f"compressing {name} on a GPU, {len(content) / 1e6:.0f} MB in blocks of {block_size}"
    speeds = Report(f"{title}, medians of {rounds}", _COLUMNS)
    kernels = Report(f"{title}: milliseconds of each kernel", ["all"])
    for codec, level in _OURS:
        if not only or any(text in f"{codec.label}-{level}" for text in only):
            _add_ours(speeds, kernels, content, block_size, CodecOptions(codec, level), rounds)
    _add_peers(speeds, list(blocks) * repeats, rounds)
    for _, cells in kernels.rows:
        cells += [None] * (len(kernels.columns) - len(cells))  # later rows brought further kernels
    speeds.notes.append(
        "Device memory: all kernels, from blocks to payloads without gaps that were decoded again and compared; no "
        "transfers, headers or checksums. Host to host: the engine, with both transfers, headers and checksums."
    )
    speeds.notes.append(f"nvCOMP: compression alone; its ratios have no headers and no gaps. {describe_device()}.")
    return [speeds, kernels]


def _add_ours(
    speeds: Report, kernels: Report, content: bytes, block_size: int, options: CodecOptions, rounds: int
) -> None:
    """Adds the rows of a codec and level to both tables, after comparing the blocks with those of the CPU."""
    label = f"{options.codec.label}-{options.level}"
    encoded, on_host = _time_engine(label, content, block_size, options, rounds)
    with _TimedArrays(memory=128 * len(content)) as device:
        array = np.frombuffer(content + bytes(READABLE), np.uint8)
        batch = BlockBatch(device.upload(array), len(content), block_size)
        resident = _Resident(
            device,
            batch,
            options,
            cupy.empty(payload_bytes(block_size, batch.num_blocks), np.uint8),
            cupy.empty(len(content) + READABLE, np.uint8),
        )
        on_device = time_on_device(resident.encode, rounds)
        check(label, not resident.payloads.statuses.any())
        device.events = []
        resident.encode()
        seconds = device.seconds_by_kernel()
    speeds.add(label, len(content) / encoded, len(content) / 1e9 / on_device, len(content) / 1e9 / on_host)
    kernels.columns += [kernel for kernel in seconds if kernel not in kernels.columns]
    cells: list[Cell] = [sum(seconds.values()) * 1e3]
    kernels.add(label, *cells, *(seconds[name] * 1e3 if name in seconds else None for name in kernels.columns[1:]))


def _time_engine(label: str, content: bytes, block_size: int, options: CodecOptions, rounds: int) -> tuple[int, float]:
    """Returns the size of the blocks that a GPU engine makes, and the median seconds that it takes."""
    engine = GpuEngine()
    blocks = engine.encode_blocks(content, block_size, options)
    check(label, blocks == CpuEngine().encode_blocks(content, block_size, options) and engine.num_reencoded == 0)
    seconds = time_on_host(lambda: engine.encode_blocks(content, block_size, options), rounds)
    return sum(block.compressed_size for block in blocks), seconds


def _add_peers(report: Report, blocks: Sequence[bytes], rounds: int) -> None:
    library = nvcomp.load_library()
    for codec, level in nvcomp.PEERS:
        label = nvcomp.label(codec, level)
        if library is None:
            report.add(label, NOT_INSTALLED, None, None)
            continue
        peer = nvcomp.NvcompBatch(library, codec, level, blocks)
        seconds = time_on_device(peer.compress, rounds)
        peer.decode()
        check(label, peer.is_right())
        size = sum(map(len, blocks))
        report.add(label, size / peer.compressed_size, size / 1e9 / seconds, None)
        del peer
        cupy.get_default_memory_pool().free_all_blocks()
