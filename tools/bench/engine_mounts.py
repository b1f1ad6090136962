"""Measures reads through mounts whose blocks are decoded by the CPU, by a GPU, or by what `auto` chooses."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from .programs import GOMPFS, environment
from .report import Report
from .servers import unmount

_ENGINES = ("cpu", "gpu", "auto")
_COLUMNS = ["cat, s", "GB/s", "tar, s", "decoded by the GPU, %"]
_READY_SECONDS = 60


def measure_engine_mounts(archive: Path, cores: tuple[int, ...], rounds: int) -> Report:
    """Returns a table with a row for each number of cores and each engine.

    The daemon and the readers run on the same cores. Every read is of a fresh mount, from an archive in the page cache.
    """
    report = Report(f"{archive.name} mounted, by cores and engines, medians of {rounds}", list(_COLUMNS))
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        place = Path(scratch, "mount")
        place.mkdir()
        archive.read_bytes()
        for count in cores:
            chosen = set(sorted(os.sched_getaffinity(0))[:count])
            report.notes.append(f"{count} cores, measured for `auto`: {_measure_engines(archive, chosen)}.")
            seconds: dict[str, list[tuple[float, int, float, float]]] = {engine: [] for engine in _ENGINES}
            for _ in range(rounds):
                for engine in _ENGINES:
                    seconds[engine].append(_read_all(archive, place, engine, chosen))
            for engine, measured in seconds.items():
                cat, size, tar, share = (statistics.median(column) for column in zip(*measured, strict=True))
                report.add(f"{count} cores, {engine}", cat, size / 1e9 / cat, tar, share)
    report.notes.append(
        "cat: the largest file; tar: all files. The engine is started before: CUDA's start is not counted."
    )
    return report


def _read_all(archive: Path, place: Path, engine: str, cores: set[int]) -> tuple[float, int, float, float]:
    """Returns the seconds of `cat` and its bytes, the seconds of `tar`, and what the GPU decoded of both in percent."""
    previous = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        largest = None
        seconds, decoded = [], []
        for is_tar in (False, True):
            _mount(archive, place, engine)
            try:
                if largest is None:
                    files = (path for path in place.rglob("*") if path.is_file())
                    largest = max(files, key=lambda path: path.stat().st_size)
                command = ["tar", "cf", "-", "."] if is_tar else ["cat", "--", str(largest)]
                started = time.perf_counter()
                with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE) as process:
                    assert process.stdout is not None
                    while process.stdout.read1(1 << 20):
                        pass
                seconds.append(time.perf_counter() - started)
                decoded.append(_decoded(place))
                size = largest.stat().st_size
            finally:
                unmount(place)
    finally:
        os.sched_setaffinity(0, previous)
    by_cpu, by_gpu = (sum(column) for column in zip(*decoded, strict=True))
    return seconds[0], size, seconds[1], 100 * by_gpu / max(by_cpu + by_gpu, 1)


def _measure_engines(archive: Path, cores: set[int]) -> str:
    """Measures both engines as an idle mount does. Returns what was found."""
    command = ["taskset", "-c", ",".join(map(str, sorted(cores))), *GOMPFS[:-1], "gompfs.archive.measure_engines"]
    done = subprocess.run([*command, archive], check=True, capture_output=True, text=True, env=environment())
    return done.stdout.strip()


def _mount(archive: Path, place: Path, engine: str) -> None:
    """Mounts, and waits for a GPU that `auto` starts in the background."""
    command = [*GOMPFS, "mount", "-o", f"engine={engine}", archive, place]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment())
    deadline = time.monotonic() + _READY_SECONDS
    while engine == "auto" and "starting" in _info(place) and time.monotonic() < deadline:
        time.sleep(0.05)


def _info(place: Path) -> str:
    return (place / "stats/info").read_text()


def _decoded(place: Path) -> tuple[int, int]:
    """Returns how many bytes the CPU and the GPU have decoded."""
    sizes = {"cpu": 0, "gpu": 0}
    for line in (place / "stats/metrics").read_text().splitlines():
        for engine in sizes:
            if line.startswith("gompfs_decoded_bytes_total") and f'engine="{engine}"' in line:
                sizes[engine] = int(float(line.split()[-1]))
    return sizes["cpu"], sizes["gpu"]
