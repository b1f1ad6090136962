"""Compares strategies, the bytes of their rounds, and the cost of dependency elimination (Fig. 9a, 9b and 11)."""

from __future__ import annotations

from dataclasses import dataclass

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
_PAYLOADS: dict[str, tuple[bool, int]] = {
    "without DE": (False, 2),
    **{f"groups of {1 << size_log2}": (True, size_log2) for size_log2 in (2, 3, 4, 5)},
}
_SHOWN_ROUNDS = ("without DE", "groups of 4")
_SPEEDS = ("SC", "MRR", "DE", "jumping", "pieces")
_PACKED_BLOCKS = 32  # number of blocks whose packing is timed


@dataclass(frozen=True)
class Speeds:
    """GB/s of each strategy on one payload (None for DE on a payload that lacks it), and the counts of rounds."""

    sequential: float
    multi_round: float
    elimination: float | None
    jumping: float
    pieces: float
    multi_round_rounds: Rounds
    elimination_rounds: Rounds | None
    jumping_rounds: Rounds


def measure_strategies(sample: Sample, engine: GpuEngine, rounds: int) -> list[Report]:
    """Returns a table of strategies by payload for each codec, and a table of the bytes copied by each round of MRR."""
    reports = []
    counted: dict[str, Rounds] = {}
    for codec in CODECS:
        report = Report(
            f"{sample.name}, {codec.label} -{LEVEL}, {sample.size / 1e9:.2f} GB in blocks of {sample.block_size}: "
            f"GB/s in device memory, medians of {rounds}",
            ["ratio", "packing MB/s", *_SPEEDS, "rounds of MRR", "rounds of DE", "rounds of jumping"],
        )
        for payload, (elimination, group_size_log2) in _PAYLOADS.items():
            options = CodecOptions(codec, LEVEL, elimination, group_size_log2)
            encoded = sample.encode(options)
            if encoded is None:
                report.add(payload, "has blocks that do not shrink", *[None] * (len(report.columns) - 1))
                continue
            speeds = measure_payload(sample, encoded, engine, elimination, rounds)
            ratio = len(sample.content) / sum(map(len, encoded))
            report.add(payload, ratio, _time_packing(sample, options, rounds), *_cells(speeds))
            if payload in _SHOWN_ROUNDS:
                counted[f"{codec.label}, {payload}"] = speeds.multi_round_rounds
        report.notes += [
            "Rounds are per row of 32 sequences; SC takes 32. DE copies one group after another, each at once.",
            "Jumping replaces each byte's source by that source's source; its rounds are per block.",
            "Packing uses one CPU thread. Ratios include the 32-byte header of each block.",
        ]
        report.plots = [
            Plot(f"strategies-{codec.label}-{sample.name}", "bars", _SPEEDS, "payload", "output, GB/s"),
            Plot(f"ratio-{codec.label}-{sample.name}", "bars", ("ratio",), "payload", "compression ratio"),
            Plot(f"packing-{codec.label}-{sample.name}", "bars", ("packing MB/s",), "payload", "packing, MB/s"),
        ]
        reports.append(report)
    return [*reports, tabulate_rounds(sample.name, counted)]


def measure_payload(sample: Sample, encoded: list[bytes], engine: GpuEngine, elimination: bool, rounds: int) -> Speeds:
    """Times every strategy that `encoded` allows, and checks the output of each."""
    resident = ResidentBlocks(engine, encoded * sample.repeats)
    pieces = sample.size / 1e9 / time_on_device(resident.decode, rounds)
    check("pieces", resident.all_decoded() and sample.is_repeated_in(resident.output))
    del resident
    blocks = StrategyBlocks(encoded, sample.repeats)
    strategies = [strategy for strategy in Strategy if elimination or strategy is not Strategy.DE]
    measured = {strategy: _measure_strategy(sample, blocks, strategy, rounds) for strategy in strategies}
    (sequential, _), (multi_round, multi_round_rounds) = measured[Strategy.SC], measured[Strategy.MRR]
    at_once, at_once_rounds = measured.get(Strategy.DE, (None, None))
    jumping, jumping_rounds = measured[Strategy.JUMP]
    return Speeds(
        sequential, multi_round, at_once, jumping, pieces, multi_round_rounds, at_once_rounds, jumping_rounds
    )


def _measure_strategy(sample: Sample, blocks: StrategyBlocks, strategy: Strategy, rounds: int) -> tuple[float, Rounds]:
    """Returns GB/s and the counts of rounds."""
    counted = blocks.count(strategy)
    check(strategy.name, blocks.all_decoded() and sample.is_repeated_in(blocks.output))
    return sample.size / 1e9 / time_on_device(lambda: blocks.decode(strategy), rounds), counted


def _cells(speeds: Speeds) -> list[Cell]:
    elimination = speeds.elimination_rounds
    return [
        *(speeds.sequential, speeds.multi_round, speeds.elimination, speeds.jumping, speeds.pieces),
        speeds.multi_round_rounds.average,
        None if elimination is None else elimination.average,
        speeds.jumping_rounds.average,
    ]


def _time_packing(sample: Sample, options: CodecOptions, rounds: int) -> float:
    """Returns the MB/s of one thread, on blocks sampled from all of the data."""
    step = -(-len(sample.blocks) // _PACKED_BLOCKS)
    stream = b"".join(sample.blocks[::step])
    engine = CpuEngine(1)
    seconds = time_on_host(lambda: engine.encode_blocks(stream, sample.block_size, options), min(rounds, 3))
    return len(stream) / 1e6 / seconds
