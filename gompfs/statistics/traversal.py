"""How a task traverses the grammars, and the common part of all tasks over files and n-grams."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import Direction, Task
from gompfs.errors import OptionError, StatsUnavailableError
from gompfs.gpu.arrays import ArrayDevice
from gompfs.grammar import Grammar
from gompfs.statistics.report import FirstLines, PiecewiseReport, Report
from gompfs.statistics.temporary_files import free_space, temporary_directory

MAX_WORDS = 5
"""The maximum number of words in an n-gram."""




@dataclass
class PhaseTimes:
    """Seconds per phase, and the directions chosen on a device, summed over tasks and ranges of files.

    The CPU has the phases `flatten`, `traverse` and `emit`, since it initialises each part just before traversing it.
    """

    flatten: float = 0.0
    """The CPU numbers words and files, and for a device puts the rules into arrays."""
    upload: float = 0.0
    initialise: float = 0.0
    """Levels, n-grams from head and tail buffers, and the first pass, which estimates the work of a direction."""
    traverse: float = 0.0
    download: float = 0.0
    emit: float = 0.0
    """The CPU sorts the postings and makes the text."""
    directions: Counter[str] = field(default_factory=Counter)
    """How many ranges of files were traversed top-down, and how many bottom-up."""

    @contextmanager
    def of(self, phase: str, device: ArrayDevice | None = None) -> Iterator[None]:
        """Adds the time of the `with` body to a phase.

        With `device`, waits at the end for what the device was given.
        """
        started = time.perf_counter()
        yield
        if device is not None:
            device.synchronize()
        setattr(self, phase, getattr(self, phase) + time.perf_counter() - started)


@dataclass(frozen=True)
class Traversal:
    """How a result is computed. The result does not depend on it.

    With a `device`, the grammars are traversed there, in ranges of files that fit in its memory. Without one,
    `num_threads` threads (0: one per core) traverse them; `sequential` instead selects TADOC's own method for
    comparison: one thread, hash tables, top-down.

    At most `in_memory` bytes of postings are kept in memory; the rest goes to a temporary file. A task with more than
    `space_limit` bytes of postings fails; 0 stands for half of the free disk space. Times are added to `times`.
    """

    direction: Direction = Direction.AUTO
    sequential: bool = False
    num_threads: int = 0
    in_memory: int = 32 << 20
    space_limit: int = 0
    device: ArrayDevice | None = None
    times: PhaseTimes | None = None


BY_DEFAULT = Traversal()


_TOP_LINES = (Task.INVERTED_INDEX, Task.SEQUENCE_COUNT)  # tasks whose `top` limits lines


def statistics_report(
    task: Task, grammars: Sequence[Grammar], paths: Mapping[int, bytes], num_words: int, top: int, traversal: Traversal
) -> Report:
    """Returns the lines of a task for the files in `paths` (inode number: path), in byte order of the paths.

    Postings are spilled to temporary files. Raises OptionError for an invalid `num_words` or `top`,
    StatsUnavailableError if the postings exceed the space limit or a grammar cannot be used, and OSError if the disk is
    full.
    """
    if not 1 <= num_words <= MAX_WORDS:
        raise OptionError(f"n-grams have 1 to {MAX_WORDS} words, not {num_words}")
    if top < 0:
        raise OptionError(f"top must not be negative, but is {top}")
    files = files_in_order(paths)
    num_threads = traversal.num_threads or len(os.sched_getaffinity(0))
    times = traversal.times or PhaseTimes()
    directory = temporary_directory()
    postings = _statistics.Postings(directory, traversal.in_memory, traversal.space_limit or free_space(directory) // 2)
    try:
        with times.of("flatten"):
            corpus = _statistics.Corpus([grammar.native for grammar in grammars], files, num_words)
        _gather(postings, corpus, task, grammars, num_words, replace(traversal, num_threads=num_threads, times=times))
        with times.of("emit"):
            native = _statistics.task_report(corpus, task, top, postings, num_threads)
    except ValueError as error:
        raise StatsUnavailableError(f"these statistics cannot be computed: {error}") from None
    report = PiecewiseReport(native, num_threads, timed=lambda: times.of("emit"))
    return FirstLines(report, top) if top and task in _TOP_LINES else report


def _gather(
    postings: _statistics.Postings,
    corpus: _statistics.Corpus,
    task: Task,
    grammars: Sequence[Grammar],
    num_words: int,
    traversal: Traversal,
) -> None:
    """Counts what the task needs, on the device if there is one."""
    from gompfs.statistics.device_postings import DeviceCounter

    per_file = task is not Task.SEQUENCE_COUNT
    times = traversal.times or PhaseTimes()
    if traversal.device is None:
        with times.of("traverse"):
            postings.gather(corpus, per_file, traversal.direction, traversal.num_threads, traversal.sequential)
        return
    counter = DeviceCounter(traversal.device, traversal, times)
    part_sizes = [size for grammar in grammars for size in grammar.native.part_sizes()]
    counter.gather(postings, corpus, part_sizes, num_words, per_file=per_file)
    with times.of("traverse"):
        postings.gather_over_edges(corpus, per_file, traversal.num_threads)


def files_in_order(paths: Mapping[int, bytes]) -> list[tuple[int, bytes]]:
    """Returns the files as `_statistics.Corpus` takes them: sorted by path in byte order, with escaped paths."""
    return [(ino, escape_path(path)) for ino, path in sorted(paths.items(), key=lambda item: (item[1], item[0]))]


def check_memory(num_bytes: int) -> None:
    """Raises StatsUnavailableError if the grammars of a task take more than a quarter of the machine's memory."""
    if num_bytes > _memory_limit():
        raise StatsUnavailableError("these statistics cannot be computed: they need more memory than is allowed")


def _memory_limit() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def escape_path(path: bytes) -> bytes:
    r"""Returns a path as a field of a line: backslash, tab and newline become `\\`, `\t` and `\n`; other bytes stay."""
    return path.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n")


def unescape_path(field: bytes) -> bytes:
    """Returns the path that `escape_path` has written as this field."""
    parts = field.split(b"\\\\")
    return b"\\".join(part.replace(b"\\t", b"\t").replace(b"\\n", b"\n") for part in parts)
