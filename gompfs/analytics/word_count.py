"""Word count and sort: how often every word occurs (TADOC section 4)."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from enum import Enum

from gompfs import _grammar
from gompfs.grammar import Grammar


class SortOrder(Enum):
    """The order of a report's lines."""

    BY_COUNT = "count"
    """Most frequent first, equal ones in byte order of the words: the file `wordcount`."""
    BY_WORD = "word"
    """In byte order of the words: the file `sort`."""


def word_count_report(
    grammars: Sequence[Grammar], order: SortOrder, *, excluded_inos: Collection[int] = (), num_threads: int = 0
) -> bytes:
    """Lines `word<TAB>count` over all grammars together, without the files `excluded_inos`."""
    num_threads = num_threads or len(os.sched_getaffinity(0))
    excluded = sorted(excluded_inos)
    counts = [grammar.word_counts(excluded, num_threads) for grammar in grammars]
    return _grammar.word_count_report(
        [grammar.native for grammar in grammars], counts, order is SortOrder.BY_COUNT
    )
