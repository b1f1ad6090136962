"""Sequence count: how often words follow each other (TADOC section 4, G-TADOC section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs.analytics.report import Report
from gompfs.analytics.traversal import BY_DEFAULT, Task, Traversal, statistics_report
from gompfs.grammar import Grammar


def sequence_count_report(
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    *,
    num_words: int = 3,
    top: int = 0,
    traversal: Traversal = BY_DEFAULT,
) -> Report:
    """Lines `w1 w2 w3<TAB>count` by count descending, then in byte order.

    Counted is every place in the files `paths` (by inode number) where `num_words` words, 1 to 5, stand in a row; none
    reaches over the end of a file. `top` above 0 keeps the first lines only. Raises what statistics_report raises.
    """
    return statistics_report(Task.SEQUENCE_COUNT, grammars, paths, num_words, top, traversal)
