"""The superblock: the first 64 bytes of an archive."""

from __future__ import annotations

from gompfs.codec import MAX_BLOCK_SIZE, MIN_BLOCK_SIZE
from gompfs.errors import ArchiveFormatError, UnsupportedFormatError
from gompfs.format.record import Record
from gompfs.light_types import NamedTuple

SUPERBLOCK_MAGIC = b"\x89GOMPFS\n"
SUPERBLOCK_SIZE = 64
FORMAT_VERSION = 2

_RECORD = Record(
    SUPERBLOCK_MAGIC,
    "II16sQQQ",
    absent="not a gompfs archive",
    damaged="the superblock is damaged: its checksum does not match",
)


class Superblock(NamedTuple):
    """Properties of the whole archive. `block_size` in bytes.

    `index_offset` and `index_size` locate the index of generation 1 (see gompfs.format.trailer).
    """

    block_size: int
    uuid: bytes
    index_offset: int
    index_size: int

    @property
    def uuid_text(self) -> str:
        """The UUID as people write it."""
        digits = self.uuid.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def to_bytes(self) -> bytes:
        """Returns the 64 bytes that are stored in the file."""
        return _RECORD.pack(FORMAT_VERSION, self.block_size, self.uuid, self.index_offset, self.index_size, 0)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Superblock:
        """Decode a superblock. Raises ArchiveFormatError, or UnsupportedFormatError for another format version."""
        version, block_size, uuid, index_offset, index_size, _ = _RECORD.unpack(raw)
        if version != FORMAT_VERSION:
            raise UnsupportedFormatError(f"format version {version}; this gompfs reads version {FORMAT_VERSION}")
        power_of_two = block_size & (block_size - 1) == 0
        if not (MIN_BLOCK_SIZE <= block_size <= MAX_BLOCK_SIZE and power_of_two):
            raise ArchiveFormatError("the superblock has an impossible block size")
        return cls(block_size, uuid, index_offset, index_size)
