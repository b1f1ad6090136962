"""Measures the start of commands, and of mounts until the first listing and read, with warm caches of the kernel."""

from __future__ import annotations

import os
import random
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
_MAX_PATHS = 101
_READ_SIZE = 4096
_READY_SECONDS = 300
# The content of the console script `gompfs`.
_SCRIPT = "from gompfs.cli import main; main()"
_WORD = "kref_put_mutex"  # rare in Linux's source


@dataclass(frozen=True)
class _Times:
    """Seconds of one run: wall time, and CPU time in user and kernel mode."""

    wall: float
    cpu: float


def measure_start(tree: Path, archive: Path | None, rounds: int) -> list[Report]:
    """Returns a table of commands and a table of mounts of the tree, in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        mounts, packed = _measure_mounts(tree, archive, Path(scratch), rounds)
        return [_measure_commands(Path(scratch), tree.name, packed, rounds), mounts]


def _measure_commands(scratch: Path, tree: str, packed: Path, rounds: int) -> Report:
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
        "gompfs grep": (*gompfs, "grep", "-c", "words", archive),
        f"gompfs ls, {tree}": (*gompfs, "ls", packed),
        f"gompfs grep {_WORD}, {tree}": (*gompfs, "grep", "-c", _WORD, packed),
    }
    measured: dict[str, list[_Times]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            times = _time(command)
            if number:  # the first run of each command may compile modules to byte code
                measured[name].append(times)
    columns = ["wall", "least wall", "CPU", "least CPU", f"wall / {_BARE}"]
    report = Report(f"commands, milliseconds, medians and least of {rounds}", columns)
    bare = statistics.median(times.wall for times in measured[_BARE])
    for name, runs in measured.items():
        walls, cpus = [times.wall * 1e3 for times in runs], [times.cpu * 1e3 for times in runs]
        wall, cpu = statistics.median(walls), statistics.median(cpus)
        report.add(name, wall, min(walls), cpu, min(cpus), divide(wall, bare * 1e3))
    report.notes.append(f"Rows without {tree} read an archive of {_NUM_SMALL_FILES} small files.")
    return report


def _time(command: tuple[str | Path, ...]) -> _Times:
    """Times one run in a process of its own, whose output is discarded."""
    cpu, started = cpu_of_children(), time.perf_counter()
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=_environment())
    times = _Times(time.perf_counter() - started, cpu_of_children() - cpu)
    if done.returncode not in (0, 1):  # 1: a search without matches
        raise RuntimeError(f"{command} failed")
    return times


def _environment() -> dict[str, str]:
    """Returns an environment in which modules are compiled to byte code once, as for a user."""
    return {name: value for name, value in environment().items() if name != "PYTHONDONTWRITEBYTECODE"}


def _measure_mounts(tree: Path, archive: Path | None, scratch: Path, rounds: int) -> tuple[Report, Path]:
    """Returns the table, and the archive of gompfs."""
    place = scratch / "mount"
    place.mkdir()
    columns = ["archive MB", "wall", "least wall", f"wall / {_GOMPFS}", "first read", "least first read"]
    title = f"{tree.name}, milliseconds from the start of a mount to its first listing, and of a first read after it"
    report = Report(f"{title}, medians and least of {rounds}", columns)
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
    paths = _paths_to_read(tree)
    waits: dict[str, list[tuple[float, float]]] = {server.name: [] for server in servers}
    for number in range(rounds + 1):
        for server in servers:
            waited = _time_mount(server, place, paths[number % len(paths)])
            if number:  # the first mount of ratarmount creates its index
                waits[server.name].append(waited)
    ours = statistics.median(wall for wall, _ in waits[_GOMPFS])
    for server in servers:
        walls, reads = ([each * 1e3 for each in column] for column in zip(*waits[server.name], strict=True))
        wall = statistics.median(walls)
        ratio = divide(wall, ours * 1e3)
        report.add(server.name, server.archive_size, wall, min(walls), ratio, statistics.median(reads), min(reads))
    report.notes.append("The archives are in the kernel's cache. The first mount of each server is not counted.")
    report.notes.append("The first read is of the first 4 KiB of a file, another one in each round.")
    archive_path = servers[0].archive
    assert archive_path is not None
    return report, archive_path


def _paths_to_read(tree: Path) -> list[Path]:
    """Returns paths of files in no order, relative to the tree."""
    paths = [Path(folder, name) for folder, _, names in os.walk(tree) for name in names]
    files = sorted(path.relative_to(tree) for path in paths if path.is_file() and not path.is_symlink())
    return random.Random(1).sample(files, min(len(files), _MAX_PATHS))


def _time_mount(server: Server, place: Path, path: Path) -> tuple[float, float]:
    """Returns the seconds from the start of the mount command until its root is listed, and those of a read then."""
    device = os.stat(place).st_dev
    started = time.perf_counter()
    process = subprocess.Popen(server.mount, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=_environment())
    try:
        while os.stat(place).st_dev == device:
            if process.poll() or time.perf_counter() - started > _READY_SECONDS:
                raise RuntimeError(f"{server.name} does not mount")
            time.sleep(_POLL_SECONDS)
        os.listdir(place)
        listed = time.perf_counter()
        with open(place / path, "rb", buffering=0) as file:
            file.read(_READ_SIZE)
        return listed - started, time.perf_counter() - listed
    finally:
        process.wait(_READY_SECONDS)
        unmount(place)
