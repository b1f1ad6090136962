"""The statistics of a ResidentText: the same bytes as those that the CPU computes from the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import PostingsTask
from gompfs.errors import StatsUnavailableError
from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.gpu.device.spread import run_together
from gompfs.statistics.gpu.device_counter import DeviceCounter
from gompfs.statistics.gpu.device_rows import DeviceRows, Lines, RowsText, Totals, add_totals
from gompfs.statistics.gpu.resident_text import ResidentPart, ResidentShare, ResidentText
from gompfs.statistics.paths import escape_path
from gompfs.statistics.postings import (
    DEFAULT_TOP_OF_TFIDF,
    NGRAM_TASKS,
    first_lines,
    new_postings,
    report_of_postings,
    unavailable,
)
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.report import FixedReport, PiecewiseReport, Report
from gompfs.statistics.word_counts import SortOrder
from gompfs.threads import default_threads

_BY_FILE = (PostingsTask.TERM_VECTOR, PostingsTask.TFIDF)  # each file has a line
_NO_FREQUENCIES = np.zeros(0, np.uint32), 0
_SCORES_MAY_DIFFER_BY = 1e-9  # of a score; logarithms of a device and of the host differ by less
_BITS_OF_A_WORD = 32
_Counted = tuple[ResidentShare, Totals]
"""Counts, and where they are."""


def resident_word_counts(order: SortOrder, text: ResidentText, query: StatsQuery) -> Report:
    """Returns the lines `word<TAB>count` for a query. Raises StatsUnavailableError for one file, MemoryError."""
    corpus = text.corpus(1)
    lines = _row_lines(PostingsTask.SEQUENCE_COUNT, corpus)
    by_count = order is SortOrder.BY_COUNT
    if query.ino is None:
        counted = _count_totals(text, corpus, 1)
        return _report_of_totals(text, counted, lines, by_count=by_count, top=query.top)
    with _in_file(text, query.ino, corpus, 1) as of_file:
        return _report_of_totals(text, of_file, lines, by_count=by_count, top=query.top)


def resident_postings(task: PostingsTask, text: ResidentText, query: StatsQuery, ngram_length: int, top: int) -> Report:
    """Returns the text of a task, whose n-grams have `ngram_length` words. See postings_report.

    Its rows are in order on the device, and come to the host when their lines are read. For one file, tf-idf is
    resident_tfidf_of_file. Raises StatsUnavailableError, MemoryError, and OSError if the disk is full.
    """
    frequencies = text.frequencies() if task is PostingsTask.TFIDF else _NO_FREQUENCIES
    try:
        corpus = text.corpus(ngram_length)
        if query.ino is not None:
            report = _of_file(task, text, query, ngram_length, top)
        elif task is PostingsTask.SEQUENCE_COUNT:
            report = _sequence_counts(text, corpus, ngram_length, top)
        else:
            rows = _count_rows(text, corpus, ngram_length, by_file=task in _BY_FILE)
            report = _report(text, rows, _row_lines(task, corpus, top, frequencies))
    except ValueError as error:
        raise unavailable(error) from None
    return first_lines(report, task, top)


def _of_file(task: PostingsTask, text: ResidentText, query: StatsQuery, ngram_length: int, top: int) -> Report:
    """Returns the text of a task other than tf-idf for the query's file."""
    assert query.ino is not None
    all_files = text.corpus(ngram_length)
    with _in_file(text, query.ino, all_files, ngram_length) as counted:
        if task is PostingsTask.TERM_VECTOR:
            return _term_vector(text, counted, text.path_for(query), top)
        if task is PostingsTask.SEQUENCE_COUNT:
            return _report_of_totals(text, counted, _row_lines(task, all_files), by_count=True, sizes=None)
        lines = _row_lines(task, text.corpus_of(query, ngram_length), top)
        return _report_of_totals(text, counted, lines, sizes=None)


def _term_vector(text: ResidentText, counted: _Counted | None, path: bytes, top: int) -> Report:
    """Returns the only line of a term vector. Its items come in pieces, as a file may have many words."""
    corpus = text.corpus(1)

    def items(sources: list[tuple[Any, ...]], _num_threads: int) -> list[bytes]:
        ((_, counts, _, cuts, (words,)),) = sources
        return [corpus.items(words[begin:end], counts[begin:end]) for begin, end in pairwise(cuts.tolist())]

    return _report_of_totals(text, counted, items, by_count=True, top=top, begin=path, end=b"\n")


def _sequence_counts(text: ResidentText, corpus: _statistics.Corpus, ngram_length: int, top: int) -> Report:
    task = PostingsTask.SEQUENCE_COUNT
    try:
        counted = _count_totals(text, corpus, ngram_length)
        return _report_of_totals(text, counted, _row_lines(task, corpus), by_count=True, sizes=None)
    except (MemoryError, StatsUnavailableError):
        postings = _add_on_host(text, corpus, ngram_length)
        return report_of_postings(task, corpus, postings, top, default_threads(), text.times)


def _row_lines(
    task: PostingsTask,
    corpus: _statistics.Corpus,
    top: int = 0,
    frequencies: tuple[NDArray[np.uint32], int] = _NO_FREQUENCIES,
) -> Lines:
    """Returns a function that makes the lines of a task from rows. tf-idf needs ResidentText.frequencies."""
    return lambda sources, num_threads: _statistics.row_lines(corpus, task, top, *frequencies, sources, num_threads)


def _report(text: ResidentText, rows: Sequence[DeviceRows], lines: Lines, **options: Any) -> Report:
    """Returns the text of rows. `options` are those of RowsText."""
    times = text.times
    with times.of("emit"):
        pieces = RowsText(rows, lines, **options)
    return PiecewiseReport(pieces, timed=lambda: times.of("emit"))


def _sizes_of_words(text: ResidentText, share: ResidentShare) -> Array:
    return share.kept("word sizes", text.corpus(1).word_sizes)


def _sizes_of_paths(text: ResidentText, share: ResidentShare) -> Array:
    return share.kept("path sizes", text.path_sizes)


def _report_of_totals(
    text: ResidentText,
    counted: _Counted | None,
    lines: Lines,
    *,
    by_count: bool = False,
    top: int = 0,
    sizes: Callable[[ResidentText, ResidentShare], Array] | None = _sizes_of_words,
    begin: bytes = b"",
    end: bytes = b"",
) -> Report:
    """Returns the text of counts, by key or by falling count, of which `top` limits the number if it is above 0.

    `sizes` returns the size of each word or path that a key stands for, if keys are such numbers: then the size of the
    text is known. The text is between `begin` and `end`, unless nothing was counted.
    """
    if counted is None or not counted[1].counts.size:
        return FixedReport(b"")
    share, totals = counted
    if totals.are_few:
        with share.device as device:
            totals = totals.on_host(device)
        totals = totals.by_count(np) if by_count else totals
        with text.times.of("emit"):
            return FixedReport(begin + totals.first(top or totals.counts.size).text(lines) + end)
    with share.device as device, text.times.of("traverse", device):
        if by_count:
            totals = totals.by_count(device.xp)
        totals = totals.first(top) if top else totals
        size = None
        if sizes is not None:
            size = totals.size_of_lines(device, sizes(text, share)) + len(begin) + len(end)
        rows = share.hold([totals.rows(device)])
    return _report(text, rows, lines, by_key=False, size=size, begin=begin, end=end)


def _count_rows(
    text: ResidentText, corpus: _statistics.Corpus, ngram_length: int, *, by_file: bool
) -> list[DeviceRows]:
    def count(counter: DeviceCounter, part: ResidentPart) -> Sequence[DeviceRows]:
        return part.share.hold(counter.rows(corpus, part, ngram_length, by_file=by_file))

    return [rows for of_device in text.count(count) for rows in of_device]


def _count_totals(text: ResidentText, corpus: _statistics.Corpus, ngram_length: int) -> _Counted | None:
    """Returns the counts of all files together."""

    def count(counter: DeviceCounter, part: ResidentPart) -> tuple[ResidentShare, Totals | None]:
        return part.share, counter.totals(corpus, part, ngram_length)

    return _together(text, [(share, totals) for share, totals in text.count(count) if totals is not None])


def _together(text: ResidentText, counted: Sequence[_Counted]) -> _Counted | None:
    """Returns the sum of what several devices have counted, which send theirs to the first. None if there is none."""
    if not counted:
        return None
    (share, totals), *others = counted
    device = share.device
    all_totals = [totals, *(more.brought_from(device, other.device) for other, more in others)]
    with device, text.times.of("traverse", device):
        return share, add_totals(device, all_totals)


@contextmanager
def _in_file(text: ResidentText, ino: int, corpus: _statistics.Corpus, ngram_length: int) -> Iterator[_Counted | None]:
    """Counts the n-grams of a file, and gives None if its text has no words.

    Raises StatsUnavailableError instead of MemoryError, also for the body of the `with` statement: other questions may
    need less.
    """
    found = text.find_file(ino)
    if found is None:
        yield None
        return
    share, node = found
    share.memory()  # answers that are read slowly may have to leave it
    try:
        with share.device as device, text.times.of("traverse", device):
            if ngram_length == 1:
                terms = share.forest.words_in(node)
            else:
                terms = share.forest.ngrams_in(node, ngram_length, corpus.bits, corpus.inner_ranks)
        yield share, Totals(*terms)
    except MemoryError:
        raise StatsUnavailableError(f"one file needs more memory than is allowed on {share.device.name}") from None


def _add_on_host(text: ResidentText, corpus: _statistics.Corpus, ngram_length: int) -> _statistics.Postings:
    """Returns the counts of all files together, for which a device has too little memory: the host adds up ranges."""
    postings = new_postings()
    text.count(lambda counter, part: counter.gather(postings, corpus, part, ngram_length, per_file=False))
    return postings


def resident_tfidf_of_file(text: ResidentText, query: StatsQuery) -> Report:
    """Returns the line of tf-idf for the query's file. The files of each word are counted once.

    Raises StatsUnavailableError, MemoryError.
    """
    assert query.ino is not None
    files, num_files = text.frequencies()
    top = query.top or DEFAULT_TOP_OF_TFIDF
    with _in_file(text, query.ino, text.corpus(1), 1) as counted:
        if counted is None:
            return FixedReport(b"")
        share, totals = counted
        with share.device as device, text.times.of("traverse", device):
            of_words = share.kept("files of words", lambda: files)
            chosen = _with_best_scores(device, totals, of_words, num_files, top)
            words, counts = (device.download(array[chosen]) for array in (totals.halves[0], totals.counts))
    path = text.path_of(query.ino) if query.path is None else escape_path(query.path)
    corpus = text.corpus(1).with_files([(query.ino, path)], 1)
    source = words, counts, _BITS_OF_A_WORD, np.array([0, words.size], np.uint64), ()
    lines = _row_lines(PostingsTask.TFIDF, corpus, top, (files, num_files))
    return FixedReport(b"".join(lines([source], 1)))


def _with_best_scores(device: ArrayDevice, totals: Totals, files: Array, num_files: int, top: int) -> Array:
    """Returns the indexes of the words of a file that may be among the `top` with the best scores of tf-idf, ascending.

    `files` (uint32) is the number of files that have each word. The host decides, as its logarithms may be others.
    """
    xp = device.xp
    scores = totals.counts.astype(np.float64) * xp.log(num_files / files[totals.halves[0]].astype(np.float64))
    if scores.size <= top:
        return xp.arange(scores.size)
    bound = xp.sort(scores)[scores.size - top]
    return xp.flatnonzero(scores >= bound * (1 - _SCORES_MAY_DIFFER_BY))


def resident_phrase(text: ResidentText, query: StatsQuery) -> Report:
    """Returns the lines `path<TAB>count` of the files with the words of the query in a row, at most MAX_PHRASE words.

    Raises MemoryError.
    """
    ranks = text.ranks_of(query.words)
    if ranks is None:
        return FixedReport(b"")
    if query.ino is not None:
        return _phrase_in_file(text, query, ranks)
    corpus = text.corpus(1)

    def lines(sources: list[tuple[Any, ...]], _num_threads: int) -> list[bytes]:
        ((_, counts, _, cuts, (files,)),) = sources
        return [corpus.file_lines(files[begin:end], counts[begin:end]) for begin, end in pairwise(cuts.tolist())]

    def count(share: ResidentShare) -> _Counted:
        share.memory()  # see _in_file
        with share.device:
            return share, Totals(*share.forest.files_with(ranks))

    counted = run_together([partial(count, share) for share in text.shares])
    found = _together(text, [each for each in counted if each[1].counts.size])
    return _report_of_totals(text, found, lines, by_count=True, top=query.top, sizes=_sizes_of_paths)


def _phrase_in_file(text: ResidentText, query: StatsQuery, ranks: Sequence[int]) -> Report:
    assert query.ino is not None
    found = text.find_file(query.ino)
    if found is None:
        return FixedReport(b"")
    share, node = found
    share.memory()  # see _in_file
    with share.device:
        count = int(share.forest.count_phrase(ranks)[node])
    return FixedReport(b"%s\t%d\n" % (text.path_for(query), count) if count else b"")


def _of_postings(task: PostingsTask, text: ResidentText, query: StatsQuery) -> Report:
    length = query.ngram_length if task in NGRAM_TASKS else 1
    return resident_postings(task, text, query, length, query.top)


def _tfidf(text: ResidentText, query: StatsQuery) -> Report:
    if query.ino is not None:
        return resident_tfidf_of_file(text, query)
    return resident_postings(PostingsTask.TFIDF, text, query, 1, query.top or DEFAULT_TOP_OF_TFIDF)


ANSWERS: dict[str, Callable[[ResidentText, StatsQuery], Report]] = {
    "wordcount": partial(resident_word_counts, SortOrder.BY_COUNT),
    "sort": partial(resident_word_counts, SortOrder.BY_WORD),
    "inverted_index": partial(_of_postings, PostingsTask.INVERTED_INDEX),
    "term_vector": partial(_of_postings, PostingsTask.TERM_VECTOR),
    "sequence_count": partial(_of_postings, PostingsTask.SEQUENCE_COUNT),
    "ranked_inverted_index": partial(_of_postings, PostingsTask.RANKED_INVERTED_INDEX),
    "tfidf": _tfidf,
    "word": resident_phrase,
    "phrase": resident_phrase,
}
"""The statistics that a ResidentText answers, by the names of their tasks."""
