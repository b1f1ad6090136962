"""How a task goes through the grammars, and what tasks over files and n-grams have in common."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from gompfs import _grammar
from gompfs.engine.array_device import ArrayDevice
from gompfs.errors import OptionError, StatsUnavailableError
from gompfs.grammar import Grammar

MAX_WORDS = 5
"""The most words of an n-gram."""


class Direction(Enum):
    """The direction of traversal (TADOC section 4, G-TADOC section 4)."""

    AUTO = 0
    """Chosen for each part of a grammar, by its number of files against the sizes of its rules."""
    TOP_DOWN = 1
    """Weights flow from each file to the rules that it uses."""
    BOTTOM_UP = 2
    """Every rule gets a table of what it and the rules below it hold; files read the tables of their elements.
    Where tables could take more than 64 MiB for a part, it is done top-down nevertheless."""


class Method(Enum):
    """How a device traverses; the CPU has its own way."""

    LEVELS = "levels"
    """Topological levels, whose order is made once; results are sorted."""
    ROUNDS = "rounds"
    """Rounds with masks, and hash tables for all: as G-TADOC does it, for comparison."""


@dataclass
class PhaseTimes:
    """Seconds that tasks took on a device, by phase, and what was chosen there; tasks and ranges of files add up."""

    flatten: float = 0.0
    """Words and files are numbered, and rules put into arrays, by the CPU."""
    upload: float = 0.0
    initialise: float = 0.0
    """Levels, n-grams by head and tail buffers, a first pass that says what traversal will take."""
    traverse: float = 0.0
    download: float = 0.0
    emit: float = 0.0
    """The text is written, by the CPU."""
    directions: Counter[str] = field(default_factory=Counter)
    """How many ranges of files were traversed top-down and bottom-up."""

    @contextmanager
    def of(self, phase: str, device: ArrayDevice | None = None) -> Iterator[None]:
        """Count what is done inside as this phase; what a device was given to do there is waited for."""
        started = time.perf_counter()
        yield
        if device is not None:
            device.synchronize()
        setattr(self, phase, getattr(self, phase) + time.perf_counter() - started)


@dataclass(frozen=True)
class Traversal:
    """The way to a result; the result is the same for all.

    With a `device`, the grammars are traversed there by `method`, in ranges of files that fit its memory; `times` is
    told how long that takes. Else `sequential` is TADOC on one thread with hash tables, top-down, for comparison, and
    otherwise `num_threads` take part, 0 for one per core. A task that needs more than `memory_limit` bytes of the host
    is given up; 0 stands for a quarter of the machine's.
    """

    direction: Direction = Direction.AUTO
    method: Method = Method.LEVELS
    sequential: bool = False
    num_threads: int = 0
    memory_limit: int = 0
    device: ArrayDevice | None = None
    times: PhaseTimes | None = None


BY_DEFAULT = Traversal()


class Task(IntEnum):
    """The tasks of `_grammar.statistics_report`."""

    INVERTED_INDEX = 0
    TERM_VECTOR = 1
    SEQUENCE_COUNT = 2
    RANKED_INVERTED_INDEX = 3


def statistics_report(
    task: Task, grammars: Sequence[Grammar], paths: Mapping[int, bytes], num_words: int, top: int, traversal: Traversal
) -> bytes:
    """The lines of a task over the files `paths` (inode number: path), which are listed in byte order of the paths.

    Raises OptionError for an impossible `num_words` or `top`, StatsUnavailableError if it takes too much memory.
    """
    if not 1 <= num_words <= MAX_WORDS:
        raise OptionError(f"sequences of {num_words} words; there are those of 1 to {MAX_WORDS}")
    if top < 0:
        raise OptionError(f"the first {top} make no sense")
    files = [(ino, escape_path(path)) for ino, path in sorted(paths.items(), key=lambda item: (item[1], item[0]))]
    traversal = replace(
        traversal,
        num_threads=traversal.num_threads or len(os.sched_getaffinity(0)),
        memory_limit=_memory_limit(traversal),
    )
    natives = [grammar.native for grammar in grammars]
    try:
        if traversal.device is not None:
            return _report_of_device(traversal.device, traversal, task, natives, files, num_words, top)
        return _grammar.statistics_report(
            task,
            natives,
            files,
            num_words,
            top,
            (traversal.sequential, traversal.direction.value, traversal.num_threads),
            traversal.memory_limit,
        )
    except ValueError as error:
        raise StatsUnavailableError(f"these statistics cannot be computed: {error}") from None


def _report_of_device(
    device: ArrayDevice,
    traversal: Traversal,
    task: Task,
    grammars: Sequence[_grammar.Grammar],
    files: Sequence[tuple[int, bytes]],
    num_words: int,
    top: int,
) -> bytes:
    from gompfs.analytics.device_statistics import DeviceCounter

    times = traversal.times or PhaseTimes()
    counter = DeviceCounter(device, traversal, times)
    with times.of("flatten"):
        corpus = _grammar.Corpus(grammars, files, num_words)
        part_sizes = [size for grammar in grammars for size in grammar.part_sizes()]
    runs = counter.gather(corpus, part_sizes, num_words, per_file=task is not Task.SEQUENCE_COUNT)
    with times.of("emit"):
        return corpus.report(task, top, runs, traversal.num_threads, traversal.memory_limit)


def _memory_limit(traversal: Traversal) -> int:
    return traversal.memory_limit or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def check_memory(num_bytes: int, traversal: Traversal = BY_DEFAULT) -> None:
    """Raise StatsUnavailableError where the grammars of a task take more than its limit already."""
    if num_bytes > _memory_limit(traversal):
        raise StatsUnavailableError("these statistics cannot be computed: they take more memory than they may")


def escape_path(path: bytes) -> bytes:
    r"""A path as a field of a line: backslash, tab and newline become `\\`, `\t` and `\n`, other bytes stay."""
    return path.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n")


def unescape_path(field: bytes) -> bytes:
    """The path that such a field stands for."""
    parts = field.split(b"\\\\")
    return b"\\".join(part.replace(b"\\t", b"\t").replace(b"\\n", b"\n") for part in parts)
