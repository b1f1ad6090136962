"""Inverted index: which files hold a word (TADOC section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs.analytics.report import Report
from gompfs.analytics.traversal import BY_DEFAULT, Task, Traversal, statistics_report
from gompfs.grammar import Grammar


def inverted_index_report(
    grammars: Sequence[Grammar], paths: Mapping[int, bytes], *, top: int = 0, traversal: Traversal = BY_DEFAULT
) -> Report:
    """Lines `word<TAB>path<TAB>path...` of all grammars together, words and paths in byte order.

    `paths` says, by inode number, which files count and what they are called; `escape_path` says how paths are
    written. `top` above 0 keeps the first lines only. Raises what statistics_report raises.
    """
    return statistics_report(Task.INVERTED_INDEX, grammars, paths, 1, top, traversal)
