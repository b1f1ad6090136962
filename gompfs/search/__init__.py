"""Searches the files of an archive for patterns, as ripgrep searches a tree. The work is done in native/search."""

from __future__ import annotations

from gompfs.search.matches import LineMatch, line_matches
from gompfs.search.query import Output, SearchQuery
from gompfs.search.search import ArchiveSearch, SearchTotals

__all__ = ["ArchiveSearch", "LineMatch", "Output", "SearchQuery", "SearchTotals", "line_matches"]
