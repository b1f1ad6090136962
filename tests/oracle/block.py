"""Blocks: a header of 32 bytes, then the payload of a codec (docs/format.md)."""

from __future__ import annotations

import struct

from xxhash import xxh3_64, xxh3_64_intdigest

from gompfs.codec import BLOCK_HEADER_SIZE, BlockHeader, BlockStatus, Codec, EncodedBlock, parse_block_header
from gompfs.codec.block import Buffer
from gompfs.errors import ArchiveFormatError

_FIELDS = struct.Struct("<4sB3sIIQ")


def build_block(codec: Codec, payload: Buffer, uncompressed: Buffer) -> EncodedBlock:
    """Returns a block with this payload, which decodes to `uncompressed`."""
    fields = _FIELDS.pack(b"GBLK", codec, bytes(3), len(payload), len(uncompressed), xxh3_64_intdigest(uncompressed))
    checksum = xxh3_64_intdigest(b"".join((fields, payload))).to_bytes(8, "little")
    return EncodedBlock(b"".join((fields, checksum, payload)), codec, len(uncompressed))


def check_block(block: Buffer) -> tuple[BlockHeader | None, BlockStatus]:
    """Parses the header of a whole block and compares the block with its block_xxh3, before a decoder reads it.

    Returns the header (None if it is invalid) and the status: OK, BAD_HEADER or BAD_CHECKSUM.
    """
    try:
        header = parse_block_header(block)
    except ArchiveFormatError:
        return None, BlockStatus.BAD_HEADER
    if header.compressed_size != len(block):
        return header, BlockStatus.BAD_HEADER
    view = memoryview(block)
    digest = xxh3_64(view[: _FIELDS.size])
    digest.update(view[BLOCK_HEADER_SIZE:])
    return header, BlockStatus.OK if digest.intdigest() == header.block_xxh3 else BlockStatus.BAD_CHECKSUM
