"""Measures the use of a tree through mounts of gompfs, ratarmount and squashfuse, and of the tree itself."""

from __future__ import annotations

import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .report import Cell, Report, divide
from .servers import BARE, Server, bare_server, mounted, run, servers_of

DEFAULT_PATTERN = "EXPORT_SYMBOL_GPL"
_GOMPFS, _RATARMOUNT = "gompfs", "ratarmount tar.zst"
_TREE_COLUMNS = ["archive MB", "first mount and ls", "mount and ls", "find", "grep -r", "tar"]
_BIG_COLUMNS = ["archive MB", "seconds", "GB/s", "GB/s, archive cached", "four readers, archive cached"]
_NUM_READERS = 4

_CAT = 'cat -- "$0" > /dev/null'
_FOUR_READERS = f"""
part=$(( ($(stat -c %s -- "$0") + {_NUM_READERS} - 1) / {_NUM_READERS} ))
for number in $(seq 0 {_NUM_READERS - 1}); do
    dd if="$0" of=/dev/null bs=1M iflag=skip_bytes,count_bytes skip=$((number * part)) count=$part status=none &
done
wait
"""

Mount = Callable[[], AbstractContextManager[tuple[Path, float]]]
Measure = Callable[[Server, Mount], list[float]]


@dataclass(frozen=True)
class Conditions:
    """The number of rounds, and whether the kernel's caches are dropped before each measurement."""

    rounds: int
    cold: bool

    def __str__(self) -> str:
        return f"{'cold' if self.cold else 'WARM'}, medians of {self.rounds}"


def measure_mount(
    tree: Path, archive: Path | None, pattern: str, big: Path | None, conditions: Conditions
) -> list[Report]:
    """Returns a table for the tree, in seconds, and, if `big` is given, one for reading that file."""
    reports = [_measure_tree(tree, archive, pattern, conditions)]
    if big is not None:
        reports.append(_measure_big(big, conditions))
    for report in reports:
        if conditions.cold:
            report.notes.append("Cold: the kernel's caches were empty, so reading from the disk is included.")
        else:
            report.notes.append("WARM: the kernel's caches were kept; do not compare with figures of cold caches.")
    return reports


def _measure_tree(tree: Path, archive: Path | None, pattern: str, conditions: Conditions) -> Report:
    report = Report(f"{tree.name} mounted, seconds, {conditions}", list(_TREE_COLUMNS))
    jobs = [
        "find . -type f | wc -l",
        # grep exits with 1 if it finds nothing, and with 2 if it cannot read a file.
        f"(grep -r -e {shlex.quote(pattern)} . || [ $? = 1 ]) | wc -l",
        "tar cf - . | wc -c",
    ]
    firsts: dict[str, float] = {}
    answers: dict[str, list[str]] = {}

    def measure(server: Server, mount: Mount) -> list[float]:
        if server.name not in firsts:
            with mount() as (_, waited):
                firsts[server.name] = waited
        with mount() as (_, waited):
            seconds = [waited]
        answers[server.name] = []
        for job in jobs:
            with mount() as (directory, _):
                started = time.perf_counter()
                answers[server.name].append(run(("bash", "-o", "pipefail", "-c", job), directory=directory))
                seconds.append(time.perf_counter() - started)
        return seconds

    for server, medians in _measure_servers(tree, archive, conditions, measure, report):
        report.add(server.name, server.archive_size, firsts[server.name], *medians)
    _add_quotients(report, _RATARMOUNT, lambda ours, theirs: divide(theirs, ours))
    # The output of tar also depends on other things, such as the sizes of directories and the owner of the root.
    if len({tuple(answer[:2]) for answer in answers.values()}) > 1:
        report.notes.append(f"THE MOUNTS DISAGREE about the number of files or of lines found: {answers}")
    report.notes.append("The first mount of ratarmount creates its index, which later mounts find beside the archive.")
    return report


def _measure_big(big: Path, conditions: Conditions) -> Report:
    size = big.stat().st_size
    report = Report(f"cat of {big.name}, {size / 1e6:,.1f} MB packed alone, {conditions}", list(_BIG_COLUMNS))

    def measure(server: Server, mount: Mount) -> list[float]:
        seconds = []
        for archive_cached, command in ((False, _CAT), (True, _CAT), (True, _FOUR_READERS)):
            with mount() as (directory, _):
                if archive_cached and server.archive is not None:
                    server.archive.read_bytes()
                started = time.perf_counter()
                run(("bash", "-e", "-c", command, directory / big.name))
                seconds.append(time.perf_counter() - started)
        return seconds

    for server, (cold, *cached) in _measure_servers(big, None, conditions, measure, report):
        rates: list[Cell] = [size / 1e9 / seconds if server.mount else None for seconds in cached]
        report.add(server.name, server.archive_size, cold, size / 1e9 / cold, *rates)
    _add_quotients(report, _RATARMOUNT, divide)
    _add_quotients(report, BARE, divide)
    report.notes.append(
        f"{BARE}: the same loop answers the same requests, without reading or decoding. "
        "Each of the four readers reads a quarter of the file."
    )
    return report


def _measure_servers(
    source: Path, archive: Path | None, conditions: Conditions, measure: Measure, report: Report
) -> Iterator[tuple[Server, list[float]]]:
    """Yields each server that works, and the medians of its figures from `measure`, in interleaved rounds.

    The report lists peers that are not installed or that fail. If gompfs fails, that is an error.
    """
    with _prepared(source.resolve(), archive and archive.resolve(), report) as (servers, place):
        seconds: dict[Server, list[list[float]]] = {server: [] for server in servers}
        for _ in range(conditions.rounds):
            for server in list(seconds):
                try:
                    mount = partial(mounted, server, source.resolve(), place, cold=conditions.cold)
                    seconds[server].append(measure(server, mount))
                except (subprocess.SubprocessError, OSError) as error:
                    _add_failed(report, server, error)
                    del seconds[server]
        for server, rounds in seconds.items():
            yield server, [statistics.median(values) for values in zip(*rounds, strict=True)]


@contextmanager
def _prepared(source: Path, archive: Path | None, report: Report) -> Iterator[tuple[list[Server], Path]]:
    """Makes the archives; yields the servers that are installed, and the mount point."""
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        place = Path(scratch, "mount")
        servers = []
        candidates = servers_of(source, Path(scratch), place, archive)
        if source.is_file():
            candidates.append(bare_server(source, place))
        for server in candidates:
            if missing := server.missing():
                report.add_missing(server.name, missing)
                continue
            try:
                if server.make:
                    run(server.make)
                servers.append(server)
            except (subprocess.SubprocessError, OSError) as error:
                _add_failed(report, server, error)
        yield servers, place


def _add_failed(report: Report, server: Server, error: Exception) -> None:
    said = str(getattr(error, "stderr", None) or "").strip()
    if server.name == _GOMPFS:
        raise RuntimeError(f"gompfs failed: {error} {said}") from error
    report.add(server.name, "failed", *[None] * (len(report.columns) - 1))
    report.notes.append(f"{server.name} failed: {error} {said}".rstrip())


def _add_quotients(report: Report, other: str, quotient: Callable[[Cell, Cell], float | None]) -> None:
    """Adds a row that compares gompfs with another server, if that was measured; it leaves out two columns."""
    rows = dict(report.rows)
    theirs = rows.get(other, [])
    if theirs and not isinstance(theirs[0], str):
        pairs = list(zip(rows[_GOMPFS], theirs, strict=True))
        name = f"{_GOMPFS} / {other}" if quotient is divide else f"{other} / {_GOMPFS}"
        report.add(name, None, None, *(quotient(ours, cell) for ours, cell in pairs[2:]))
