"""Reading many files, or ranges of them, into one array of bytes, in host memory or in that of a GPU."""

from __future__ import annotations

from gompfs.arrays.reader import ArrayReader
from gompfs.arrays.result import Arrays

__all__ = ["ArrayReader", "Arrays"]
