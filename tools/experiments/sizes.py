"""Measures ratio and speed of our kernels by block size (Fig. 12)."""

from __future__ import annotations

from gompfs.codec import MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, CodecOptions
from gompfs.engine.gpu import GpuEngine
from tools.bench.device import Sample, check, make_sample, time_on_device
from tools.bench.report import Cell, Plot, Report
from tools.bench.resident import ResidentBlocks

from .strategies import CODECS, LEVEL


def measure_sizes(sample: Sample, engine: GpuEngine, rounds: int) -> list[Report]:
    """Returns a table of both codecs by block size, all on the same data."""
    columns = [f"{codec.label} {what}" for codec in CODECS for what in ("ratio", "GB/s")]
    report = Report(
        f"{sample.name} -{LEVEL}, about {sample.size / 1e9:.2f} GB by block size: ratio, and GB/s in device memory, "
        f"medians of {rounds}",
        ["blocks", *columns],
    )
    largest = min(MAX_BLOCK_SIZE, 1 << (len(sample.content).bit_length() - 1))
    content = sample.content[: len(sample.content) // largest * largest]
    block_size = MIN_BLOCK_SIZE
    while block_size <= largest:
        cut = make_sample(sample.name, content, block_size)
        cells = [cell for codec in CODECS for cell in _measure(cut, CodecOptions(codec, LEVEL), engine, rounds)]
        report.add(f"{block_size >> 10} KiB", len(cut.blocks) * cut.repeats, *cells)
        block_size *= 2
    report.notes.append(
        "A warp decodes one block, so if there are fewer blocks than resident warps, part of the device is idle."
    )
    for what, y_label in (("GB/s", "output, GB/s"), ("ratio", "compression ratio")):
        lines = tuple(f"{codec.label} {what}" for codec in CODECS)
        name = f"sizes-{what.partition('/')[0]}-{sample.name}"
        report.plots.append(Plot(name, "lines", lines, "block size", y_label))
    return [report]


def _measure(sample: Sample, options: CodecOptions, engine: GpuEngine, rounds: int) -> list[Cell]:
    """Returns ratio and GB/s."""
    encoded = sample.encode(options)
    if encoded is None:
        return ["has blocks that do not shrink", None]
    resident = ResidentBlocks(engine, encoded * sample.repeats)
    seconds = time_on_device(resident.decode, rounds)
    check(options.codec.label, resident.all_decoded() and sample.is_repeated_in(resident.output))
    return [len(sample.content) / sum(map(len, encoded)), sample.size / 1e9 / seconds]
