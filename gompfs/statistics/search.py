"""Searches for a phrase, and reads the words of a file. Neither computes statistics of all words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from gompfs._native import statistics as _statistics
from gompfs.errors import OptionError, StatsUnavailableError
from gompfs.grammar import Grammar
from gompfs.statistics.report import FixedReport, PiecewiseReport, Report
from gompfs.statistics.traversal import MAX_WORDS, files_in_order

END = (1 << 64) - 1
"""Larger than the number of words in any file."""


def phrase_report(
    grammars: Sequence[Grammar], paths: Mapping[int, bytes], words: Sequence[bytes], *, top: int = 0
) -> Report:
    """Returns lines `path<TAB>count` of the files that contain these words in a row, by descending count, then by path.

    There are 1 to 5 words. `paths` maps the inode numbers of the files to include to their paths. With `top` above 0,
    only the first `top` lines are returned. Each rule is visited once; no text is expanded.

    Raises OptionError for any other number of words, and StatsUnavailableError if a grammar is damaged or too large.
    """
    if not 1 <= len(words) <= MAX_WORDS:
        raise OptionError(f"a phrase has 1 to {MAX_WORDS} words, not {len(words)}")
    files = files_in_order(paths)
    try:
        corpus = _statistics.Corpus([grammar.native for grammar in grammars], files, len(words))
        found = corpus.find_ngram(list(words), len(os.sched_getaffinity(0)))
    except ValueError as error:
        raise StatsUnavailableError(f"the search failed: {error}") from None
    ranked = sorted(found, key=lambda item: (-item[1], item[0]))[: top or None]
    return FixedReport(b"".join(b"%s\t%d\n" % (files[file][1], count) for file, count in ranked))


def words_report(grammars: Sequence[Grammar], ino: int, begin: int = 0, end: int = END) -> Report:
    """Returns the words of a file from number `begin` up to `end`, exclusive, one per line (TADOC: random access).

    Only the grammar is read. Text before `begin` is not expanded, since each rule knows how many words it stands for.
    If the file has fewer words, the report ends with the file.
    """
    native = [grammar.native for grammar in grammars]
    return PiecewiseReport(_statistics.words_report(native, ino, begin, max(begin, end)))
