"""Reading archives: entries, file contents, sections, verification, extraction."""

from __future__ import annotations

from gompfs.archive.archive import Archive
from gompfs.archive.block_service import DEFAULT_CACHE_SIZE
from gompfs.archive.text import ContentText, text_without_grammar

__all__ = ["DEFAULT_CACHE_SIZE", "Archive", "ContentText", "text_without_grammar"]
