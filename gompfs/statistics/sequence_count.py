"""Sequence count: how often each n-gram of words occurs (TADOC section 4, G-TADOC section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs._native.statistics import Task
from gompfs.grammar import Grammar
from gompfs.statistics.report import Report
from gompfs.statistics.traversal import BY_DEFAULT, Traversal, statistics_report


def sequence_count_report(
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    *,
    num_words: int = 3,
    top: int = 0,
    traversal: Traversal = BY_DEFAULT,
) -> Report:
    """Returns lines `w1 w2 w3<TAB>count` by descending count, then in byte order.

    Counts every occurrence of `num_words` words (1 to 5) in a row, in the files whose inode numbers are in `paths`. An
    n-gram never spans two files. With `top` above 0, only the first `top` lines are returned. Raises the errors of
    statistics_report.
    """
    return statistics_report(Task.SEQUENCE_COUNT, grammars, paths, num_words, top, traversal)
