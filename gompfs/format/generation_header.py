"""The header of a generation that `add` appends. It says where the trailers of the generation are.

It lies on the first multiple of 64 after the trailers of the generation before. `add` writes it twice: first with zeros
for the position of the index; and with the position when everything else is on disk. That makes the generation valid.
"""

from __future__ import annotations

from gompfs.format.record import Record
from gompfs.light_types import NamedTuple

GENERATION_HEADER_MAGIC = b"\x89GGENER\n"
GENERATION_HEADER_SIZE = 64

_RECORD = Record(
    GENERATION_HEADER_MAGIC,
    "II16sQQQ",
    absent="not a generation header",
    damaged="the generation header is damaged: its checksum does not match",
)


class GenerationHeader(NamedTuple):
    """Begins generation 2 or a later one. The index has offset and size 0 while the generation is being written."""

    generation: int
    uuid: bytes
    index_offset: int = 0
    index_size: int = 0

    def to_bytes(self) -> bytes:
        """Returns the 64 bytes that are stored in the file."""
        return _RECORD.pack(self.generation, 0, self.uuid, self.index_offset, self.index_size, 0)

    @classmethod
    def from_bytes(cls, raw: bytes) -> GenerationHeader:
        """Decode a header. Raises ArchiveFormatError if the bytes are not a valid header."""
        generation, _, uuid, index_offset, index_size, _ = _RECORD.unpack(raw)
        return cls(generation, uuid, index_offset, index_size)
