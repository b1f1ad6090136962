"""The tasks over files and n-grams: inverted indexes, term vectors, sequence counts and tf-idf.

Postings say how often each n-gram occurs in each file; a word is an n-gram of length 1. The C++ core, or a device,
counts them by traversing the grammars, spills them to temporary files, and makes the text of a task from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import PostingsTask
from gompfs.errors import OptionError, StatsUnavailableError
from gompfs.statistics.paths import escape_path, files_in_order
from gompfs.statistics.query import MAX_NGRAM_LENGTH, StatsQuery
from gompfs.statistics.report import FirstLines, FixedReport, PiecewiseReport, Report
from gompfs.statistics.traversal import BY_DEFAULT, PhaseTimes, Traversal
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from gompfs.statistics.source import StatsSource
    from gompfs.text.grammar import Grammar

NGRAM_TASKS = (PostingsTask.SEQUENCE_COUNT, PostingsTask.RANKED_INVERTED_INDEX)  # the others count words
_LINE_TASKS = (PostingsTask.INVERTED_INDEX, PostingsTask.SEQUENCE_COUNT)  # `top` limits their lines
DEFAULT_TOP_OF_TFIDF = 10
"""How many words of each file `tfidf` returns if the query has no limit."""


def from_postings(task: PostingsTask, source: StatsSource, query: StatsQuery) -> Report:
    """Returns the text of a task other than tf-idf for a query."""
    grammars, paths = source.grammars_and_paths(query)
    how = source.traversal(sum(grammar.num_symbols for grammar in grammars))
    return postings_report(task, grammars, paths, ngram_length=query.ngram_length, top=query.top, traversal=how)


def tfidf(source: StatsSource, query: StatsQuery) -> Report:
    """Returns the text of tf-idf for a query. For a single file too, the scores compare it with all other files."""
    grammars, paths = source.grammars_and_paths(query, with_others=True)
    if query.ino in paths and query.path is not None:
        paths[query.ino] = query.path
    how = source.traversal(sum(grammar.num_symbols for grammar in grammars))
    top = query.top or DEFAULT_TOP_OF_TFIDF
    report = postings_report(PostingsTask.TFIDF, grammars, paths, top=top, traversal=how)
    if query.ino is None:
        return report
    beginning = escape_path(paths.get(query.ino, b"")) + b"\t"
    lines = (line for piece in report for line in piece.splitlines(keepends=True))
    return FixedReport(b"".join(line for line in lines if line.startswith(beginning)))


def postings_report(
    task: PostingsTask,
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    *,
    ngram_length: int = StatsQuery.ngram_length,
    top: int = 0,
    traversal: Traversal = BY_DEFAULT,
) -> Report:
    """Returns the lines of a task (see tasks.py) for all grammars together.

    `paths` maps the inode numbers of the files to include to their paths. Files without words have no line. An n-gram
    has `ngram_length` words, 1 to 5, in the tasks that count n-grams; it never spans two files. The score of a word in
    a file is its count there times ln(files that have words / files that have this word). `top` above 0 limits the
    lines of an inverted index and a sequence count, and the items of each line in the other tasks.

    Raises OptionError for an invalid `ngram_length` or `top`, StatsUnavailableError if the postings exceed the space
    limit or a grammar cannot be used, and OSError if the disk is full.
    """
    if not 1 <= ngram_length <= MAX_NGRAM_LENGTH:
        raise OptionError(f"n-grams have 1 to {MAX_NGRAM_LENGTH} words, not {ngram_length}")
    if top < 0:
        raise OptionError(f"top must not be negative, but is {top}")
    if task not in NGRAM_TASKS:
        ngram_length = 1
    num_threads = traversal.num_threads or default_threads()
    times = traversal.times or PhaseTimes()
    how = replace(traversal, num_threads=num_threads, times=times)
    postings = new_postings(traversal)
    try:
        with times.of("flatten"):
            native = [grammar.native for grammar in grammars]
            corpus = _statistics.Corpus(native, files_in_order(paths), ngram_length)
        _gather(postings, corpus, grammars, ngram_length, how, per_file=task is not PostingsTask.SEQUENCE_COUNT)
    except ValueError as error:
        raise unavailable(error) from None
    return report_of_postings(task, corpus, postings, top, num_threads, times)


def report_of_postings(
    task: PostingsTask,
    corpus: _statistics.Corpus,
    postings: _statistics.Postings,
    top: int,
    num_threads: int,
    times: PhaseTimes,
) -> Report:
    """Returns the lines of a task, made of postings. See postings_report."""
    try:
        with times.of("emit"):
            text = _statistics.task_report(corpus, task, top, postings, num_threads)
    except ValueError as error:
        raise unavailable(error) from None
    return first_lines(PiecewiseReport(text, num_threads, timed=lambda: times.of("emit")), task, top)


def first_lines(report: Report, task: PostingsTask, top: int) -> Report:
    """Returns the text of a task, of which `top` limits the lines if it is above 0 and the task has no other limit."""
    return FirstLines(report, top) if top and task in _LINE_TASKS else report


def unavailable(error: ValueError) -> StatsUnavailableError:
    """Returns the error for grammars of which the C++ core said why they cannot be used."""
    return StatsUnavailableError(f"these statistics cannot be computed: {error}")


def new_postings(traversal: Traversal = BY_DEFAULT) -> _statistics.Postings:
    """Returns an empty list of postings, in memory and temporary files as `traversal` says."""
    from gompfs.statistics.temporary_files import free_space, temporary_directory

    directory = temporary_directory()
    return _statistics.Postings(directory, traversal.in_memory, traversal.space_limit or free_space(directory) // 2)


def _gather(
    postings: _statistics.Postings,
    corpus: _statistics.Corpus,
    grammars: Sequence[Grammar],
    ngram_length: int,
    traversal: Traversal,
    *,
    per_file: bool,
) -> None:
    """Counts the n-grams of the corpus, on the device if there is one."""
    times = traversal.times or PhaseTimes()
    if traversal.device is None:
        with times.of("traverse"):
            postings.gather(corpus, per_file, traversal.direction, traversal.num_threads)
        return
    from gompfs.statistics.gpu.device_counter import DeviceCounter, FlattenedText

    num_threads = traversal.num_threads or default_threads()

    def flatten(begin: int, end: int) -> _statistics.Forest:
        return _statistics.forest_of_corpus(corpus, begin, end, False, num_threads)

    part_sizes = [size for grammar in grammars for size in grammar.native.part_sizes()]
    text = FlattenedText(traversal.device, part_sizes, flatten, times)
    DeviceCounter(traversal.device, traversal, times).gather(postings, corpus, text, ngram_length, per_file=per_file)
    with times.of("traverse"):
        postings.gather_over_edges(corpus, per_file, num_threads)
