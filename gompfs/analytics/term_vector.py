"""Term vector: the words of each file with their counts (TADOC section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs.analytics.report import Report
from gompfs.analytics.traversal import BY_DEFAULT, Task, Traversal, statistics_report
from gompfs.grammar import Grammar


def term_vector_report(
    grammars: Sequence[Grammar], paths: Mapping[int, bytes], *, top: int = 0, traversal: Traversal = BY_DEFAULT
) -> Report:
    """Lines `path<TAB>count word<TAB>count word...` in byte order of the paths, words by count descending, then word.

    `paths` says, by inode number, which files count and what they are called; files without words have no line.
    `top` above 0 is how many words a line lists. Raises what statistics_report raises.
    """
    return statistics_report(Task.TERM_VECTOR, grammars, paths, 1, top, traversal)
