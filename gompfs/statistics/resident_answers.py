"""The statistics of a ResidentText: the same bytes as those that the CPU computes from the archive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import PostingsTask
from gompfs.errors import StatsUnavailableError
from gompfs.grammar import CountedWords
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
from gompfs.statistics.resident_text import ResidentPart, ResidentShare, ResidentText, add_arrays
from gompfs.statistics.word_counts import SortOrder, word_count_report
from gompfs.threads import default_threads

_BY_FILE = (PostingsTask.TERM_VECTOR, PostingsTask.TFIDF)  # each file has a line


def resident_word_counts(order: SortOrder, text: ResidentText, query: StatsQuery) -> Report:
    """Returns the lines `word<TAB>count` for a query. Raises MemoryError."""
    if query.ino is None:
        counts = add_arrays(text.count(query, lambda counter, part: counter.word_counts(part, text.num_words)))
        counted = [CountedWords(*words) for words in text.grammars_with_counts(counts)]
        return word_count_report(counted, order, top=query.top)
    ((ranks, counts),) = text.count(query, lambda counter, part: counter.words_of_file(part, text.num_words))
    if order is SortOrder.BY_COUNT:
        by_count = np.argsort(-counts.astype(np.int64), kind="stable")
        ranks, counts = ranks[by_count], counts[by_count]
    shown = slice(query.top or None)
    return FixedReport(text.corpus(query, 1).lines(ranks[shown].astype(np.uint32), counts[shown]))


def resident_postings(task: PostingsTask, text: ResidentText, query: StatsQuery, ngram_length: int, top: int) -> Report:
    """Returns the text of a task, whose n-grams have `ngram_length` words. See postings_report.

    Its rows are in order on the device, and come to the host when their lines are read. Raises StatsUnavailableError,
    MemoryError, and OSError if the disk is full.
    """
    files, num_files = text.frequencies() if task is PostingsTask.TFIDF else (np.zeros(0, np.uint32), 0)
    is_total = task is PostingsTask.SEQUENCE_COUNT
    num_threads, times = default_threads(), text.times
    try:
        corpus = text.corpus(query, ngram_length)
        count = _count_totals if is_total else partial(_count_rows, by_file=task in _BY_FILE)
        try:
            rows = count(text, query, corpus, ngram_length)
        except (MemoryError, StatsUnavailableError):
            if not is_total:
                raise
            postings = _add_on_host(text, query, corpus, ngram_length)
            return report_of_postings(task, corpus, postings, top, num_threads, times)
    except ValueError as error:
        raise unavailable(error) from None

    def lines(sources: list[tuple[Any, ...]], num_threads: int) -> list[bytes]:
        return _statistics.row_lines(corpus, task, top, files, num_files, sources, num_threads)

    with times.of("emit"):
        pieces = RowsText(rows, lines, by_key=not is_total)
    return first_lines(PiecewiseReport(pieces, num_threads, timed=lambda: times.of("emit")), task, top)


def _count_rows(
    text: ResidentText, query: StatsQuery, corpus: _statistics.Corpus, ngram_length: int, *, by_file: bool
) -> list[DeviceRows]:
    def count(counter: DeviceCounter, part: ResidentPart) -> Sequence[DeviceRows]:
        return part.share.hold(counter.rows(corpus, part, ngram_length, by_file=by_file))

    return [rows for of_device in text.count(query, count) for rows in of_device]


def _count_totals(
    text: ResidentText, query: StatsQuery, corpus: _statistics.Corpus, ngram_length: int
) -> list[DeviceRows]:
    """Several devices send their counts to the first."""

    def count(counter: DeviceCounter, part: ResidentPart) -> tuple[ResidentShare, Totals | None]:
        return part.share, counter.totals(corpus, part, ngram_length)

    counted = [(share, totals) for share, totals in text.count(query, count) if totals is not None]
    if not counted:
        return []
    (share, totals), *others = counted
    device = share.device
    all_totals = [totals, *(more.brought_from(device, other.device) for other, more in others)]
    with device, text.times.of("traverse", device):
        rows = add_totals(device, all_totals).by_count(device)
    return list(share.hold([rows]))


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
