"""The trailers of a generation: two copies of its index, each followed by a footer of 96 bytes.

The superblock, or the header of a later generation, says where the first copy begins and how large it is. Everything
else follows: a footer lies on the next multiple of 16 after its copy, and the second copy begins right after the first
footer. So a reader never searches, and bytes inside packed files are never taken for a footer.
"""

from __future__ import annotations

from gompfs.codec import BLOCK_ALIGNMENT, align
from gompfs.errors import ArchiveFormatError, UnsupportedFormatError
from gompfs.format.record import Record
from gompfs.light_types import NamedTuple

FOOTER_MAGIC = b"GOMPEND2"
FOOTER_SIZE = 96
NUM_COPIES = 2
MAX_CHANGES = 64  # indexes of changes in a row
MAX_GENERATION = (1 << 32) - 1
KNOWN_FEATURES = 0  # bits of Footer.features that this release has

_RECORD = Record(FOOTER_MAGIC, "II16sQQQQQQII", absent="not a footer", damaged="its checksum does not match")


class TrailerPosition(NamedTuple):
    """Where the trailers of a generation are: the blocks of the first copy of its index begin at `index_offset`.

    `index_size` is the size of the blocks of one copy, from the first to the end of the last.
    """

    index_offset: int
    index_size: int

    @property
    def copy_size(self) -> int:
        """The size of one copy with its footer."""
        return align(self.index_size, BLOCK_ALIGNMENT) + FOOTER_SIZE

    @property
    def end(self) -> int:
        """The archive_offset of the first byte after the second footer."""
        return self.copy_end(NUM_COPIES - 1)

    def copy_offset(self, copy: int) -> int:
        """Returns the archive_offset of the blocks of a copy, 0 or 1."""
        return self.index_offset + copy * self.copy_size

    def copy_end(self, copy: int) -> int:
        """Returns the archive_offset of the first byte after the footer of a copy."""
        return self.copy_offset(copy) + self.copy_size

    def footer_offset(self, copy: int) -> int:
        """Returns the archive_offset of the footer of a copy."""
        return self.copy_end(copy) - FOOTER_SIZE


class Footer(NamedTuple):
    """Describes one copy of the index of a generation. Offsets and sizes in bytes.

    `start` is the archive_offset of the generation's header, 0 for the first generation. The columns of the index
    have `columns_size` bytes; their blocks have `index_size`. `previous_footer` is 0 for the first generation. If
    `num_changes` is not 0, the index has only what differs from the index of the generation before; `num_changes`
    indexes of that kind follow the last whole one, this one included. Each bit of `features` is a feature that a reader
    must have.
    """

    generation: int
    copy: int
    uuid: bytes
    start: int
    index_offset: int
    index_size: int
    columns_size: int
    columns_xxh3: int
    previous_footer: int
    num_changes: int = 0
    features: int = 0

    def to_bytes(self) -> bytes:
        """Returns the 96 bytes that are stored in the file."""
        return _RECORD.pack(
            self.generation,
            self.copy,
            self.uuid,
            self.start,
            self.index_offset,
            self.index_size,
            self.columns_size,
            self.columns_xxh3,
            self.previous_footer,
            self.num_changes,
            self.features,
        )

    @classmethod
    def from_bytes(cls, raw: bytes) -> Footer:
        """Decode a footer. Raises ArchiveFormatError if the bytes are not a valid footer."""
        generation, copy, uuid, *fields, num_changes, features = _RECORD.unpack(raw)
        footer = cls._make((generation, copy, uuid, *fields, num_changes, features))
        is_possible = generation > num_changes <= MAX_CHANGES and copy < NUM_COPIES and footer.columns_size > 0
        if not is_possible:
            raise ArchiveFormatError("it has impossible fields")
        return footer

    def check_features(self) -> None:
        """Raise UnsupportedFormatError if a feature is needed that this release does not have."""
        if unknown := self.features & ~KNOWN_FEATURES:
            numbers = " and ".join(str(bit) for bit in range(unknown.bit_length()) if unknown >> bit & 1)
            what = f"feature{'' if unknown.bit_count() == 1 else 's'} {numbers}"
            raise UnsupportedFormatError(f"needs {what}, which this gompfs does not have; a newer gompfs reads it")
