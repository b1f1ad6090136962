"""Compares strategies, the bytes of their rounds, and the cost of dependency elimination (Fig. 9a, 9b and 11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine
from tools.bench.device import Sample, check, time_on_device, time_on_host
from tools.bench.report import Cell, Plot, Report
from tools.bench.resident import ResidentBlocks

from .rounds import Rounds, tabulate_rounds
from .strategy_blocks import Strategy, StrategyBlocks

CODECS = (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE)
LEVEL = 6
_PACKED_BYTES = 1 << 20  # of the data whose packing is timed
_SHOWN_ROUNDS = ("without DE", "groups of 4")


@dataclass(frozen=True)
class Payload:
    """How an encoder keeps matches from depending on each other: not at all if `group_size_log2` is None.

    `is_strict` is the paper's rule: sources are below the high-water mark. Otherwise they may also be literals of the
    same group.
    """

    group_size_log2: int | None = None
    is_strict: bool = False

    def options(self, codec: Codec) -> CodecOptions:
        """Returns the options for an encoder."""
        has_groups = self.group_size_log2 is not None
        return CodecOptions(codec, LEVEL, has_groups, self.group_size_log2 or 2, strict_sources=self.is_strict)


_PAYLOADS = {
    "without DE": Payload(),
    **{f"groups of {1 << size_log2}": Payload(size_log2) for size_log2 in (2, 3, 4, 5)},
    "strict groups of 32": Payload(5, is_strict=True),
}
_SPEEDS = (*(strategy.label for strategy in Strategy), "pieces")
_ROUNDS = {
    "rounds of MRR": Strategy.MRR,
    "rounds of DE": Strategy.DE,
    "kernels of MRR": Strategy.MRR_LAUNCHES,
    "rounds of jumping": Strategy.JUMP,
}


@dataclass(frozen=True)
class Measured:
    """GB/s of each strategy that a payload allows, and of pieces; and the counts of rounds."""

    pieces: float
    speeds: dict[Strategy, float]
    rounds: dict[Strategy, Rounds]


def measure_strategies(sample: Sample, engine: GpuEngine, rounds: int) -> list[Report]:
    """Returns a table of strategies by payload for each codec, and a table of the bytes copied by each round of MRR."""
    reports = []
    counted: dict[str, Rounds] = {}
    for codec in CODECS:
        report = Report(
            f"{sample.name}, {codec.label} -{LEVEL}, {sample.size / 1e9:.2f} GB in blocks of {sample.block_size}: "
            f"GB/s in device memory, medians of {rounds}",
            ["ratio", "packing MB/s", *_SPEEDS, *_ROUNDS],
        )
        for name, payload in _PAYLOADS.items():
            options = payload.options(codec)
            encoded = sample.encode(options)
            if encoded is None:
                report.add(name, "has blocks that do not shrink", *[None] * (len(report.columns) - 1))
                continue
            measured = measure_payload(sample, encoded, engine, rounds)
            ratio = len(sample.content) / sum(map(len, encoded))
            report.add(name, ratio, _time_packing(sample, options), *_cells(measured))
            if name in _SHOWN_ROUNDS:
                counted[f"{codec.label}, {name}"] = measured.rounds[Strategy.MRR]
        report.notes += [
            (
                "Lanes copy up to eight bytes a step; with bytes, one. With kernels, each round is a kernel, and "
                "matches that wait are in device memory."
            ),
            (
                "Rounds are per row of 32 sequences; SC takes 32. DE copies one group after another, each at once. "
                "With kernels, rounds are those of the whole batch."
            ),
            "Jumping replaces each byte's source by that source's source; its rounds are per block.",
            (
                "Strict: sources are below the high-water mark, as in the paper; otherwise they may also be literals "
                "of the same group. Packing uses one CPU thread. Ratios include the 32-byte header of each block."
            ),
        ]
        report.plots = [
            Plot(f"strategies-{codec.label}-{sample.name}", "bars", _SPEEDS, "payload", "output, GB/s"),
            Plot(f"ratio-{codec.label}-{sample.name}", "bars", ("ratio",), "payload", "compression ratio"),
            Plot(f"packing-{codec.label}-{sample.name}", "bars", ("packing MB/s",), "payload", "packing, MB/s"),
        ]
        reports.append(report)
    return [*reports, tabulate_rounds(sample.name, counted)]


def measure_payload(
    sample: Sample, encoded: list[bytes], engine: GpuEngine, rounds: int, strategies: Iterable[Strategy] = Strategy
) -> Measured:
    """Times the `strategies` that `encoded` allows, and pieces; checks the output of each."""
    resident = ResidentBlocks(engine, encoded * sample.repeats)
    pieces = sample.size / 1e9 / time_on_device(resident.decode, rounds)
    check("pieces", resident.all_decoded() and sample.is_repeated_in(resident.output))
    del resident
    blocks = StrategyBlocks(encoded, sample.repeats)
    measured = Measured(pieces, {}, {})
    for strategy in strategies:
        if blocks.allow(strategy):
            measured.rounds[strategy] = blocks.count(strategy)
            check(strategy.label, blocks.all_decoded() and sample.is_repeated_in(blocks.output))
            seconds = time_on_device(partial(blocks.decode, strategy), rounds)
            measured.speeds[strategy] = sample.size / 1e9 / seconds
    return measured


def _cells(measured: Measured) -> list[Cell]:
    rounds = measured.rounds
    return [
        *(measured.speeds.get(strategy) for strategy in Strategy),
        measured.pieces,
        *(rounds[strategy].average if strategy in rounds else None for strategy in _ROUNDS.values()),
    ]


def _time_packing(sample: Sample, options: CodecOptions) -> float:
    """Returns the MB/s of one thread, on blocks sampled from all of the data."""
    step = max(len(sample.content) // _PACKED_BYTES, 1)
    stream = b"".join(sample.blocks[::step])
    engine = CpuEngine(1)
    seconds = time_on_host(lambda: engine.encode_blocks(stream, sample.block_size, options), 1)
    return len(stream) / 1e6 / seconds
