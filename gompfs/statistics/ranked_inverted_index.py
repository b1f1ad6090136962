"""Ranked inverted index: the files that contain each n-gram of words, by count (TADOC section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs._native.statistics import Task
from gompfs.grammar import Grammar
from gompfs.statistics.report import Report
from gompfs.statistics.traversal import BY_DEFAULT, Traversal, statistics_report


def ranked_inverted_index_report(
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    *,
    num_words: int = 3,
    top: int = 0,
    traversal: Traversal = BY_DEFAULT,
) -> Report:
    """Returns lines `w1 w2 w3<TAB>count path<TAB>count path...` in byte order of the n-grams.

    The files of a line are sorted by descending count, then by path. `paths` maps the inode numbers of the files to
    include to their paths. An n-gram has `num_words` words, 1 to 5. With `top` above 0, a line lists at most `top`
    files. Raises the errors of statistics_report.
    """
    return statistics_report(Task.RANKED_INVERTED_INDEX, grammars, paths, num_words, top, traversal)
