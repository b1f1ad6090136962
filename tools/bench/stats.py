"""Measures statistics: the CPU, a GPU, without a grammar, and what a user would run instead."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.archive import Archive
from gompfs.engine import Engine, select_engine
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.statistics.content import ContentText
from gompfs.statistics.content_words import content_grammars, content_word_counts
from gompfs.statistics.gpu.device_counter import count_words
from gompfs.statistics.grammar_cache import load_grammars
from gompfs.statistics.postings import postings_report
from gompfs.statistics.report import Report as Text
from gompfs.statistics.tasks import compute
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.statistics.word_counts import SortOrder, word_count_report
from gompfs.text.grammar import CountedWords, Grammar

from .blocks import regular_files
from .programs import GOMPFS, environment
from .report import Report, divide
from .user_scripts import missing_frames, scripts_for

TASKS = {
    "wordcount": None,
    "sort": None,
    "inverted_index": PostingsTask.INVERTED_INDEX,
    "term_vector": PostingsTask.TERM_VECTOR,
    "sequence_count": PostingsTask.SEQUENCE_COUNT,
    "ranked_inverted_index": PostingsTask.RANKED_INVERTED_INDEX,
}
_READY_SECONDS = 60
_CPU = "CPU"


@dataclass
class Way:
    """One way to produce a text, and its measurements: seconds, and digests of the text."""

    name: str
    make: Callable[[], Iterable[bytes]]
    seconds: list[float] = field(default_factory=list)
    digests: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Produces the text once and stores its digest; the time for the digest does not count."""
        digest, waited = hashlib.sha256(), 0.0
        started = time.perf_counter()
        for piece in self.make():
            arrived = time.perf_counter()
            digest.update(piece)
            waited += time.perf_counter() - arrived
        self.seconds.append(time.perf_counter() - started - waited)
        self.digests.add(digest.hexdigest())

    @property
    def median(self) -> float:
        """The median seconds of all runs."""
        return statistics.median(self.seconds)


def measure_stats(
    trees: Sequence[Path], tasks: Sequence[str], rounds: int, archive: Path | None, *, with_scripts: bool
) -> list[Report]:
    """Returns three tables for each directory: all ways to each statistic, the phases of ours, and virtual files.

    `archive` is an existing archive, if there is only one directory.
    """
    reports = []
    for tree in trees:
        with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
            packed = archive or Path(scratch, "tree.gomp")
            if archive is None:
                command = [*GOMPFS, "pack", "-q", tree, packed]
                subprocess.run(command, check=True, env=environment(), stdout=subprocess.DEVNULL)
            reports += _Measurement(tree, packed, Path(scratch), rounds, with_scripts=with_scripts).tables(tasks)
    return reports


class _Measurement:
    """The measurements of one directory."""

    def __init__(self, tree: Path, packed: Path, scratch: Path, rounds: int, *, with_scripts: bool) -> None:
        self._tree = tree
        self._packed = packed
        self._scratch = scratch
        self._rounds = rounds
        self._with_scripts = with_scripts
        self._gpu = _gpu_engine()

    def tables(self, tasks: Sequence[str]) -> list[Report]:
        size = sum(path.stat().st_size for path in regular_files(self._tree))
        title = f"{self._tree.name}, {size / 1e6:.1f} MB of files, medians of {self._rounds}"
        ways: dict[str, dict[str, Way]] = {}
        phases = Report(f"phases of the CPU's statistics, seconds, {title}", ["load", "flatten", "traverse", "emit"])
        with ExitStack() as opened:
            engines = [("CPU", select_engine("cpu")), *([("GPU", self._gpu)] if self._gpu else [])]
            archives = {name: opened.enter_context(Archive(self._packed, engine=engine)) for name, engine in engines}
            for task in tasks:
                ways[task] = {way.name: way for way in self._ways(archives, task, phases)}
                for way in ways[task].values():
                    way.run()
                _require_same(task, ways[task].values())
                for _ in range(self._rounds - 1):
                    for way in ways[task].values():
                        way.run()
        phases.notes.append(
            "Load: reads and checks the grammar; for wordcount and sort, this includes all of the traversal. "
            "The CPU initialises each part just before it traverses the part."
        )
        return [self._compare(title, ways), phases, self._virtual_files(title, ways)]

    def _ways(self, archives: Mapping[str, Archive], task: str, phases: Report) -> list[Way]:
        archive = archives["CPU"]
        loading = time.perf_counter()
        grammars = load_grammars(archive)
        loading = time.perf_counter() - loading
        inos = set().union(*(grammar.inos() for grammar in grammars)) & archive.inode_numbers()
        paths = {ino: path for ino, path in archive.paths().items() if ino in inos}

        order = SortOrder.BY_COUNT if task == "wordcount" else SortOrder.BY_WORD
        from_postings = TASKS[task]

        def report(given: Sequence[Grammar], traversal: Traversal) -> Text:
            if from_postings is not None:
                return postings_report(from_postings, given, paths, traversal=traversal)
            if traversal.device is not None:
                return word_count_report([count_words(grammar, traversal, inos) for grammar in given], order)
            return word_count_report([CountedWords(g, g.word_counts(inos)) for g in given], order)

        def content(name: str) -> Text:
            text = ContentText(archives[name], inos)
            if from_postings is None:
                return word_count_report([CountedWords(*words) for words in content_word_counts(text)], order)
            device = None if self._gpu is None or name == "CPU" else self._gpu.accelerator.arrays(1 << 62)
            return report(list(content_grammars(text)), Traversal(device=device))

        ways = [
            Way(_CPU, lambda: report(grammars, Traversal())),
            *(Way(f"{name}, no grammar", partial(content, name)) for name in archives),
        ]
        if from_postings is not None:
            ways += _directions(report, grammars, None, "CPU")
        if self._gpu is not None:
            ways += _directions(report, grammars, self._gpu.accelerator.arrays(1 << 62), "GPU")
        if self._with_scripts:
            names = sorted(os.fsencode(path) for path in paths.values())
            ways += [
                Way(script.name, lambda script=script: [script.run(self._tree, names)])  # type: ignore[misc]
                for script in scripts_for(task, archive.meta["words"], sys.executable)
            ]
        self._add_phases(archive, task, report, grammars, loading, phases)
        return ways

    def _add_phases(
        self,
        archive: Archive,
        task: str,
        report: Callable[[Sequence[Grammar], Traversal], Text],
        grammars: Sequence[Grammar],
        loading: float,
        phases: Report,
    ) -> None:
        times = PhaseTimes()
        started = time.perf_counter()
        if TASKS[task] is None:
            text = compute(task.encode(), archive)
            loading, started = time.perf_counter() - started, time.perf_counter()
            for _ in text:
                pass
            times.emit = time.perf_counter() - started
        else:
            for _ in report(grammars, Traversal(times=times)):
                pass
        phases.add(task, loading, times.flatten, times.traverse, times.emit)

    def _compare(self, title: str, ways: Mapping[str, Mapping[str, Way]]) -> Report:
        names = list(dict.fromkeys(name for of_task in ways.values() for name in of_task))
        quotients = [name for name in names if name not in (_CPU, *_DIRECTION_NAMES)]
        report = Report(
            f"statistics, seconds from the loaded grammar to the finished text, {title}",
            [*names, *(f"{name} / CPU" for name in quotients)],
        )
        for task, of_task in ways.items():
            medians = {name: way.median for name, way in of_task.items()}
            ours = medians[_CPU]
            report.add(task, *map(medians.get, names), *(divide(medians.get(name), ours) for name in quotients))
        report.notes.append(
            'All ways gave the same bytes. CPU and GPU start from the loaded grammar; "no grammar" '
            "starts from the files in the archive; the others start from the plain files in the page cache."
        )
        if missing := missing_frames():
            report.notes.append(f"Not installed: {', '.join(missing)}.")
        return report

    def _virtual_files(self, title: str, ways: Mapping[str, Mapping[str, Way]]) -> Report:
        report = Report(
            f"virtual files, seconds, each in a fresh mount, {title}",
            ["first byte", "last byte", "MB", "peak memory MB", "coreutils / first byte"],
        )
        for task, of_task in ways.items():
            runs = [self._read_virtual(task, of_task[_CPU].digests) for _ in range(self._rounds)]
            first, last, size, memory = (statistics.median(values) for values in zip(*runs, strict=True))
            coreutils = of_task["coreutils"].median if "coreutils" in of_task else None
            report.add(task, first, last, size / 1e6, memory / 1e6, divide(coreutils, first))
        report.notes.append("The archive is in the page cache. The first byte waits until the grammar is loaded.")
        return report

    def _read_virtual(self, task: str, digests: set[str]) -> tuple[float, float, int, int]:
        place = self._scratch / "mount"
        place.mkdir(exist_ok=True)
        server = subprocess.Popen([*GOMPFS, "mount", "-f", self._packed, place], env=environment())
        try:
            deadline = time.monotonic() + _READY_SECONDS
            while not os.path.ismount(place):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise click.ClickException("gompfs could not mount")
                time.sleep(0.01)
            digest, size, started = hashlib.sha256(), 0, time.perf_counter()
            with open(place / "stats" / task, "rb", buffering=0) as file:
                piece = file.read(1)
                first = time.perf_counter() - started
                while piece:
                    digest.update(piece)
                    size += len(piece)
                    piece = file.read(1 << 20)
            last = time.perf_counter() - started
            if digest.hexdigest() not in digests:
                raise click.ClickException(f"the virtual file {task} differs from the report")
            return first, last, size, _peak_memory(server.pid)
        finally:
            server.terminate()
            server.wait()


_DIRECTION_NAMES = tuple(f"CPU {direction.name.lower().replace('_', '-')}" for direction in Direction)


def _directions(
    report: Callable[[Sequence[Grammar], Traversal], Text],
    grammars: Sequence[Grammar],
    device: ArrayDevice | None,
    name: str,
) -> list[Way]:
    """Returns a Way for each direction, and for a device one that chooses. (The one of the CPU is made elsewhere.)"""
    ways = []
    for direction in Direction:
        if direction is Direction.AUTO and device is None:
            continue
        how = Traversal(direction, device=device)
        label = name if direction is Direction.AUTO else f"{name} {direction.name.lower().replace('_', '-')}"
        ways.append(Way(label, lambda how=how: report(grammars, how)))  # type: ignore[misc]
    return ways


def _gpu_engine() -> Engine | None:
    try:
        return select_engine("gpu")
    except EngineUnavailableError:
        return None


def _require_same(task: str, ways: Iterable[Way]) -> None:
    digests = {way.name: way.digests for way in ways}
    if len(set().union(*digests.values())) != 1:
        raise click.ClickException(f"{task}: the ways give different bytes: {digests}")


def _peak_memory(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
