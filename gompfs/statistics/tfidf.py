"""tf-idf: the words that are typical of each file. Not a task of TADOC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs._native.statistics import Task
from gompfs.grammar import Grammar
from gompfs.statistics.report import Report
from gompfs.statistics.traversal import BY_DEFAULT, Traversal, statistics_report

DEFAULT_TOP = 10


def tfidf_report(
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    *,
    top: int = DEFAULT_TOP,
    traversal: Traversal = BY_DEFAULT,
) -> Report:
    """Returns lines `path<TAB>score word<TAB>score word...` in byte order of the paths.

    The words of a line are sorted by descending score, then by word. The score of a word is its count in the file times
    ln(files that have words / files that have this word), with three decimals. A line lists at most `top` words (0:
    all). `paths` maps the inode numbers of the files to include to their paths. Raises the errors of statistics_report.
    """
    return statistics_report(Task.TFIDF, grammars, paths, 1, top, traversal)
