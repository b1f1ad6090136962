"""Power while a job runs again and again, by counters of energy; the CPU's counter as Linux tells it (RAPL)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..report import Cell, Report

ENERGY_COLUMNS = ("GB/s", "GPU W", "GPU J/GB", "CPU W", "CPU J/GB")
NOT_READABLE = "not readable"
_POWERCAP = Path("/sys/class/powercap")
_SECONDS_TO_WARM_UP = 0.5
_SECONDS_BETWEEN_READINGS = 0.05  # reading takes time in which nothing runs

Meter = Callable[[], float]
"""Gives joules since any start, in steps."""


@dataclass(frozen=True)
class Load:
    """How often a job ran in a second, and the watts by each meter; None where a meter stood still."""

    runs_per_second: float
    watts: dict[str, float | None]


def cpu_meter(root: Path = _POWERCAP) -> Meter | None:
    """The energy of all CPU packages; None where it is not readable."""
    zones = sorted(root.glob("intel-rapl:*"))  # AMD's have that name too
    try:
        packages = [_Package(zone) for zone in zones if zone.name.count(":") == 1]  # others are parts of these
    except OSError:
        return None
    return (lambda: sum(package.joules() for package in packages)) if packages else None


class _Package:
    """One package's counter of microjoules, which begins again at 0 from time to time."""

    def __init__(self, zone: Path) -> None:
        self._counter = zone / "energy_uj"
        self._range = int((zone / "max_energy_range_uj").read_text())
        self._last = int(self._counter.read_text())
        self._total = 0

    def joules(self) -> float:
        """Since the start."""
        now = int(self._counter.read_text())
        self._total += (now - self._last) % (self._range + 1)
        self._last = now
        return self._total / 1e6


def measure_load(job: Callable[[], object], meters: Mapping[str, Meter], seconds: float) -> Load:
    """Run a job, which has to wait for what it starts, for that long and a while before."""
    _repeat(job, _SECONDS_TO_WARM_UP)
    steps: dict[str, list[tuple[float, float]]] = {name: [] for name in meters}
    started = time.perf_counter()
    runs = 0
    while time.perf_counter() - started < seconds:
        runs += _repeat(job, _SECONDS_BETWEEN_READINGS)
        for name, meter in meters.items():
            joules = meter()
            if not steps[name] or joules != steps[name][-1][1]:
                steps[name].append((time.perf_counter(), joules))
    elapsed = time.perf_counter() - started
    return Load(runs / elapsed, {name: _power(found) for name, found in steps.items()})


def add_load(
    report: Report, label: str, size: int, job: Callable[[], object], meters: Mapping[str, Meter], seconds: float
) -> None:
    """A row: the job that makes `size` bytes, measured."""
    load = measure_load(job, meters, seconds)
    speed = load.runs_per_second * size / 1e9
    cells: list[Cell] = [speed or None]
    for name in ("GPU", "CPU"):
        watts = load.watts.get(name)
        cells += [NOT_READABLE if watts is None else watts, watts / speed if watts is not None and speed else None]
    report.add(label, *cells)


def _repeat(job: Callable[[], object], seconds: float) -> int:
    """Run a job for that long at least; how often it ran."""
    started = time.perf_counter()
    runs = 0
    while time.perf_counter() - started < seconds:
        job()
        runs += 1
    return runs


def _power(steps: list[tuple[float, float]]) -> float | None:
    """Watts between the first step and the last; what was read before the first began at an unknown time."""
    if len(steps) < 3:
        return None
    (start, before), (end, after) = steps[1], steps[-1]
    return (after - before) / (end - start)
