"""Measures the strategies on data with increasing depth of dependencies between matches (Fig. 9c and 10)."""

from __future__ import annotations

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.gpu import GpuEngine
from tools.bench.device import make_sample
from tools.bench.report import Plot, Report

from .nested import DEPTHS, make_nested
from .strategies import CODECS, LEVEL, measure_payload

_DIFFERENT_BLOCKS = 64
_SPEEDS = ("SC", "MRR", "pieces", "DE, groups of 4", "DE, groups of 32")


def measure_nesting(engine: GpuEngine, block_size: int, rounds: int) -> list[Report]:
    """Returns a table by depth for each codec, without and with dependency elimination."""
    return [_measure(codec, engine, block_size, rounds) for codec in CODECS]


def _measure(codec: Codec, engine: GpuEngine, block_size: int, rounds: int) -> Report:
    report = Report(
        f"nested data, {codec.label} -{LEVEL}, blocks of {block_size}: GB/s in device memory by depth, "
        f"medians of {rounds}",
        ["rounds of MRR", *_SPEEDS, "ratio", "ratio, groups of 4", "ratio, groups of 32"],
    )
    for depth in DEPTHS:
        sample = make_sample("nested data", make_nested(depth, _DIFFERENT_BLOCKS * block_size), block_size)
        speeds = {}
        ratios = []
        for elimination, group_size_log2 in ((False, 2), (True, 2), (True, 5)):
            encoded = sample.encode(CodecOptions(codec, LEVEL, elimination, group_size_log2))
            assert encoded is not None
            ratios.append(len(sample.content) / sum(map(len, encoded)))
            speeds[elimination, group_size_log2] = measure_payload(sample, encoded, engine, elimination, rounds)
        plain = speeds[False, 2]
        report.add(
            str(depth), plain.multi_round_rounds.average, plain.sequential, plain.multi_round, plain.pieces,
            speeds[True, 2].elimination, speeds[True, 5].elimination, *ratios,
        )  # fmt: skip
    report.notes += [
        "SC, MRR, pieces and the first ratio: without dependency elimination, so that the encoder keeps the depth.",
        "Rounds are averages per row of 32 sequences; the first sequences of a block consist of literals.",
    ]
    x_label = "depth: rounds that a row of 32 sequences needs"
    report.plots = [
        Plot(f"nesting-{codec.label}", "lines", _SPEEDS, x_label, "output, GB/s"),
        Plot(f"nesting-rounds-{codec.label}", "lines", ("rounds of MRR",), x_label, "rounds measured"),
    ]
    return report
