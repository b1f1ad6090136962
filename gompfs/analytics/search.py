"""Where words are, and what stands at a place: questions that need no table of all answers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from gompfs import _grammar
from gompfs.analytics.report import FixedReport, PiecewiseReport, Report
from gompfs.analytics.traversal import MAX_WORDS, files_in_order
from gompfs.errors import OptionError, StatsUnavailableError
from gompfs.grammar import Grammar

END = (1 << 64) - 1
"""Behind the last word of any file."""


def phrase_report(
    grammars: Sequence[Grammar], paths: Mapping[int, bytes], words: Sequence[bytes], *, top: int = 0
) -> Report:
    """Lines `path<TAB>count` of the files that have these words in a row, by count descending, then path.

    There are 1 to 5 words. `paths` says, by inode number, which files count. `top` above 0 keeps the first lines only.
    Each rule is visited once; no text is expanded. Raises OptionError, StatsUnavailableError.
    """
    if not 1 <= len(words) <= MAX_WORDS:
        raise OptionError(f"a phrase of {len(words)} words; there are those of 1 to {MAX_WORDS}")
    files = files_in_order(paths)
    try:
        corpus = _grammar.Corpus([grammar.native for grammar in grammars], files, len(words))
        found = corpus.find_ngram(list(words), len(os.sched_getaffinity(0)))
    except ValueError as error:
        raise StatsUnavailableError(f"this cannot be searched for: {error}") from None
    ranked = sorted(found, key=lambda item: (-item[1], item[0]))[: top or None]
    return FixedReport(b"".join(b"%s\t%d\n" % (files[file][1], count) for file, count in ranked))


def words_report(grammars: Sequence[Grammar], ino: int, begin: int = 0, end: int = END) -> Report:
    """The words of a file from number `begin` up to `end`, one a line, from the grammar alone (TADOC: random access).

    What is before `begin` is not expanded: rules know how many words they stand for. Where the file has fewer words,
    the report does.
    """
    return PiecewiseReport(_grammar.words_report([grammar.native for grammar in grammars], ino, begin, max(begin, end)))
