"""The SQLite index of an archive: names, inodes, extents and the places of blocks."""

from __future__ import annotations

from gompfs.index.reader import IndexReader
from gompfs.index.writer import IndexWriter

__all__ = ["IndexReader", "IndexWriter"]
