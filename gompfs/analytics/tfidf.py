"""tf-idf: the words that tell each file from the others; it is not among the tasks of TADOC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs.analytics.report import Report
from gompfs.analytics.traversal import BY_DEFAULT, Task, Traversal, statistics_report
from gompfs.grammar import Grammar

DEFAULT_TOP = 10


def tfidf_report(
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    *,
    top: int = DEFAULT_TOP,
    traversal: Traversal = BY_DEFAULT,
) -> Report:
    """Lines `path<TAB>score word<TAB>score word...` in byte order of the paths, words by score descending, then word.

    The score of a word is its count in the file times ln(files that have words / files that have this word), written
    with three decimals. A line has `top` words, all for 0. `paths` says, by inode number, which files there are. Raises
    what statistics_report raises.
    """
    return statistics_report(Task.TFIDF, grammars, paths, 1, top, traversal)
