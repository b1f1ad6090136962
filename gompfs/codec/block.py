"""One block of an archive: a header of 32 bytes, then the payload of its codec (docs/format.md)."""

from __future__ import annotations

import struct
from enum import IntEnum

from gompfs.codec.codecs import Codec
from gompfs.codec.constants import (
    BLOCK_HEADER_SIZE,
    MAX_BLOCK_SIZE,
    MAX_HEAD_PAYLOAD,
    MAX_POOL_SIZE,
    TADOC_MAX_OVERHEAD,
)
from gompfs.errors import ArchiveFormatError
from gompfs.light_types import NamedTuple

BLOCK_MAGIC = b"GBLK"
BLOCK_ALIGNMENT = 16

# magic, codec, 3 reserved bytes, payload_size, uncompressed_size, content_xxh3. The last field, block_xxh3, covers
# these fields and the payload.
_FIELDS = struct.Struct("<4sB3sIIQ")
_CHECKSUM = struct.Struct("<Q")
_RESERVED = bytes(3)
_CODECS = {int(codec): codec for codec in Codec}

Buffer = bytes | bytearray | memoryview


class BlockStatus(IntEnum):
    """The result of decoding one block. For any status but OK, the block's bytes must not be used."""

    OK = 0
    BAD_HEADER = 1
    """The header is not a block header, or its sizes contradict the size of the block."""
    BAD_CHECKSUM = 2
    """The header and payload do not match their xxh3-64."""
    BAD_PAYLOAD = 3
    """The codec cannot decode the payload."""
    BAD_CONTENT = 4
    """The decoded bytes do not match their xxh3-64."""
    UNREADABLE = 5
    """The block cannot be read from the file. Only `verify` tells; others raise the error of the operating system."""

    @property
    def reason(self) -> str:
        """One clause for an error message."""
        return {
            BlockStatus.OK: "intact",
            BlockStatus.BAD_HEADER: "the block header is damaged",
            BlockStatus.BAD_CHECKSUM: "the compressed bytes do not match their checksum",
            BlockStatus.BAD_PAYLOAD: "the compressed bytes cannot be decoded",
            BlockStatus.BAD_CONTENT: "the decompressed bytes do not match their checksum",
            BlockStatus.UNREADABLE: "the block cannot be read from the disk",
        }[self]


class BlockHeader(NamedTuple):
    """The fields of a block header; sizes in bytes. A NamedTuple, since one is made for every block read."""

    codec: Codec
    payload_size: int
    uncompressed_size: int
    content_xxh3: int
    block_xxh3: int

    @property
    def compressed_size(self) -> int:
        """The size of the whole block in bytes: header and payload."""
        return BLOCK_HEADER_SIZE + self.payload_size


class EncodedBlock(NamedTuple):
    """A block ready to be written; `data` is its header and payload. A NamedTuple, since packing makes many."""

    data: bytes
    codec: Codec
    uncompressed_size: int

    @property
    def compressed_size(self) -> int:
        """The size of the whole block in bytes: header and payload."""
        return len(self.data)


def align(offset: int, alignment: int) -> int:
    """Returns the first multiple of `alignment` at or after `offset`."""
    return -(-offset // alignment) * alignment


def parse_block_header(block: Buffer) -> BlockHeader:
    """Returns the header at the start of `block`. Raises ArchiveFormatError if it is not a valid block header."""
    if len(block) < BLOCK_HEADER_SIZE:
        raise ArchiveFormatError("the block ends inside its header")
    magic, codec, reserved, payload_size, uncompressed_size, content_xxh3 = _FIELDS.unpack_from(block)
    if magic != BLOCK_MAGIC or reserved != _RESERVED:
        raise ArchiveFormatError("not a block header")
    known_codec = _CODECS.get(codec)
    if known_codec is None:
        raise ArchiveFormatError(f"unknown codec {codec}")
    if not _are_possible(known_codec, payload_size, uncompressed_size):
        raise ArchiveFormatError(f"impossible block sizes: {payload_size} of {uncompressed_size} bytes")
    (block_xxh3,) = _CHECKSUM.unpack_from(block, _FIELDS.size)
    return BlockHeader(known_codec, payload_size, uncompressed_size, content_xxh3, block_xxh3)


def _are_possible(codec: Codec, payload_size: int, uncompressed_size: int) -> bool:
    """Returns whether a block, or a head, may have these sizes."""
    if codec is Codec.HEAD:
        return payload_size <= MAX_HEAD_PAYLOAD and 0 < uncompressed_size <= MAX_POOL_SIZE
    overhead = TADOC_MAX_OVERHEAD if codec is Codec.GOMPRESSO_TADOC else 0
    return 0 < uncompressed_size <= MAX_BLOCK_SIZE and payload_size <= uncompressed_size + overhead
