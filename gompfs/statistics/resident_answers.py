"""The statistics of a ResidentText: the same bytes as those that the CPU computes from the archive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import PostingsTask
from gompfs.errors import StatsUnavailableError
from gompfs.statistics.device_postings import DeviceCounter
from gompfs.statistics.device_rows import DeviceRows, RowsText, Totals, add_totals
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
from gompfs.statistics.resident_text import ResidentPart, ResidentShare, ResidentText
from gompfs.statistics.word_counts import SortOrder
from gompfs.threads import default_threads

_BY_FILE = (PostingsTask.TERM_VECTOR, PostingsTask.TFIDF)  # each file has a line
_NO_FREQUENCIES = np.zeros(0, np.uint32), 0


def resident_word_counts(order: SortOrder, text: ResidentText, query: StatsQuery) -> Report:
    """Returns the lines `word<TAB>count` for a query. Raises MemoryError."""
    if query.ino is None:
        return _word_counts_of_all(order, text, query)
    ((ranks, counts),) = text.count(query, lambda counter, part: counter.words_of_file(part, text.num_words))
    if order is SortOrder.BY_COUNT:
        by_count = np.argsort(-counts.astype(np.int64), kind="stable")
        ranks, counts = ranks[by_count], counts[by_count]
    shown = slice(query.top or None)
    return FixedReport(text.corpus(query, 1).lines(ranks[shown].astype(np.uint32), counts[shown]))


def _word_counts_of_all(order: SortOrder, text: ResidentText, query: StatsQuery) -> Report:
    corpus = text.corpus(query, 1)
    counted = _count_totals(text, query, corpus, 1)
    if counted is None:
        return FixedReport(b"")
    share, totals = counted
    device = share.device
    with device, text.times.of("traverse", device):
        if order is SortOrder.BY_COUNT:
            totals = totals.by_count(device)
        totals = totals.first(query.top) if query.top else totals
        size = totals.size_of_lines(device, share.word_sizes(corpus))
        rows = share.hold([totals.rows(device)])
    return _report(PostingsTask.SEQUENCE_COUNT, text, corpus, rows, size=size)


def resident_postings(task: PostingsTask, text: ResidentText, query: StatsQuery, ngram_length: int, top: int) -> Report:
    """Returns the text of a task, whose n-grams have `ngram_length` words. See postings_report.

    Its rows are in order on the device, and come to the host when their lines are read. Raises StatsUnavailableError,
    MemoryError, and OSError if the disk is full.
    """
    frequencies = text.frequencies() if task is PostingsTask.TFIDF else _NO_FREQUENCIES
    try:
        corpus = text.corpus(query, ngram_length)
        if task is PostingsTask.SEQUENCE_COUNT:
            report = _sequence_counts(text, query, corpus, ngram_length, top)
        else:
            rows = _count_rows(text, query, corpus, ngram_length, by_file=task in _BY_FILE)
            report = _report(task, text, corpus, rows, top, frequencies)
    except ValueError as error:
        raise unavailable(error) from None
    return first_lines(report, task, top)


def _sequence_counts(
    text: ResidentText, query: StatsQuery, corpus: _statistics.Corpus, ngram_length: int, top: int
) -> Report:
    try:
        counted = _count_totals(text, query, corpus, ngram_length)
        if counted is None:
            return FixedReport(b"")
        share, totals = counted
        with share.device as device, text.times.of("traverse", device):
            rows = share.hold([totals.by_count(device).rows(device)])
    except (MemoryError, StatsUnavailableError):
        postings = _add_on_host(text, query, corpus, ngram_length)
        return report_of_postings(PostingsTask.SEQUENCE_COUNT, corpus, postings, top, default_threads(), text.times)
    return _report(PostingsTask.SEQUENCE_COUNT, text, corpus, rows)


def _report(
    task: PostingsTask,
    text: ResidentText,
    corpus: _statistics.Corpus,
    rows: Sequence[DeviceRows],
    top: int = 0,
    frequencies: tuple[NDArray[np.uint32], int] = _NO_FREQUENCIES,
    size: int | None = None,
) -> Report:
    """Returns the text of rows, of `size` bytes if that is known. tf-idf needs ResidentText.frequencies."""
    times = text.times

    def lines(sources: list[tuple[Any, ...]], num_threads: int) -> list[bytes]:
        return _statistics.row_lines(corpus, task, top, *frequencies, sources, num_threads)

    with times.of("emit"):
        pieces = RowsText(rows, lines, by_key=task is not PostingsTask.SEQUENCE_COUNT, size=size)
    return PiecewiseReport(pieces, timed=lambda: times.of("emit"))


def _count_rows(
    text: ResidentText, query: StatsQuery, corpus: _statistics.Corpus, ngram_length: int, *, by_file: bool
) -> list[DeviceRows]:
    def count(counter: DeviceCounter, part: ResidentPart) -> Sequence[DeviceRows]:
        return part.share.hold(counter.rows(corpus, part, ngram_length, by_file=by_file))

    return [rows for of_device in text.count(query, count) for rows in of_device]


def _count_totals(
    text: ResidentText, query: StatsQuery, corpus: _statistics.Corpus, ngram_length: int
) -> tuple[ResidentShare, Totals] | None:
    """Returns the counts of all files together, and where they are. Several devices send theirs to the first."""

    def count(counter: DeviceCounter, part: ResidentPart) -> tuple[ResidentShare, Totals | None]:
        return part.share, counter.totals(corpus, part, ngram_length)

    counted = [(share, totals) for share, totals in text.count(query, count) if totals is not None]
    if not counted:
        return None
    (share, totals), *others = counted
    device = share.device
    all_totals = [totals, *(more.brought_from(device, other.device) for other, more in others)]
    with device, text.times.of("traverse", device):
        return share, add_totals(device, all_totals)


def _add_on_host(
    text: ResidentText, query: StatsQuery, corpus: _statistics.Corpus, ngram_length: int
) -> _statistics.Postings:
    """Returns the counts of all files together, for which a device has too little memory: the host adds up ranges."""
    postings = new_postings()
    text.count(query, lambda counter, part: counter.gather(postings, corpus, part, ngram_length, per_file=False))
    return postings


def resident_tfidf_of_file(text: ResidentText, query: StatsQuery) -> Report:
    """Returns the line of tf-idf for the query's file. The files of each word are counted once. Raises MemoryError."""
    files, num_files = text.frequencies()
    ((ranks, counts),) = text.count(query, lambda counter, part: counter.words_of_file(part, text.num_words))
    if not ranks.size:
        return FixedReport(b"")
    scores = [
        count * math.log(num_files / files_of_word)
        for count, files_of_word in zip(counts.tolist(), files[ranks].tolist(), strict=True)
    ]
    order = sorted(range(len(scores)), key=lambda index: -scores[index])[: query.top or DEFAULT_TOP_OF_TFIDF]
    fields = [b"%.3f %s" % (scores[index], text.word(int(ranks[index]))) for index in order]
    return FixedReport(b"\t".join([text.path_for(query), *fields]) + b"\n")


def resident_phrase(text: ResidentText, query: StatsQuery) -> Report:
    """Returns the lines `path<TAB>count` of the files with the words of the query in a row, at most MAX_PHRASE words.

    Raises MemoryError.
    """
    ranks = text.ranks_of(query.words)
    if ranks is None:
        return FixedReport(b"")
    counts = text.count_phrase(ranks)
    if query.ino is not None:
        number = text.number_of(query.ino)
        path = text.path_for(query)
        return FixedReport(b"%s\t%d\n" % (path, counts[number]) if number is not None and number in counts else b"")
    files = sorted(counts, key=lambda file: (-counts[file], file))[: query.top or None]
    return FixedReport(b"".join(b"%s\t%d\n" % (text.path_of(file), counts[file]) for file in files))


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
