"""The words of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gompfs._native import statistics as _statistics
from gompfs.errors import OptionError
from gompfs.statistics.report import PiecewiseReport, Report

if TYPE_CHECKING:
    from gompfs.statistics.query import StatsQuery
    from gompfs.statistics.source import StatsSource

_END = (1 << 64) - 1  # larger than the number of words in any file


def words_of_file(source: StatsSource, query: StatsQuery) -> Report:
    """Returns the words of the query's file from index `begin` up to `end`, one per line (TADOC: random access).

    Only the grammar is read. Text before `begin` is not expanded, since each rule knows how many words it stands for.
    If the file has fewer words, the report ends with the file.
    """
    if query.ino is None:
        raise OptionError("words needs a file")
    grammars, _ = source.grammars_and_paths(query)
    end = _END if query.end is None else query.end
    native = [grammar.native for grammar in grammars]
    return PiecewiseReport(_statistics.words_report(native, query.ino, query.begin, max(query.begin, end)))
