"""Searches for a word or a phrase, and the words of a file. None of them computes statistics of all words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gompfs._native import statistics as _statistics
from gompfs.errors import OptionError, StatsUnavailableError
from gompfs.statistics.paths import files_in_order
from gompfs.statistics.query import MAX_NGRAM_LENGTH, StatsQuery
from gompfs.statistics.report import FixedReport, PiecewiseReport, Report

if TYPE_CHECKING:
    from gompfs.grammar import Grammar
    from gompfs.statistics.source import StatsSource

_END = (1 << 64) - 1  # larger than the number of words in any file


def search(source: StatsSource, query: StatsQuery) -> Report:
    """Returns the lines `path<TAB>count` of the files that contain the words of the query in a row."""
    grammars, paths = source.grammars_and_paths(query)
    return _search_report(grammars, paths, query.words, query.top)


def _search_report(
    grammars: Sequence[Grammar], paths: Mapping[int, bytes], words: Sequence[bytes], top: int
) -> Report:
    """Returns the files by descending count, then by path; with `top` above 0, only the first `top` lines.

    Each rule is visited once; no text is expanded. Raises OptionError for more than 5 words, and StatsUnavailableError
    if a grammar is damaged or too large.
    """
    if not 1 <= len(words) <= MAX_NGRAM_LENGTH:
        raise OptionError(f"a phrase has 1 to {MAX_NGRAM_LENGTH} words, not {len(words)}")
    files = files_in_order(paths)
    try:
        corpus = _statistics.Corpus([grammar.native for grammar in grammars], files, len(words))
        found = corpus.find_ngram(list(words), len(os.sched_getaffinity(0)))
    except ValueError as error:
        raise StatsUnavailableError(f"the search failed: {error}") from None
    ranked = sorted(found, key=lambda item: (-item[1], item[0]))[: top or None]
    return FixedReport(b"".join(b"%s\t%d\n" % (files[file][1], count) for file, count in ranked))


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
