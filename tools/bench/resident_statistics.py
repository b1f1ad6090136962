"""Measures statistics of words that stay on a GPU, beside words brought for each, and the CPU.

Words that are brought are traversed by levels, as gompfs does, and in rounds with masks, as in the paper on G-TADOC.

All times are end to end, from the question in a warm mount to the first byte of its answer, and to the last one. The
grammars are in memory for all ways, so none reads them.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import exp, log
from pathlib import Path

import click

from gompfs._native.statistics import PostingsTask
from gompfs.archive import Archive
from gompfs.archive.index_arrays import file_sizes
from gompfs.engine import select_engine
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.statistics.gpu.device_counter import count_words
from gompfs.statistics.gpu.resident_text import ResidentText
from gompfs.statistics.grammar_cache import load_grammars
from gompfs.statistics.postings import NGRAM_TASKS, postings_report
from gompfs.statistics.query import EVERYTHING, StatsQuery
from gompfs.statistics.report import Report as Text
from gompfs.statistics.resident_answers import ANSWERS
from gompfs.statistics.tasks import NAMES_OF_FILE, compute
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.statistics.word_counts import SortOrder, word_count_report
from gompfs.text.grammar import CountedWords, Grammar
from tools.experiments.mask_rounds import report_in_rounds

from .report import Cell, Report, divide
from .stats import TASKS

_RESIDENT, _BROUGHT, _ROUNDS = "GPU, resident", "GPU, brought", "GPU, brought, in rounds"
_CPU = "CPU"
_WAYS = (_RESIDENT, _BROUGHT, _ROUNDS, _CPU)
_QUOTIENTS = ((_BROUGHT, _RESIDENT), (_CPU, _RESIDENT), (_CPU, _BROUGHT))
_PHASES = tuple(phase.name for phase in fields(PhaseTimes) if phase.name != "directions")


@dataclass
class _Way:
    """A way to answer a question; for each run: seconds to the first and the last byte, and seconds of phases."""

    ask: Callable[[PhaseTimes], Iterable[bytes]]
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    phases: list[PhaseTimes] = field(default_factory=list)
    digests: set[bytes] = field(default_factory=set)

    def run(self) -> None:
        """Asks once. The time for the digest does not count."""
        times = PhaseTimes()
        started = time.perf_counter()
        pieces: Iterator[bytes] = filter(None, self.ask(times))
        piece = next(pieces, b"")
        self.first.append(time.perf_counter() - started)
        digest, hashing = hashlib.blake2b(), 0.0
        while piece:
            paused = time.perf_counter()
            digest.update(piece)
            hashing += time.perf_counter() - paused
            piece = next(pieces, b"")
        self.last.append(time.perf_counter() - started - hashing)
        self.phases.append(times)
        self.digests.add(digest.digest())

    def median_of(self, phase: str) -> float:
        """Returns the median milliseconds of a phase."""
        return 1e3 * statistics.median(getattr(times, phase) for times in self.phases)


def measure_resident_statistics(
    path: Path, devices: Sequence[ArrayDevice], room: int, rounds: int, name: str
) -> list[Report]:
    """Returns the tables of an archive: all tasks and their phases, and questions about words, phrases and files.

    Words may stay on each of `devices` in `room` bytes. Raises StatsUnavailableError if they do not fit.
    """
    loading = PhaseTimes()
    with Archive(path, engine=select_engine("cpu")) as archive:
        grammars = load_grammars(archive)
        started = time.perf_counter()
        text = ResidentText.load(archive, devices, room, loading)
        seconds = time.perf_counter() - started
        try:
            tasks = _measure_tasks(archive, text, grammars, devices[0], rounds, name)
            questions = _measure_questions(archive, text, grammars, rounds, name)
            needed = text.num_bytes
        finally:
            text.release()
    note = (
        f"{text.device_names}. To put the words there took {seconds:.2f} s, of them {loading.flatten * 1e3:.0f} ms "
        f"to flatten and {loading.upload * 1e3:.0f} ms to upload. They take {needed >> 20} MiB, with what questions "
        "made of them."
    )
    for report in (tasks[0], questions):
        report.notes.append(note)
    return [*tasks, questions]


def _measure_tasks(
    archive: Archive, text: ResidentText, grammars: Sequence[Grammar], device: ArrayDevice, rounds: int, name: str
) -> list[Report]:
    compared = Report(
        f"statistics of {name}, milliseconds to the first and to the last byte, medians of {rounds}",
        [f"{way}, {byte}" for way in _WAYS for byte in ("first", "last")],
    )
    phases = Report(f"phases of the statistics of {name}, milliseconds, medians of {rounds}", [*_PHASES])
    factors = Report(
        f"quotients of the statistics of {name}: of times to the first, and to the last byte",
        [f"{a} / {b}, {byte}" for a, b in _QUOTIENTS for byte in ("first", "last")],
    )
    gains = []
    for task in TASKS:
        ways = _ways_of_task(archive, text, grammars, device, task)
        _run(task, ways, rounds)
        compared.add(task, *(cell for name in _WAYS for cell in _cells(ways.get(name))))
        of_ways = {name: _cells(way) for name, way in ways.items()}
        gains.append([divide(*pair) or 1.0 for a, b in _QUOTIENTS for pair in zip(of_ways[a], of_ways[b], strict=True)])
        factors.add(task, *gains[-1])
        for way in (name for name in ways if any(map(ways[name].median_of, _PHASES))):
            phases.add(f"{task}, {way}", *(ways[way].median_of(phase) for phase in _PHASES))
    factors.add("geometric mean", *map(_mean, zip(*gains, strict=True)))
    compared.notes += [
        (
            "All ways gave the same bytes. In rounds: with masks and result tables, as in the paper on G-TADOC, where "
            "gompfs traverses by levels."
        ),
        _losses({task: row[2] for task, row in zip(TASKS, gains, strict=True)}),
    ]
    return [compared, factors, phases]


def _cells(way: _Way | None) -> list[Cell]:
    """Returns the median milliseconds to the first byte, and to the last one; nothing if there is no such way."""
    return [1e3 * statistics.median(values) for values in (way.first, way.last)] if way else [None, None]


def _ways_of_task(
    archive: Archive, text: ResidentText, grammars: Sequence[Grammar], device: ArrayDevice, task: str
) -> dict[str, _Way]:
    """Returns the ways to the text of a task. Rounds count no words of all files."""
    inos = set().union(*(grammar.inos() for grammar in grammars)) & archive.inode_numbers()
    paths = {ino: path for ino, path in archive.paths().items() if ino in inos}
    from_postings: PostingsTask | None = TASKS[task]
    order = SortOrder.BY_COUNT if task == "wordcount" else SortOrder.BY_WORD

    def resident(times: PhaseTimes) -> Text:
        text.times = times
        return ANSWERS[task](text, EVERYTHING)

    def traversed(how: Traversal) -> Text:
        if from_postings is not None:
            return postings_report(from_postings, grammars, paths, traversal=how)
        if how.device is not None:
            return word_count_report([count_words(grammar, how, inos) for grammar in grammars], order)
        return word_count_report([CountedWords(grammar, grammar.word_counts(inos)) for grammar in grammars], order)

    def in_rounds(times: PhaseTimes) -> Iterable[bytes]:
        assert from_postings is not None
        length = StatsQuery.ngram_length if from_postings in NGRAM_TASKS else 1
        yield report_in_rounds(from_postings, grammars, paths, length, Traversal(device=device, times=times))

    ways = {
        _RESIDENT: _Way(resident),
        _BROUGHT: _Way(lambda times: traversed(Traversal(device=device, times=times))),
        _CPU: _Way(lambda times: traversed(Traversal(times=times))),
    }
    return ways if from_postings is None else ways | {_ROUNDS: _Way(in_rounds)}


def _measure_questions(
    archive: Archive, text: ResidentText, grammars: Sequence[Grammar], rounds: int, name: str
) -> Report:
    report = Report(
        f"questions about {name}, milliseconds to the first byte, medians of {rounds}",
        [_RESIDENT, _CPU, "CPU / resident", "answer bytes"],
    )
    gains = {}
    for label, (task, query) in _questions(archive, grammars).items():

        def resident(times: PhaseTimes, task: str = task, query: StatsQuery = query) -> Text:
            text.times = times
            return ANSWERS[task](text, query)

        def on_cpu(_times: PhaseTimes, task: str = task, query: StatsQuery = query) -> Text:
            full = b"/".join([task.encode(), *((b" ".join(query.words),) if query.words else ())])
            return compute(full, archive, query, grammars=lambda: list(grammars))

        ways = {_RESIDENT: _Way(resident), _CPU: _Way(on_cpu)}
        _run(label, ways, rounds)
        gain = divide(_first(ways[_CPU]), _first(ways[_RESIDENT]))
        gains[label] = gain or 1.0
        size = sum(map(len, resident(PhaseTimes())))
        report.add(label, 1e3 * _first(ways[_RESIDENT]), 1e3 * _first(ways[_CPU]), gain, size)
    report.notes += ["Both ways gave the same bytes; the CPU uses all cores.", _losses(gains)]
    return report


def _questions(archive: Archive, grammars: Sequence[Grammar]) -> Mapping[str, tuple[str, StatsQuery]]:
    """Returns words from rare to frequent, phrases of the largest file, and a small, a median and the largest file."""
    words = [line.split(b"\t")[0] for line in compute(b"wordcount", archive).read().splitlines()]
    numbers = set().union(*(grammar.inos() for grammar in grammars))
    sizes = sorted((size, ino) for ino, size in file_sizes(archive).tolist() if ino in numbers and size > 0)
    if not words or not sizes:
        raise click.ClickException("the archive has no words")
    files = {"small": sizes[len(sizes) // 10], "median": sizes[len(sizes) // 2], "largest": sizes[-1]}
    text = archive.read(sizes[-1][1], 0, 4096).split()[:5]
    asked = {
        f"word, {what}": ("word", StatsQuery(words=(word,)))
        for what, word in (("most frequent", words[0]), ("median", words[len(words) // 2]), ("rarest", words[-1]))
    }
    asked |= {
        f"phrase of {length} words": ("phrase", StatsQuery(words=tuple(text[:length])))
        for length in (2, 3, 5)
        if length <= len(text)
    }
    for what, (_, ino) in files.items():
        of_file = StatsQuery(ino, path=archive.path_of(ino))  # a mount knows the path
        asked |= {f"{task} of the {what} file": (task, of_file) for task in (*NAMES_OF_FILE, "tfidf")}
    return asked


def _run(label: str, ways: Mapping[str, _Way], rounds: int) -> None:
    """Runs all ways in turn. The first round, which fills caches, does not count. Raises ClickException."""
    for number in range(rounds + 1):
        for way in ways.values():
            way.run()
            if number == 0:
                way.first.clear()
                way.last.clear()
                way.phases.clear()
    if len(set().union(*(way.digests for way in ways.values()))) != 1:
        raise click.ClickException(f"{label}: the ways give different bytes")


def _first(way: _Way) -> float:
    return statistics.median(way.first)


def _mean(factors: Sequence[float]) -> float:
    return exp(sum(map(log, factors)) / len(factors))


def _losses(gains: Mapping[str, float]) -> str:
    lost = [f"{label} ({gain:.2f})" for label, gain in gains.items() if gain < 1]
    return f"Slower than the CPU: {', '.join(lost) or 'nothing'}."
