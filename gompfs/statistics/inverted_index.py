"""Inverted index: the files that contain each word (TADOC section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs._native.statistics import Task
from gompfs.grammar import Grammar
from gompfs.statistics.report import Report
from gompfs.statistics.traversal import BY_DEFAULT, Traversal, statistics_report


def inverted_index_report(
    grammars: Sequence[Grammar], paths: Mapping[int, bytes], *, top: int = 0, traversal: Traversal = BY_DEFAULT
) -> Report:
    """Returns lines `word<TAB>path<TAB>path...` for all grammars together; words and paths are in byte order.

    `paths` maps the inode numbers of the files to include to their paths. Paths are written as by `escape_path`. With
    `top` above 0, only the first `top` lines are returned. Raises the errors of statistics_report.
    """
    return statistics_report(Task.INVERTED_INDEX, grammars, paths, 1, top, traversal)
