"""Ranked inverted index: which files hold a sequence of words, by count (TADOC section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs.analytics.report import Report
from gompfs.analytics.traversal import BY_DEFAULT, Task, Traversal, statistics_report
from gompfs.grammar import Grammar


def ranked_inverted_index_report(
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    *,
    num_words: int = 3,
    top: int = 0,
    traversal: Traversal = BY_DEFAULT,
) -> Report:
    """Lines `w1 w2 w3<TAB>count path<TAB>count path...` in byte order, the files by count descending, then path.

    `paths` says, by inode number, which files count and what they are called. A sequence has `num_words` words, 1 to
    5. `top` above 0 is how many files a line lists. Raises what statistics_report raises.
    """
    return statistics_report(Task.RANKED_INVERTED_INDEX, grammars, paths, num_words, top, traversal)
