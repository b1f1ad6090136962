"""Using a tree through mounts: of gompfs, of ratarmount and squashfuse, and the tree itself."""

from __future__ import annotations

import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .report import Report, divide
from .servers import CAN_DROP_CACHES, Server, drop_caches, mounted, run, servers_of

DEFAULT_PATTERN = "EXPORT_SYMBOL_GPL"
_COLUMNS = ["archive MB", "first mount and ls", "mount and ls", "find", "grep -r", "tar"]
_BIG_COLUMNS = ["archive MB", "seconds", "GB/s", "GB/s, archive cached"]

Figures = dict[str, list[list[float]]]


def measure_mount(tree: Path, archive: Path | None, pattern: str, big: Path | None, rounds: int) -> list[Report]:
    """A table of the tree, in seconds, and one of reading the big file where that is given."""
    reports = [_measure_tree(tree, archive, pattern, rounds)]
    if big is not None:
        reports.append(_measure_big(big, rounds))
    for report in reports:
        if not CAN_DROP_CACHES:
            report.notes.append("WARM: only root can drop the kernel's caches, so the disk may not have been read.")
    return reports


def _measure_tree(tree: Path, archive: Path | None, pattern: str, rounds: int) -> Report:
    report = Report(f"{tree.name} mounted, cold, seconds, medians of {rounds}", list(_COLUMNS))
    jobs = ["find . -type f | wc -l", f"grep -r -e {shlex.quote(pattern)} . | wc -l", "tar cf - . | wc -c"]
    answers: dict[str, list[str]] = {}
    firsts: dict[str, float] = {}

    def measure(server: Server, place: Path) -> list[float]:
        with mounted(server, tree, place) as (_, waited):
            seconds = [waited]
        answers[server.name] = []
        for job in jobs:
            with mounted(server, tree, place) as (directory, _):
                started = time.perf_counter()
                answers[server.name].append(run(("sh", "-c", job), directory=directory))
                seconds.append(time.perf_counter() - started)
        return seconds

    def measure_first(server: Server, place: Path) -> None:
        with mounted(server, tree, place) as (_, waited):
            firsts[server.name] = waited

    with _servers(tree, archive, report) as (servers, place, sizes):
        figures = _interleave(servers, place, rounds, measure, measure_first, report)
    for name, seconds in figures.items():
        report.add(name, sizes[name], firsts[name], *map(statistics.median, zip(*seconds, strict=True)))
    _add_quotients(report, lambda theirs, ours: divide(theirs, ours), "ratarmount tar.zst / gompfs", 2)
    # What tar writes depends on more than the files, such as the sizes of directories and who owns the root.
    if len({tuple(answer[:2]) for answer in answers.values()}) > 1:
        report.notes.append(f"THE MOUNTS DISAGREE, of files and of lines found: {answers}")
    report.notes.append("The first mount of ratarmount makes its index, which later mounts find beside the archive.")
    return report


def _measure_big(big: Path, rounds: int) -> Report:
    size = big.stat().st_size
    title = f"cat of {big.name}, {size / 1e6:,.1f} MB packed alone, cold, medians of {rounds}"
    report = Report(title, list(_BIG_COLUMNS))

    def measure(server: Server, place: Path) -> list[float]:
        seconds = []
        for archive_cached in (False, True):
            with mounted(server, big, place) as (directory, _):
                if archive_cached and server.archive is not None:
                    server.archive.read_bytes()
                started = time.perf_counter()
                run(("sh", "-c", 'cat -- "$0" > /dev/null', directory / big.name))
                seconds.append(time.perf_counter() - started)
        return seconds

    with _servers(big, None, report) as (servers, place, sizes):
        figures = _interleave(servers, place, rounds, measure, lambda *_: None, report)
    for name, seconds in figures.items():
        cold, cached = map(statistics.median, zip(*seconds, strict=True))
        in_cache = size / 1e9 / cached if sizes[name] is not None else None
        report.add(name, sizes[name], cold, size / 1e9 / cold, in_cache)
    _add_quotients(report, lambda theirs, ours: divide(ours, theirs), "gompfs / ratarmount tar.zst", 2)
    report.notes.append("Cold: neither the content nor the archive is in memory, so that the disk counts too.")
    return report


@contextmanager
def _servers(
    source: Path, archive: Path | None, report: Report
) -> Iterator[tuple[list[Server], Path, dict[str, float | None]]]:
    """The servers that are there, with their archives made, where to mount, and the archives' sizes in MB."""
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        place = Path(scratch, "mount")
        servers, sizes = [], {}
        for server in servers_of(source.resolve(), Path(scratch), place, archive and archive.resolve()):
            if missing := server.missing():
                report.add_missing(server.name, missing)
                continue
            if server.make:
                run(server.make)
            sizes[server.name] = server.archive.stat().st_size / 1e6 if server.archive else None
            servers.append(server)
        yield servers, place, sizes


def _interleave(
    servers: Sequence[Server],
    place: Path,
    rounds: int,
    measure: Callable[[Server, Path], list[float]],
    measure_first: Callable[[Server, Path], None],
    report: Report,
) -> Figures:
    """The seconds of each round by server; a peer that fails is listed with what it said, gompfs may not fail."""
    figures: Figures = {server.name: [] for server in servers}
    for number in range(rounds):
        for server in servers:
            if server.name not in figures:
                continue
            try:
                if number == 0:
                    measure_first(server, place)
                figures[server.name].append(measure(server, place))
            except (subprocess.SubprocessError, OSError) as error:
                if server.name == "gompfs":
                    raise
                del figures[server.name]
                report.add(server.name, "failed", *[None] * (len(report.columns) - 1))
                report.notes.append(f"{server.name} failed: {error} {getattr(error, 'stderr', '') or ''}".strip())
    drop_caches()
    return figures


def _add_quotients(
    report: Report, quotient: Callable[[float | str | None, float | str | None], float | None], name: str, skip: int
) -> None:
    rows = dict(report.rows)
    ours, theirs = rows.get("gompfs", []), rows.get("ratarmount tar.zst", [])
    if theirs and not any(isinstance(value, str) for value in theirs):
        quotients = [quotient(a, b) for a, b in zip(theirs, ours, strict=True)]
        report.add(name, *[None] * skip, *quotients[skip:])
