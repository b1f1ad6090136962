"""Packing: the sources of entries, and the pipeline that writes them to an archive."""

from __future__ import annotations

from gompfs.pack.packer import PackProgress, PackReport, add_to_archive, pack_archive
from gompfs.pack.paths import check_target, pack_paths
from gompfs.pack.remove import remove_from_archive
from gompfs.pack.sources import open_source, open_sources

__all__ = [
    "PackProgress",
    "PackReport",
    "add_to_archive",
    "check_target",
    "open_source",
    "open_sources",
    "pack_archive",
    "pack_paths",
    "remove_from_archive",
]
