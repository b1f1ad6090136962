"""Runs the chosen experiments one after another. All except those in WITHOUT_GPU need CuPy and a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.experiments import WITHOUT_GPU

if TYPE_CHECKING:
    from tools.bench.report import Report


@dataclass(frozen=True)
class Settings:
    """How much is measured: blocks of a size, one of `every` runs of blocks, repeated up to `output_bytes`."""

    block_size: int
    every: int
    output_bytes: int
    rounds: int
    seconds: float


def run_experiments(names: Sequence[str], paths: Sequence[Path], settings: Settings) -> Iterator[Report]:
    """Yields each table as soon as it is measured; `names` are some of EXPERIMENTS."""
    if "sweeps" in names:
        from .sweeps import measure_sweeps

        for path in paths:
            yield from measure_sweeps(path, settings.block_size, settings.every)
    if "tadoc" in names:
        from .tadoc import measure_tadoc_baselines

        for path in paths:
            yield from measure_tadoc_baselines(path, settings.rounds)
    on_gpu = [name for name in names if name not in WITHOUT_GPU]
    if on_gpu:
        yield from _run_on_gpu(on_gpu, paths, settings)


def _run_on_gpu(names: Sequence[str], paths: Sequence[Path], settings: Settings) -> Iterator[Report]:
    from gompfs.engine.gpu import GpuEngine
    from tools.bench.device import read_sample

    from .energy import measure_energy
    from .nesting import measure_nesting
    from .sizes import measure_sizes
    from .strategies import measure_strategies
    from .transfers import measure_transfers
    from .wesley.measure import measure_wesley

    engine = GpuEngine()
    rounds, block_size, output_bytes = settings.rounds, settings.block_size, settings.output_bytes
    samples = [read_sample(path, block_size, settings.every, output_bytes) for path in paths]
    for name in names:
        if name == "nesting":
            yield from measure_nesting(engine, block_size, output_bytes, rounds)
        elif name == "wesley":
            yield from measure_wesley(samples, rounds)
        for sample in samples:
            if name == "strategies":
                yield from measure_strategies(sample, engine, rounds)
            elif name == "sizes":
                yield from measure_sizes(sample, engine, rounds)
            elif name == "transfers":
                yield from measure_transfers(sample, engine, rounds)
            elif name == "energy":
                yield from measure_energy(sample, engine, settings.seconds)
