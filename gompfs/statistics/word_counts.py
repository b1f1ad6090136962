"""Word count and sort: how often each word occurs (TADOC section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from gompfs._native import statistics as _statistics
from gompfs.errors import StatsUnavailableError
from gompfs.statistics.grammar_cache import has_text_parts
from gompfs.statistics.report import PiecewiseReport, Report
from gompfs.statistics.traversal import Traversal
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from gompfs.statistics.query import StatsQuery
    from gompfs.statistics.source import StatsSource
    from gompfs.text.grammar import CountedWords


class SortOrder(Enum):
    """The order of the lines."""

    BY_COUNT = "count"
    """By descending count, words of equal count in byte order: the task `wordcount`."""
    BY_WORD = "word"
    """In byte order of the words: the task `sort`."""


def word_counts(order: SortOrder, source: StatsSource, query: StatsQuery) -> Report:
    """Returns the lines `word<TAB>count` for a query."""
    # A device only if the user asked for it: otherwise the CPU counts while it reads.
    how = source.traversal(0)
    segments = source.archive.segments
    if how.device is None and len(segments) == 1 and has_text_parts(segments[0]):
        return _count_parts(order, source, query)
    return word_count_report(_count_grammars(source, query, how), order, top=query.top)


def _count_parts(order: SortOrder, source: StatsSource, query: StatsQuery) -> Report:
    """Counts the words of the only segment, whose text is stored in parts, without making its grammar."""
    from gompfs.statistics.text_in_parts import text_in_parts

    text = text_in_parts(source.archive, source.archive.segments[0])
    inos = None
    if query.ino is not None:
        from gompfs.text.grammar import ino_array

        inos = ino_array(source.counted_inos(query))
    num_threads = default_threads()
    try:
        native = _statistics.parts_word_count_report(
            *text.arguments(), inos, order is SortOrder.BY_COUNT, query.top, num_threads
        )
    except ValueError as error:
        raise text.damaged(error) from None
    return PiecewiseReport(native, num_threads)


def _count_grammars(source: StatsSource, query: StatsQuery, how: Traversal) -> list[CountedWords]:
    from gompfs.statistics.content_words import content_word_counts
    from gompfs.text.grammar import CountedWords

    inos = source.counted_inos(query)
    grammars = source.grammars()
    content = source.content(query)
    if how.device is None:
        counted = [CountedWords(grammar, grammar.word_counts(inos)) for grammar in grammars]
    else:
        from gompfs.statistics.gpu.device_counter import count_words

        counted = [count_words(grammar, how, inos) for grammar in grammars]
    counted += [CountedWords(*words) for words in content_word_counts(content)]
    source.check_is_text(content, query)
    return counted


def word_count_report(
    counted: Sequence[CountedWords], order: SortOrder, *, top: int = 0, num_threads: int = 0
) -> PiecewiseReport:
    """Returns lines `word<TAB>count` of all words together. With `top` above 0, only the first `top` lines.

    Needs 12 bytes of memory per word in addition to `counted`. Raises StatsUnavailableError if the counts cannot be
    computed.
    """
    num_threads = num_threads or default_threads()
    grammars = [each.grammar.native for each in counted]
    counts = [each.counts for each in counted]
    try:
        native = _statistics.word_count_report(grammars, counts, order is SortOrder.BY_COUNT, top, num_threads)
    except ValueError as error:
        raise StatsUnavailableError(f"these statistics cannot be computed: {error}") from None
    return PiecewiseReport(native, num_threads)
