"""Reading archives: entries, contents of files, blocks and sections; extraction.

The modules that need NumPy (`index_arrays`, `staged_blocks`, `text_on_device`) are not imported here: plain reading
does without.
"""

from __future__ import annotations

from gompfs.archive.archive import Archive
from gompfs.archive.block_service import DEFAULT_CACHE_SIZE

__all__ = ["DEFAULT_CACHE_SIZE", "Archive"]
