"""Finds the newest generation of an archive. The content of packed files cannot mislead the search.

`survey` does so for format version 1, `chain` for version 2.
"""

from __future__ import annotations

from gompfs.generations.generation import Newest
from gompfs.generations.newest import check_generations, check_newest, find_newest, read_image

__all__ = ["Newest", "check_generations", "check_newest", "find_newest", "read_image"]
