"""The frame of an archive file: superblock at its start, index and footers at the end of each generation.

`footer` and `walk` are of format version 1, `trailer`, `generation_header` and `index_blocks` of version 2.
"""

from __future__ import annotations

from gompfs.codec import align
from gompfs.format.archive_file import ArchiveFile, LocalFile, for_native
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
from gompfs.format.generation_header import GENERATION_HEADER_SIZE, GenerationHeader
from gompfs.format.index_blocks import decode_image, encode_image
from gompfs.format.superblock import SUPERBLOCK_MAGIC, SUPERBLOCK_SIZE, Superblock
from gompfs.format.trailer import NUM_COPIES, TRAILER_FOOTER_SIZE, TrailerFooter, TrailerPosition
from gompfs.format.walk import ArchiveWalk, WalkedGeneration, database_size, ends_in_block

__all__ = [
    "FOOTER_SIZE",
    "GENERATION_HEADER_SIZE",
    "INDEX_ALIGNMENT",
    "NUM_COPIES",
    "SUPERBLOCK_MAGIC",
    "SUPERBLOCK_SIZE",
    "TRAILER_FOOTER_SIZE",
    "ArchiveFile",
    "ArchiveWalk",
    "Footer",
    "GenerationHeader",
    "LocalFile",
    "Superblock",
    "TrailerFooter",
    "TrailerPosition",
    "WalkedGeneration",
    "align",
    "check_earlier_footers",
    "check_index",
    "database_size",
    "decode_image",
    "encode_image",
    "ends_in_block",
    "footer_at",
    "for_native",
    "last_footer",
    "read_image",
    "read_index",
]
