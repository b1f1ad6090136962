"""The frame of an archive file: the superblock at its start, and headers, indexes and footers of its generations."""

from __future__ import annotations

from gompfs.codec import align
from gompfs.format.archive_file import ArchiveFile, LocalFile, for_native, read_range
from gompfs.format.chain import (
    Link,
    Newest,
    check_copies,
    check_newest_copies,
    find_newest,
    read_columns,
    read_copy,
    read_footer,
    walk_chain,
)
from gompfs.format.generation_header import GENERATION_HEADER_SIZE, GenerationHeader
from gompfs.format.index_blocks import decode_columns, encode_columns, least_stored_size
from gompfs.format.superblock import FORMAT_VERSION, SUPERBLOCK_MAGIC, SUPERBLOCK_SIZE, Superblock
from gompfs.format.trailer import FOOTER_SIZE, MAX_CHANGES, MAX_GENERATION, NUM_COPIES, Footer, TrailerPosition

__all__ = [
    "FOOTER_SIZE",
    "FORMAT_VERSION",
    "GENERATION_HEADER_SIZE",
    "MAX_CHANGES",
    "MAX_GENERATION",
    "NUM_COPIES",
    "SUPERBLOCK_MAGIC",
    "SUPERBLOCK_SIZE",
    "ArchiveFile",
    "Footer",
    "GenerationHeader",
    "Link",
    "LocalFile",
    "Newest",
    "Superblock",
    "TrailerPosition",
    "align",
    "check_copies",
    "check_newest_copies",
    "decode_columns",
    "encode_columns",
    "find_newest",
    "for_native",
    "least_stored_size",
    "read_columns",
    "read_copy",
    "read_footer",
    "read_range",
    "walk_chain",
]
