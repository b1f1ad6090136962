"""Runs the chosen experiments one after another. Needs CuPy and a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gompfs.engine.gpu import GpuEngine
from tools.bench.device import read_sample
from tools.bench.report import Report

from .energy import measure_energy
from .nesting import measure_nesting
from .sizes import measure_sizes
from .strategies import measure_strategies
from .transfers import measure_transfers
from .wesley.measure import measure_wesley


def run_experiments(
    names: Sequence[str], paths: Sequence[Path], block_size: int, every: int, rounds: int, seconds: float
) -> Iterator[Report]:
    """Yields each table as soon as it is measured; `names` are some of EXPERIMENTS."""
    engine = GpuEngine()
    samples = [read_sample(path, block_size, every) for path in paths]
    for name in names:
        if name == "nesting":
            yield from measure_nesting(engine, block_size, rounds)
            continue
        if name == "wesley":
            yield from measure_wesley(samples, rounds)
            continue
        for sample in samples:
            if name == "strategies":
                yield from measure_strategies(sample, engine, rounds)
            elif name == "sizes":
                yield from measure_sizes(sample, engine, rounds)
            elif name == "transfers":
                yield from measure_transfers(sample, engine, rounds)
            elif name == "energy":
                yield from measure_energy(sample, engine, seconds)
