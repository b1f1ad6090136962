"""Codecs and blocks: the layout of one block in an archive, and the options of an encoder."""

from __future__ import annotations

from gompfs.codec.block import (
    BLOCK_ALIGNMENT,
    BlockHeader,
    BlockStatus,
    EncodedBlock,
    align,
    parse_block_header,
)
from gompfs.codec.codecs import (
    DEFAULT_BLOCK_SIZE,
    DEFAULT_LEVEL,
    DEFAULT_PART_SIZE,
    MAX_PART_SIZE,
    MIN_BLOCK_SIZE,
    MIN_LEVEL,
    Codec,
    CodecOptions,
)
from gompfs.codec.constants import BLOCK_HEADER_SIZE, MAX_BLOCK_SIZE, MAX_EXPANSION

__all__ = [
    "BLOCK_ALIGNMENT",
    "BLOCK_HEADER_SIZE",
    "DEFAULT_BLOCK_SIZE",
    "DEFAULT_LEVEL",
    "DEFAULT_PART_SIZE",
    "MAX_BLOCK_SIZE",
    "MAX_EXPANSION",
    "MAX_PART_SIZE",
    "MIN_BLOCK_SIZE",
    "MIN_LEVEL",
    "BlockHeader",
    "BlockStatus",
    "Codec",
    "CodecOptions",
    "EncodedBlock",
    "align",
    "parse_block_header",
]
