"""Word count and sort: how often every word occurs (TADOC section 4)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum

from gompfs import _grammar
from gompfs.analytics.report import PiecewiseReport
from gompfs.errors import StatsUnavailableError
from gompfs.grammar import CountedWords, Grammar


class SortOrder(Enum):
    """The order of a report's lines."""

    BY_COUNT = "count"
    """Most frequent first, equal ones in byte order of the words: the file `wordcount`."""
    BY_WORD = "word"
    """In byte order of the words: the file `sort`."""


def word_count_report(
    sources: Sequence[CountedWords], order: SortOrder, *, top: int = 0, num_threads: int = 0
) -> PiecewiseReport:
    """Lines `word<TAB>count` over all sources together; `top` above 0 keeps the first lines only.

    Memory beside the sources: 12 bytes for each word. Raises StatsUnavailableError.
    """
    num_threads = num_threads or len(os.sched_getaffinity(0))
    words = [source.native if isinstance(source, Grammar) else source for source, _ in sources]
    counts = [source.counts for source in sources]
    try:
        native = _grammar.word_count_report(words, counts, order is SortOrder.BY_COUNT, top, num_threads)
    except ValueError as error:
        raise StatsUnavailableError(f"these statistics cannot be computed: {error}") from None
    return PiecewiseReport(native, num_threads)
