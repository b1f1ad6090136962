"""Word count and sort: how often every word occurs (TADOC section 4)."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from gompfs import _grammar
from gompfs.grammar import Grammar


class SortOrder(Enum):
    """The order of a report's lines."""

    BY_COUNT = "count"
    """Most frequent first, equal ones in byte order of the words: the file `wordcount`."""
    BY_WORD = "word"
    """In byte order of the words: the file `sort`."""


def word_count_report(
    grammars: Sequence[Grammar],
    order: SortOrder,
    *,
    excluded_inos: Collection[int] = (),
    counted: Sequence[tuple[Grammar, NDArray[np.uint64]]] = (),
    num_threads: int = 0,
) -> bytes:
    """Lines `word<TAB>count` over all grammars together, without the files `excluded_inos`.

    `counted` are further dictionaries with the counts of their words.
    """
    num_threads = num_threads or len(os.sched_getaffinity(0))
    excluded = sorted(excluded_inos)
    everything = [(grammar, grammar.word_counts(excluded, num_threads)) for grammar in grammars]
    everything += counted
    return _grammar.word_count_report(
        [grammar.native for grammar, _ in everything],
        [counts for _, counts in everything],
        order is SortOrder.BY_COUNT,
    )
