"""The analytics of TADOC and a few more, computed on grammars. Each task is a module."""

from __future__ import annotations

from gompfs._native.statistics import Direction
from gompfs.statistics.inverted_index import inverted_index_report
from gompfs.statistics.ranked_inverted_index import ranked_inverted_index_report
from gompfs.statistics.records import records
from gompfs.statistics.report import FixedReport, PiecewiseReport, Report
from gompfs.statistics.search import END, phrase_report, words_report
from gompfs.statistics.sequence_count import sequence_count_report
from gompfs.statistics.term_vector import term_vector_report
from gompfs.statistics.tfidf import DEFAULT_TOP, tfidf_report
from gompfs.statistics.traversal import (
    MAX_WORDS,
    PhaseTimes,
    Traversal,
    check_memory,
    escape_path,
    unescape_path,
)
from gompfs.statistics.word_count import SortOrder, word_count_report

__all__ = [
    "DEFAULT_TOP",
    "END",
    "MAX_WORDS",
    "Direction",
    "FixedReport",
    "PhaseTimes",
    "PiecewiseReport",
    "Report",
    "SortOrder",
    "Traversal",
    "check_memory",
    "escape_path",
    "inverted_index_report",
    "phrase_report",
    "ranked_inverted_index_report",
    "records",
    "sequence_count_report",
    "term_vector_report",
    "tfidf_report",
    "unescape_path",
    "word_count_report",
    "words_report",
]
