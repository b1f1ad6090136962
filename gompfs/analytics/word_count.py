"""Word count and sort: how often every word occurs (TADOC section 4)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from enum import Enum

from gompfs import _grammar
from gompfs.grammar import NO_RULES, Grammar


class SortOrder(Enum):
    """The order of a report's lines."""

    BY_COUNT = "count"
    """Most frequent first, equal ones in byte order of the words: the file `wordcount`."""
    BY_WORD = "word"
    """In byte order of the words: the file `sort`."""


def word_count_report(
    grammars: Iterable[Grammar], order: SortOrder, *, excluded_inos: Collection[int] = (), num_threads: int = 0
) -> bytes:
    """Lines `word<TAB>count` over all grammars together, without the files `excluded_inos`.

    Grammars without rules are counted as they come, and keep no more than their dictionary.
    """
    num_threads = num_threads or len(os.sched_getaffinity(0))
    excluded = sorted(excluded_inos)
    natives, counts = [], []
    for grammar in grammars:
        counts.append(grammar.word_counts(excluded, num_threads))
        natives.append(grammar.native)
        if grammar.builder == NO_RULES:
            grammar.drop_parts()
    return _grammar.word_count_report(natives, counts, order is SortOrder.BY_COUNT)
