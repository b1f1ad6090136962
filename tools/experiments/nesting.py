"""Measures the strategies on data with increasing depth of dependencies between matches (Fig. 9c and 10)."""

from __future__ import annotations

from gompfs.codec import Codec
from gompfs.engine.gpu import GpuEngine
from tools.bench.device import make_sample
from tools.bench.report import Plot, Report

from .nested import DEPTHS, make_nested
from .strategies import CODECS, LEVEL, Measured, Payload, measure_payload
from .strategy_blocks import Strategy

_DIFFERENT_BLOCKS = 64
_PLAIN = (Strategy.SC, Strategy.MRR, Strategy.MRR_BYTES, Strategy.MRR_LAUNCHES, Strategy.JUMP)
_WITH_DE = {"groups of 4": Payload(2), "strict groups of 32": Payload(5, is_strict=True)}
_SPEEDS = (*(strategy.label for strategy in _PLAIN), "pieces", *(f"DE, {name}" for name in _WITH_DE))


def measure_nesting(engine: GpuEngine, block_size: int, output_bytes: int, rounds: int) -> list[Report]:
    """Returns a table by depth for each codec, without and with dependency elimination."""
    return [_measure(codec, engine, block_size, output_bytes, rounds) for codec in CODECS]


def _measure(codec: Codec, engine: GpuEngine, block_size: int, output_bytes: int, rounds: int) -> Report:
    report = Report(
        f"nested data, {codec.label} -{LEVEL}, blocks of {block_size}: GB/s in device memory by depth, "
        f"medians of {rounds}",
        ["rounds of MRR", *_SPEEDS, "ratio", *(f"ratio, {name}" for name in _WITH_DE)],
    )
    for depth in DEPTHS:
        content = make_nested(depth, _DIFFERENT_BLOCKS * block_size)
        sample = make_sample("nested data", content, block_size, output_bytes)

        def measure(payload: Payload, *strategies: Strategy) -> tuple[float, Measured]:
            encoded = sample.encode(payload.options(codec))  # noqa: B023
            assert encoded is not None
            ratio = len(content) / sum(map(len, encoded))  # noqa: B023
            return ratio, measure_payload(sample, encoded, engine, rounds, strategies)  # noqa: B023

        ratio, plain = measure(Payload(), *_PLAIN)
        with_de = [measure(payload, Strategy.DE) for payload in _WITH_DE.values()]
        speeds = [*(plain.speeds[strategy] for strategy in _PLAIN), plain.pieces]
        speeds += [measured.speeds[Strategy.DE] for _, measured in with_de]
        report.add(str(depth), plain.rounds[Strategy.MRR].average, *speeds, ratio, *(ratio for ratio, _ in with_de))
    report.notes += [
        (
            "SC, MRR, jumping, pieces and the first ratio: without dependency elimination, so that the encoder keeps "
            "the depth."
        ),
        "Rounds are averages per row of 32 sequences; the first sequences of a block consist of literals.",
    ]
    x_label = "depth: rounds that a row of 32 sequences needs"
    report.plots = [
        Plot(f"nesting-{codec.label}", "lines", _SPEEDS, x_label, "output, GB/s"),
        Plot(f"nesting-rounds-{codec.label}", "lines", ("rounds of MRR",), x_label, "rounds measured"),
    ]
    return report
