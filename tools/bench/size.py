"""Measures ways to store a directory: size, packing, and reading, in one table."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from .cold_reads import MAX_EXTRACTIONS, MountReader, Page, PageSampler, TarReader
from .decode import WrongContentError
from .mounting import Conditions
from .packing import read_all
from .programs import lacking
from .report import NOT_INSTALLED, Cell, Plot, Report
from .size_modes import KERNEL, OURS, Mode, modes_of

_SIZE, _RANDOM = "MB", "random 4 KiB us"
_COLUMNS = [_SIZE, "ratio", "pack s", "pack peak MB", "read by", "first read ms", _RANDOM, "sequential MB/s"]
_FAILED = "failed"
_FAILURES = (subprocess.SubprocessError, OSError, WrongContentError)


@dataclass(frozen=True)
class SizeOptions:
    """What is measured: only the modes with one of the texts `only` in their names, if any; `num_reads` random reads.

    With `fuse`, squashfs and erofs are mounted by FUSE even if the kernel can mount them.
    """

    num_reads: int
    fuse: bool
    only: tuple[str, ...] = ()

    def chooses(self, mode: Mode) -> bool:
        """Returns whether the mode is measured."""
        return not self.only or any(text in mode.name for text in self.only)


@dataclass
class _Measured:
    """A mode and its figures so far, in seconds. `problem` says why there is no archive, or why it is not read."""

    mode: Mode
    problem: str = ""
    reader: MountReader | TarReader | None = None
    first_reads: list[float] = field(default_factory=list)
    random_reads: list[float] = field(default_factory=list)
    whole_reads: list[float] = field(default_factory=list)

    def read(self, pages: Sequence[Page], *, with_whole: bool) -> None:
        """Reads the pages, and with `with_whole` also all files."""
        assert self.reader is not None
        first, *others = self.reader.read_pages(pages)
        self.first_reads.append(first)
        self.random_reads.extend(others)
        if with_whole:
            self.whole_reads.append(self.reader.read_all())


def measure_size(tree: Path, conditions: Conditions, options: SizeOptions) -> Report:
    """Reads the directory once, so that packing finds it in the page cache; then returns its table."""
    tree = tree.resolve()
    size, sampler = read_all(tree), PageSampler(tree)
    if not sampler.size:
        raise click.ClickException(f"{tree} holds no data")
    temperature = "cold" if conditions.cold else "WARM"
    title = f"storing {tree.name}, {size / 1e6:,.1f} MB of files, reads {temperature}"
    report = Report(title, list(_COLUMNS), plots=[_plot(tree)])
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        mount_point = Path(scratch, "mount")
        all_measured = [_Measured(mode) for mode in modes_of(tree, Path(scratch), mount_point) if options.chooses(mode)]
        if not all_measured:
            raise click.UsageError("--only chooses no row")
        _pack(all_measured, conditions.rounds, report)
        for measured in _without_problems(all_measured):
            _choose_reader(measured, tree, mount_point, conditions, options, report)
        num_mounts = max(conditions.rounds, -(-options.num_reads // (sampler.num_pages - 1)))
        for number in range(num_mounts):
            _read(all_measured, sampler.choose(number), report, with_whole=number < conditions.rounds)
        for measured in all_measured:
            _add_row(report, measured, size)
    report.notes.extend(_notes(conditions, num_mounts, sampler.num_pages))
    return report


def _plot(tree: Path) -> Plot:
    return Plot(f"size-{tree.name}", "points", (_SIZE, _RANDOM), "archive, MB", "random read of 4 KiB, median, us")


def _without_problems(all_measured: Sequence[_Measured]) -> list[_Measured]:
    return [measured for measured in all_measured if not measured.problem]


def _pack(all_measured: Sequence[_Measured], rounds: int, report: Report) -> None:
    """Makes the archives, in interleaved rounds."""
    for measured in all_measured:
        packer = measured.mode.packer
        if packer is not None and (missing := lacking(packer.programs)):
            measured.problem = NOT_INSTALLED
            report.notes.append(f"{measured.mode.name}: not installed: {', '.join(missing)}.")
    for _ in range(rounds):
        for measured in _without_problems(all_measured):
            if measured.mode.packer is not None:
                _attempt(measured, measured.mode.packer.run, report)


def _choose_reader(
    measured: _Measured, tree: Path, mount_point: Path, conditions: Conditions, options: SizeOptions, report: Report
) -> None:
    """Chooses what reads the archive: tar, or the first server that mounts it."""
    mode = measured.mode
    if mode.decompress:
        measured.reader = TarReader(mode.decompress, conditions.cold)
        return
    kernel_mounts = os.geteuid() == 0 and not options.fuse
    usable = [server for server in mode.servers if kernel_mounts or server.name != KERNEL]
    errors: list[Exception] = []
    for server in usable:
        if lacking(server.programs):
            continue
        reader = MountReader(server, tree, mount_point, conditions.cold)
        try:
            reader.try_mount()
        except _FAILURES as error:  # such as a mount by the kernel in a container
            errors.append(error)
            continue
        measured.reader = reader
        return
    if errors and mode.name.startswith(OURS):
        raise RuntimeError(f"{mode.name} cannot be mounted") from errors[0]
    missing = sorted({f"{program} is not installed" for server in usable for program in lacking(server.programs)})
    measured.problem = NOT_INSTALLED if missing else _FAILED
    report.notes.append(f"{mode.name}: cannot be mounted: " + "; ".join([*map(_describe, errors), *missing]))


def _read(all_measured: Sequence[_Measured], pages: Sequence[Page], report: Report, *, with_whole: bool) -> None:
    """Reads the pages from one mount of each archive, and with `with_whole` all files from another one."""
    for measured in _without_problems(all_measured):
        _attempt(measured, partial(measured.read, pages, with_whole=with_whole), report)


def _attempt(measured: _Measured, job: Callable[[], None], report: Report) -> None:
    """Runs the job. If a peer fails, the report says so; if gompfs fails, that is an error."""
    try:
        job()
    except _FAILURES as error:
        if measured.mode.name.startswith(OURS):
            raise RuntimeError(f"{measured.mode.name} failed: {_describe(error)}") from error
        measured.problem = _FAILED
        report.notes.append(f"{measured.mode.name} failed: {_describe(error)}")


def _describe(error: Exception) -> str:
    said = str(getattr(error, "stderr", None) or "").strip()
    return f"{error} {said}".rstrip()


def _add_row(report: Report, measured: _Measured, size: int) -> None:
    mode, packer = measured.mode, measured.mode.packer
    if packer is None:
        stored: list[Cell] = [None, None, None, None]
    elif packer.seconds:
        archive_size = packer.target.stat().st_size
        seconds = statistics.median(packer.seconds)
        stored = [archive_size / 1e6, size / archive_size, seconds, packer.peak_memory / 1e6]
    else:
        report.add(mode.name, measured.problem, *[None] * (len(_COLUMNS) - 1))
        return
    if measured.problem or measured.reader is None:
        report.add(mode.name, *stored, measured.problem, None, None, None)
        return
    report.add(
        mode.name,
        *stored,
        measured.reader.name,
        statistics.median(measured.first_reads) * 1e3,
        statistics.median(measured.random_reads) * 1e6,
        size / 1e6 / statistics.median(measured.whole_reads),
    )


def _notes(conditions: Conditions, num_mounts: int, pages_of_a_mount: int) -> list[str]:
    caches = (
        "Cold: the kernel's caches were empty before each mount and each extraction."
        if conditions.cold
        else "WARM: the kernel's caches were kept; do not compare with figures of cold caches."
    )
    reads = (
        f"Packing and sequential reads: medians of {conditions.rounds}. First reads: medians of {num_mounts} mounts, "
        f"each of which then read {pages_of_a_mount - 1} random pages."
    )
    tar = (
        "tar cannot be mounted: to read a page, its file is extracted until the page is there, at most "
        f"{MAX_EXTRACTIONS} times for each mount of the others. Sequential: all files are extracted to nowhere."
    )
    packing = (
        "Peak memory is that of the largest process of a pipeline; less than 10 MB cannot be seen. gzip, and "
        "mkfs.erofs before 1.8, use one core, the others all."
    )
    return [caches, reads, tar, packing]
