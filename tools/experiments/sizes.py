"""Measures ratio and speed of our kernels by block size, also with transfers (Fig. 12)."""

from __future__ import annotations

from gompfs.codec import MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, Codec, CodecOptions
from gompfs.engine.gpu import GpuEngine
from tools.bench.device import Sample, make_sample
from tools.bench.report import Cell, Plot, Report

from .strategies import CODECS, LEVEL
from .transfers import time_copies

_COLUMNS = {"no copies": "GB/s", "input": "GB/s with input", "input and output": "GB/s with both"}


def measure_sizes(sample: Sample, engine: GpuEngine, rounds: int) -> list[Report]:
    """Returns a table by block size for each codec, all on the same data."""
    return [_measure(sample, codec, engine, rounds) for codec in CODECS]


def _measure(sample: Sample, codec: Codec, engine: GpuEngine, rounds: int) -> Report:
    report = Report(
        f"{sample.name}, {codec.label} -{LEVEL}, about {sample.size / 1e9:.2f} GB by block size: ratio, and GB/s in "
        f"device memory, with the copy of the input, and with the copies of input and output, medians of {rounds}",
        ["blocks", "ratio", *_COLUMNS.values()],
    )
    largest = min(MAX_BLOCK_SIZE, 1 << (len(sample.content).bit_length() - 1))
    content = sample.content[: len(sample.content) // largest * largest]
    block_size = MIN_BLOCK_SIZE
    while block_size <= largest:
        cut = make_sample(sample.name, content, block_size, sample.size)
        report.add(f"{block_size >> 10} KiB", len(cut.blocks) * cut.repeats, *_cells(cut, codec, engine, rounds))
        block_size *= 2
    report.notes += [
        "A warp decodes one block, so if there are fewer blocks than resident warps, part of the device is idle.",
        "Copies, from and to pinned memory, and decoding run one after another.",
    ]
    name = f"sizes-{codec.label}-{sample.name}"
    report.plots = [
        Plot(name, "lines", tuple(_COLUMNS.values()), "block size", "output, GB/s"),
        Plot(f"{name}-ratio", "lines", ("ratio",), "block size", "compression ratio"),
    ]
    return report


def _cells(sample: Sample, codec: Codec, engine: GpuEngine, rounds: int) -> list[Cell]:
    """Returns the ratio and the speeds."""
    encoded = sample.encode(CodecOptions(codec, LEVEL, dependency_elimination=True))
    if encoded is None:
        return ["has blocks that do not shrink", *[None] * len(_COLUMNS)]
    out = engine.allocate(sample.size)
    seconds = time_copies(sample, codec, encoded * sample.repeats, out, engine, rounds)
    speeds = [sample.size / 1e9 / seconds[mode] for mode in _COLUMNS]
    return [len(sample.content) / sum(map(len, encoded)), *speeds]
