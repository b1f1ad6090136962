"""Word count and sort: how often each word occurs (TADOC section 4)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum

from gompfs._native import statistics as _statistics
from gompfs.errors import StatsUnavailableError
from gompfs.grammar import CountedWords, Grammar
from gompfs.statistics.report import PiecewiseReport


class SortOrder(Enum):
    """The order of a report's lines."""

    BY_COUNT = "count"
    """By descending count, words of equal count in byte order: the file `wordcount`."""
    BY_WORD = "word"
    """In byte order of the words: the file `sort`."""


def word_count_report(
    sources: Sequence[CountedWords], order: SortOrder, *, top: int = 0, num_threads: int = 0
) -> PiecewiseReport:
    """Returns lines `word<TAB>count` for all sources together. With `top` above 0, only the first `top` lines.

    Needs 12 bytes of memory per word in addition to the sources. Raises StatsUnavailableError if the counts cannot be
    computed.
    """
    num_threads = num_threads or len(os.sched_getaffinity(0))
    words = [source.native if isinstance(source, Grammar) else source for source, _ in sources]
    counts = [source.counts for source in sources]
    try:
        native = _statistics.word_count_report(words, counts, order is SortOrder.BY_COUNT, top, num_threads)
    except ValueError as error:
        raise StatsUnavailableError(f"these statistics cannot be computed: {error}") from None
    return PiecewiseReport(native, num_threads)
