"""Measures the start of commands, and of mounts until the first listing, with warm caches of the kernel."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .programs import environment
from .report import Report, divide
from .servers import Server, run, servers_of, unmount
from .timing import cpu_of_children

_BARE, _GOMPFS = "python -c pass", "gompfs"
_NUM_SMALL_FILES = 32
_POLL_SECONDS = 0.0005
_READY_SECONDS = 300
# The content of the console script `gompfs`.
_SCRIPT = "from gompfs.cli import main; main()"


@dataclass(frozen=True)
class _Times:
    """Seconds of one run: wall time, and CPU time in user and kernel mode."""

    wall: float
    cpu: float


def measure_start(tree: Path, archive: Path | None, rounds: int) -> list[Report]:
    """Returns a table of commands and a table of mounts of the tree, in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        return [_measure_commands(Path(scratch), rounds), _measure_mounts(tree, archive, Path(scratch), rounds)]


def _measure_commands(scratch: Path, rounds: int) -> Report:
    small, archive = scratch / "small", scratch / "small.gomp"
    small.mkdir()
    for number in range(_NUM_SMALL_FILES):
        (small / f"file{number}").write_text(f"the words of file {number}\n" * 400)
    gompfs = (sys.executable, "-P", "-c", _SCRIPT)
    run((*gompfs, "pack", "-q", small, archive))
    commands: dict[str, tuple[str | Path, ...]] = {
        _BARE: (sys.executable, "-P", "-c", "pass"),
        "import gompfs": (sys.executable, "-P", "-c", "import gompfs"),
        "gompfs --version": (*gompfs, "--version"),
        "gompfs --help": (*gompfs, "--help"),
        "gompfs ls": (*gompfs, "ls", archive),
        "gompfs cat": (*gompfs, "cat", archive, "file0"),
        "gompfs info": (*gompfs, "info", archive),
    }
    measured: dict[str, list[_Times]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            times = _time(command)
            if number:  # the first run of each command may compile modules to byte code
                measured[name].append(times)
    report = Report(f"commands, milliseconds, medians of {rounds}", ["wall", "CPU", f"wall / {_BARE}"])
    bare = statistics.median(times.wall for times in measured[_BARE])
    for name, runs in measured.items():
        wall = statistics.median(times.wall for times in runs)
        cpu = statistics.median(times.cpu for times in runs)
        report.add(name, wall * 1e3, cpu * 1e3, divide(wall, bare))
    report.notes.append(f"ls, cat and info read an archive of {_NUM_SMALL_FILES} small files.")
    return report


def _time(command: tuple[str | Path, ...]) -> _Times:
    """Times one run in a process of its own, whose output is discarded."""
    cpu, started = cpu_of_children(), time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=_environment())
    return _Times(time.perf_counter() - started, cpu_of_children() - cpu)


def _environment() -> dict[str, str]:
    """Returns an environment in which modules are compiled to byte code once, as for a user."""
    return {name: value for name, value in environment().items() if name != "PYTHONDONTWRITEBYTECODE"}


def _measure_mounts(tree: Path, archive: Path | None, scratch: Path, rounds: int) -> Report:
    place = scratch / "mount"
    place.mkdir()
    report = Report(f"{tree.name}, milliseconds from the start of a mount to its first listing, medians of {rounds}", [
        "archive MB", "wall", f"wall / {_GOMPFS}",
    ])  # fmt: skip
    servers = []
    for server in servers_of(tree.resolve(), scratch, place, archive and archive.resolve()):
        if not server.mount:
            continue
        if missing := server.missing():
            report.add_missing(server.name, missing)
            continue
        if server.make:
            run(server.make)
        servers.append(server)
    seconds: dict[str, list[float]] = {server.name: [] for server in servers}
    for number in range(rounds + 1):
        for server in servers:
            waited = _time_mount(server, place)
            if number:  # the first mount of ratarmount creates its index
                seconds[server.name].append(waited)
    ours = statistics.median(seconds[_GOMPFS])
    for server in servers:
        wall = statistics.median(seconds[server.name])
        report.add(server.name, server.archive_size, wall * 1e3, divide(wall, ours))
    report.notes.append("The archives are in the kernel's cache. The first mount of each server is not counted.")
    return report


def _time_mount(server: Server, place: Path) -> float:
    """Returns the seconds from the start of the mount command until the root of the mount is listed."""
    device = os.stat(place).st_dev
    started = time.perf_counter()
    process = subprocess.Popen(server.mount, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=_environment())
    try:
        while os.stat(place).st_dev == device:
            if process.poll() or time.perf_counter() - started > _READY_SECONDS:
                raise RuntimeError(f"{server.name} does not mount")
            time.sleep(_POLL_SECONDS)
        os.listdir(place)
        return time.perf_counter() - started
    finally:
        process.wait(_READY_SECONDS)
        unmount(place)
