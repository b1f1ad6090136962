"""Searches the files of an archive for patterns, as ripgrep searches a tree. The work is done in native/search."""

from __future__ import annotations

from gompfs.search.matches import LineMatch, line_matches
from gompfs.search.query import Colors, Order, Output, SearchQuery, Separators
from gompfs.search.search import ArchiveSearch, SearchTotals

__all__ = [
    "ArchiveSearch",
    "Colors",
    "LineMatch",
    "Order",
    "Output",
    "SearchQuery",
    "SearchTotals",
    "Separators",
    "line_matches",
]
