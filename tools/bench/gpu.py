"""Measures decoding on a GPU: in device memory beside nvCOMP, and through the engine including transfers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import cupy

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine
from gompfs.options import GpuOptions

from . import nvcomp
from .device import Sample, check, describe_device, read_sample, time_copy_to_host, time_on_device, time_on_host
from .report import NOT_INSTALLED, Cell, Report, divide
from .resident import ResidentBlocks

_OURS = ((Codec.GOMPRESSO_BIT, 6), (Codec.GOMPRESSO_BIT, 8), (Codec.GOMPRESSO_BYTE, 6), (Codec.GOMPRESSO_BYTE, 1))
_PAIRS = (
    ("gompresso-bit -6", "nvCOMP Gdeflate 5"),
    ("gompresso-bit -8", "nvCOMP Gdeflate 5"),
    ("gompresso-byte -6", "nvCOMP LZ4"),
    ("gompresso-byte -6", "nvCOMP Snappy"),
    ("gompresso-byte -1", "nvCOMP LZ4"),
    ("gompresso-byte -1", "nvCOMP Snappy"),
)
_BATCHES = 201  # batches that are timed for a latency


def measure_gpu(paths: Sequence[Path], block_size: int, every: int, rounds: int) -> list[Report]:
    """Returns tables for each file or directory: device memory to device memory, host to host, and latency."""
    engine = GpuEngine()
    engine.least_decoded = 0  # small batches are measured too
    reports = []
    for path in paths:
        sample = read_sample(path, block_size, every)
        reports.append(_measure_resident(sample, engine, rounds))
        reports.append(_measure_transfers(sample, engine, rounds))
        reports.append(_measure_latency(sample, engine))
    return reports


def _measure_resident(sample: Sample, engine: GpuEngine, rounds: int) -> Report:
    size = sample.size
    report = Report(
        f"{sample.name}, {size / 1e9:.2f} GB in blocks of {sample.block_size}, in device memory: GB/s, "
        f"medians of {rounds}",
        ["ratio", "GB/s"],
    )
    results: dict[str, tuple[float, float]] = {}
    for codec, level in _OURS:
        label = f"{codec.label} -{level}"
        encoded = sample.encode(CodecOptions(codec, level, dependency_elimination=True))
        if encoded is None:
            report.add(label, "has blocks that do not shrink", None)
            continue
        resident = ResidentBlocks(engine, encoded * sample.repeats)
        seconds = time_on_device(resident.decode, rounds)
        results[label] = (len(sample.content) / sum(map(len, encoded)), size / 1e9 / seconds)
        check(label, resident.all_decoded() and sample.is_repeated_in(resident.output))
        del resident
    library = nvcomp.load_library()
    for codec_name, level in nvcomp.PEERS:
        label = nvcomp.label(codec_name, level)
        if library is None:
            report.add(label, NOT_INSTALLED, None)
            continue
        peer = nvcomp.NvcompBatch(library, codec_name, level, sample.blocks, sample.repeats)
        ratio = len(sample.content) / peer.compressed_size
        results[label] = (ratio, size / 1e9 / time_on_device(peer.decode, rounds))
        check(label, peer.is_right())
        del peer
        cupy.get_default_memory_pool().free_all_blocks()
    for label, values in results.items():
        report.add(label, *values)
    for ours, theirs in _PAIRS:
        if ours in results and theirs in results:
            cells: list[Cell] = [divide(a, b) for a, b in zip(results[ours], results[theirs], strict=True)]
            report.add(f"{ours} / {theirs}", *cells)
    report.notes.append(describe_device() + (f", nvCOMP {nvcomp.version()}." if library is not None else "."))
    report.notes.append(
        "Our ratios include the 32-byte header of each block. Checksums are checked on the host, and not in this table."
    )
    return report


def _measure_transfers(sample: Sample, engine: GpuEngine, rounds: int) -> Report:
    size = sample.size
    out = engine.allocate(size)
    copy = time_copy_to_host(out, rounds)
    report = Report(
        f"{sample.name}, {size / 1e9:.2f} GB, host memory to host memory: GB/s of output, medians of {rounds}",
        ["GB/s", "share of the copy to the host"],
    )
    report.add("copy to the host alone", size / 1e9 / copy, 1.0)
    keeping = GpuEngine(options=GpuOptions())
    ways = (("pinned", engine, out), ("pinned, payloads on the device", keeping, out))
    for codec in (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE):
        blocks = engine.encode_blocks(
            sample.content, sample.block_size, CodecOptions(codec, dependency_elimination=True)
        )
        encoded = [block.data for block in blocks] * sample.repeats
        for label, way, target in (*ways, ("pageable", engine, memoryview(bytearray(size)))):
            seconds = time_on_host(lambda: way.decode_blocks(encoded, target), rounds)  # noqa: B023
            check(codec.label, sample.is_repeated_in(target))
            report.add(f"{codec.label} -6, {label}", size / 1e9 / seconds, copy / seconds)
    report.notes.append(f"{describe_device()}.")
    report.notes.append(
        "Includes checks of headers and checksums, both copies and decoding; pageable memory needs one more copy. "
        "Payloads that are on the device from the previous round are neither checked nor copied again."
    )
    return report


def _measure_latency(sample: Sample, gpu: GpuEngine) -> Report:
    """Measures one batch of blocks after another, from host memory, as a mount requests them."""
    blocks = [block.data for block in gpu.encode_blocks(sample.content, sample.block_size, CodecOptions())]
    engines = (("CPU alone", CpuEngine()), ("GPU alone", gpu))
    report = Report(
        f"{sample.name}: microseconds for a batch of gompresso-bit -6, host to host, medians of {_BATCHES}",
        [label for label, _ in engines],
    )
    for count in (1, min(max((1 << 20) // sample.block_size, 1), len(blocks))):
        row: list[Cell] = []
        for _, engine in engines:
            out = engine.allocate(count * sample.block_size)
            batches = itertools.cycle(blocks[first : first + count] for first in range(len(blocks) - count + 1))
            seconds = time_on_host(lambda: engine.decode_blocks(next(batches), out), _BATCHES)  # noqa: B023
            row.append(seconds * 1e6)
        report.add(f"{count * sample.block_size} bytes", *row)
    report.notes.append(f"{describe_device()}.")
    return report
