"""The frame of an archive file: superblock in front, footer at the end (docs/format.md)."""

from __future__ import annotations

from gompfs.format.archive_file import ArchiveFile, LocalFile
from gompfs.format.footer import FOOTER_SIZE, INDEX_ALIGNMENT, Footer, check_earlier_footers, find_footer, read_index
from gompfs.format.superblock import FORMAT_VERSION, SUPERBLOCK_SIZE, Superblock

__all__ = [
    "FOOTER_SIZE",
    "FORMAT_VERSION",
    "INDEX_ALIGNMENT",
    "SUPERBLOCK_SIZE",
    "ArchiveFile",
    "Footer",
    "LocalFile",
    "Superblock",
    "check_earlier_footers",
    "find_footer",
    "read_index",
]
