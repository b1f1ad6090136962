"""Measures power while a job runs repeatedly, from energy counters; the CPU's counter is RAPL, read from Linux."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.bench.report import Cell, Report

ENERGY_COLUMNS = ("ratio", "GB/s", "GPU W", "GPU J/GB", "CPU W", "CPU J/GB")
NOT_READABLE = "not readable"
_POWERCAP = Path("/sys/class/powercap")
_SECONDS_TO_WARM_UP = 0.5
_SECONDS_BETWEEN_READINGS = 0.05  # the job does not run while a counter is read

Meter = Callable[[], float]
"""Returns joules since an arbitrary start; the value increases in steps."""


@dataclass(frozen=True)
class Load:
    """The runs of a job per second, and the watts by meter; None for a meter that did not change."""

    runs_per_second: float
    watts: dict[str, float | None]


def cpu_meter(root: Path = _POWERCAP) -> Meter | None:
    """Returns a meter for the energy of all CPU packages; None if it is not readable."""
    zones = sorted(root.glob("intel-rapl:*"))  # AMD CPUs use this name too
    try:
        packages = [_Package(zone) for zone in zones if zone.name.count(":") == 1]  # more colons: a part of a package
    except OSError:
        return None
    return (lambda: sum(package.joules() for package in packages)) if packages else None


class _Package:
    """The energy counter of one package, in microjoules, which wraps to 0 from time to time."""

    def __init__(self, zone: Path) -> None:
        self._counter = zone / "energy_uj"
        self._range = int((zone / "max_energy_range_uj").read_text())
        self._last = int(self._counter.read_text())
        self._total = 0

    def joules(self) -> float:
        """Returns the joules since this object was created."""
        now = int(self._counter.read_text())
        self._total += (now - self._last) % (self._range + 1)
        self._last = now
        return self._total / 1e6


def measure_load(job: Callable[[], object], meters: Mapping[str, Meter], seconds: float) -> Load:
    """Runs a job repeatedly for `seconds`, after a warm-up; the job must wait for the work that it starts."""
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


def measure_rest(meters: Mapping[str, Meter], seconds: float) -> dict[str, float]:
    """Returns the watts at rest of each meter that is readable."""
    load = measure_load(lambda: time.sleep(_SECONDS_BETWEEN_READINGS), meters, seconds)
    return {name: watts for name, watts in load.watts.items() if watts is not None}


def add_rest(report: Report, rest: Mapping[str, float]) -> None:
    """Adds a row for the watts at rest."""
    watts: list[Cell] = [rest.get(name, NOT_READABLE) for name in ("GPU", "CPU")]
    report.add("at rest", None, None, watts[0], None, watts[1], None)


def add_load(report: Report, label: str, ratio: float, size: int, load: Load, rest: Mapping[str, float]) -> None:
    """Adds a row for a job that produces `size` bytes.

    Joules count above rest. A device for which `load` has no watts, because it does not work or its meter cannot be
    read, gets no joules.
    """
    speed = load.runs_per_second * size / 1e9
    cells: list[Cell] = [ratio, speed]
    for name in ("GPU", "CPU"):
        watts = load.watts.get(name)
        is_known = watts is not None and name in rest
        cells += [watts if is_known else NOT_READABLE if name not in rest else None]
        cells += [max(watts - rest[name], 0.0) / speed if watts is not None and is_known else None]
    report.add(label, *cells)


def _repeat(job: Callable[[], object], seconds: float) -> int:
    """Runs a job repeatedly for at least `seconds`; returns the number of runs."""
    started = time.perf_counter()
    runs = 0
    while time.perf_counter() - started < seconds:
        job()
        runs += 1
    return runs


def _power(steps: list[tuple[float, float]]) -> float | None:
    """Returns the watts from the first step of the counter to the last; earlier values began at an unknown time."""
    if len(steps) < 3:
        return None
    (start, before), (end, after) = steps[1], steps[-1]
    return (after - before) / (end - start)
