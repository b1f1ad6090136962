"""The superblock: the first 64 bytes of an archive."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from xxhash import xxh3_64_intdigest

from gompfs.codec import MAX_BLOCK_SIZE, MIN_BLOCK_SIZE
from gompfs.errors import ArchiveFormatError, UnsupportedVersionError

SUPERBLOCK_MAGIC = b"\x89GOMPFS\n"
SUPERBLOCK_SIZE = 64
FORMAT_VERSION = 1

_FIELDS = struct.Struct("<8sII16s24s")
_CHECKSUM = struct.Struct("<Q")


@dataclass(frozen=True)
class Superblock:
    """Properties of the whole archive. `block_size` in bytes."""

    block_size: int
    uuid: UUID
    version: int = FORMAT_VERSION

    def to_bytes(self) -> bytes:
        """Returns the 64 bytes that are stored in the file."""
        fields = _FIELDS.pack(SUPERBLOCK_MAGIC, self.version, self.block_size, self.uuid.bytes, bytes(24))
        return fields + _CHECKSUM.pack(xxh3_64_intdigest(fields))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Superblock:
        """Decode a superblock. Raises ArchiveFormatError, or UnsupportedVersionError for an unknown format version."""
        if len(raw) < SUPERBLOCK_SIZE or not raw.startswith(SUPERBLOCK_MAGIC):
            raise ArchiveFormatError("not a gompfs archive")
        _, version, block_size, uuid, reserved = _FIELDS.unpack_from(raw)
        (checksum,) = _CHECKSUM.unpack_from(raw, _FIELDS.size)
        if checksum != xxh3_64_intdigest(raw[: _FIELDS.size]):
            raise ArchiveFormatError("the superblock is damaged: its checksum does not match")
        if version != FORMAT_VERSION:
            raise UnsupportedVersionError(
                f"format version {version}; this gompfs reads version {FORMAT_VERSION}"
            )
        power_of_two = block_size & (block_size - 1) == 0
        if not (MIN_BLOCK_SIZE <= block_size <= MAX_BLOCK_SIZE and power_of_two) or any(reserved):
            raise ArchiveFormatError("the superblock has impossible fields")
        return cls(block_size, UUID(bytes=uuid), version)
