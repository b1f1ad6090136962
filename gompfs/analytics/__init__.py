"""The analytics of TADOC, computed on grammars; each task is a module."""

from __future__ import annotations

from gompfs.analytics.word_count import SortOrder, word_count_report

__all__ = ["SortOrder", "word_count_report"]
