"""Reading archives: entries, file contents, sections, verification, extraction.

The modules that compute with arrays (`text`, `verify`, `arrays`) are not imported here: plain reading needs no NumPy.
"""

from __future__ import annotations

from gompfs.archive.archive import Archive
from gompfs.archive.block_service import DEFAULT_CACHE_SIZE

__all__ = ["DEFAULT_CACHE_SIZE", "Archive"]
