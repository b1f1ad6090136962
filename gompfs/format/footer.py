"""The footer: the last 64 bytes of each generation, which locate its index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from gompfs.codec import align
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.format.archive_file import ArchiveFile
from gompfs.format.record import Record
from gompfs.format.superblock import SUPERBLOCK_SIZE

FOOTER_MAGIC = b"GOMPEND\n"
FOOTER_SIZE = 64
INDEX_ALIGNMENT = 4096

_RECORD = Record(
    FOOTER_MAGIC, "IIQQQQQ", absent="not a footer", damaged="the footer is damaged: its checksum does not match"
)


class Footer(NamedTuple):
    """Locates the index of one generation. Offsets and sizes in bytes; `previous_footer` is 0 if there is none."""

    generation: int
    index_offset: int
    index_size: int
    index_xxh3: int
    previous_footer: int

    def fits(self, archive_offset: int) -> bool:
        """Returns whether `archive_offset` is where this footer must be: the next multiple of 64 after its index."""
        index_end = self.index_offset + self.index_size
        return self.index_offset >= SUPERBLOCK_SIZE and archive_offset == align(index_end, FOOTER_SIZE)

    def to_bytes(self) -> bytes:
        """Returns the 64 bytes that are stored in the file."""
        return _RECORD.pack(
            self.generation, 0, self.index_offset, self.index_size, self.index_xxh3, self.previous_footer, 0
        )

    @classmethod
    def from_bytes(cls, raw: bytes) -> Footer:
        """Decode a footer. Raises ArchiveFormatError if the bytes are not a valid footer."""
        generation, reserved, offset, size, xxh3, previous, reserved_too = _RECORD.unpack(raw)
        if reserved or reserved_too or generation == 0:
            raise ArchiveFormatError("the footer has impossible fields")
        return cls(generation, offset, size, xxh3, previous)


def footer_at(file: ArchiveFile, archive_offset: int) -> Footer | None:
    """Returns the valid footer at `archive_offset`, or None. It may be a packed file's content."""
    if archive_offset < SUPERBLOCK_SIZE or archive_offset % FOOTER_SIZE:
        return None
    return _footer_of(file.read(FOOTER_SIZE, archive_offset), archive_offset)


def last_footer(file: ArchiveFile) -> Footer:
    """Returns the footer in the last 64 bytes, which may be a packed file's content. Raises ArchiveFormatError."""
    footer = footer_at(file, file.size() - FOOTER_SIZE)
    if footer is None:
        raise ArchiveFormatError("the file does not end in a valid footer")
    return footer


def read_index(file: ArchiveFile, footer: Footer) -> bytes:
    """Returns the index image that a footer locates. Raises CorruptIndexError if its checksum does not match."""
    image = read_image(file, footer.index_offset, footer.index_size)
    check_index(image, footer)
    return image


def check_index(image: bytes, footer: Footer) -> None:
    """Raise CorruptIndexError unless `image` has the checksum of the index in `footer`."""
    if xxh3_64_intdigest(image) != footer.index_xxh3:
        raise CorruptIndexError("the index is damaged: its checksum does not match")


def read_image(file: ArchiveFile, index_offset: int, index_size: int) -> bytes:
    """Returns an index image without checking it. It is shorter than `index_size` only if the file ends."""
    pieces = []
    size = 0
    # One read returns at most 2 GiB.
    while size < index_size and (piece := file.read(index_size - size, index_offset + size)):
        pieces.append(piece)
        size += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def check_earlier_footers(file: ArchiveFile, footer: Footer) -> Iterator[str]:
    """Yields the defects in the footers and indexes of the generations before that of `footer`, newest first."""
    while footer.generation > 1 or footer.previous_footer:
        earlier = None
        if footer.previous_footer < footer.index_offset:
            earlier = footer_at(file, footer.previous_footer)
        if earlier is None or earlier.generation != footer.generation - 1:
            yield f"generation {footer.generation}: it does not point to the footer of the previous generation"
            return
        footer = earlier
        try:
            read_index(file, footer)
        except CorruptIndexError as error:
            yield f"generation {footer.generation}: {error.message}"


def _footer_of(raw: bytes, archive_offset: int) -> Footer | None:
    """Returns the footer in these bytes, or None if they are not a valid footer for `archive_offset`."""
    try:
        footer = Footer.from_bytes(raw)
    except ArchiveFormatError:
        return None
    return footer if footer.fits(archive_offset) else None
