"""Term vector: the words of each file with their counts (TADOC section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs._native.statistics import Task
from gompfs.grammar import Grammar
from gompfs.statistics.report import Report
from gompfs.statistics.traversal import BY_DEFAULT, Traversal, statistics_report


def term_vector_report(
    grammars: Sequence[Grammar], paths: Mapping[int, bytes], *, top: int = 0, traversal: Traversal = BY_DEFAULT
) -> Report:
    """Returns lines `path<TAB>count word<TAB>count word...` in byte order of the paths.

    The words of a line are sorted by descending count, then by word. `paths` maps the inode numbers of the files to
    include to their paths. Files without words have no line. With `top` above 0, a line lists at most `top` words.
    Raises the errors of statistics_report.
    """
    return statistics_report(Task.TERM_VECTOR, grammars, paths, 1, top, traversal)
