"""Sources of entries: directories, files, tar and zip archives, a tar on standard input."""

from __future__ import annotations

from gompfs.pack.sources.base import Source, SourceEntry
from gompfs.pack.sources.exclude import ExcludeRules
from gompfs.pack.sources.factory import open_source, open_sources

__all__ = ["ExcludeRules", "Source", "SourceEntry", "open_source", "open_sources"]
