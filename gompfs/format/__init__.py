"""The frame of an archive file: superblock at its start, footer at the end of each generation (docs/format.md)."""

from __future__ import annotations

from gompfs.format.archive_file import ArchiveFile, LocalFile
from gompfs.format.footer import (
    FOOTER_SIZE,
    INDEX_ALIGNMENT,
    Footer,
    check_earlier_footers,
    check_index,
    footer_at,
    last_footer,
    read_image,
    read_index,
)
from gompfs.format.superblock import FORMAT_VERSION, SUPERBLOCK_MAGIC, SUPERBLOCK_SIZE, Superblock
from gompfs.format.walk import ArchiveWalk, WalkedGeneration, align, database_size, ends_in_block

__all__ = [
    "FOOTER_SIZE",
    "FORMAT_VERSION",
    "INDEX_ALIGNMENT",
    "SUPERBLOCK_MAGIC",
    "SUPERBLOCK_SIZE",
    "ArchiveFile",
    "ArchiveWalk",
    "Footer",
    "LocalFile",
    "Superblock",
    "WalkedGeneration",
    "align",
    "check_earlier_footers",
    "check_index",
    "database_size",
    "ends_in_block",
    "footer_at",
    "last_footer",
    "read_image",
    "read_index",
]
