"""The footer: 64 bytes that say where the newest index lies; the last valid one in the file counts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.format.archive_file import ArchiveFile
from gompfs.format.superblock import SUPERBLOCK_SIZE

FOOTER_MAGIC = b"GOMPEND\n"
FOOTER_SIZE = 64
INDEX_ALIGNMENT = 4096
_SCAN_SIZE = 1 << 20

_FIELDS = struct.Struct("<8sIIQQQQQ")
_CHECKSUM = struct.Struct("<Q")


@dataclass(frozen=True)
class Footer:
    """Where the index of one generation lies; offsets and sizes in bytes, `previous_footer` 0 for none."""

    generation: int
    index_offset: int
    index_size: int
    index_xxh3: int
    previous_footer: int

    def fits(self, archive_offset: int) -> bool:
        """Whether a footer that lies at `archive_offset` belongs there: right behind its index, aligned.

        One that is part of the contents of a packed file, which may be an archive itself, does not.
        """
        index_end = self.index_offset + self.index_size
        return (
            self.index_offset >= SUPERBLOCK_SIZE
            and archive_offset == -(-index_end // FOOTER_SIZE) * FOOTER_SIZE
        )

    def to_bytes(self) -> bytes:
        """The 64 bytes as they lie in the file."""
        fields = _FIELDS.pack(
            FOOTER_MAGIC,
            self.generation,
            0,
            self.index_offset,
            self.index_size,
            self.index_xxh3,
            self.previous_footer,
            0,
        )
        return fields + _CHECKSUM.pack(xxh3_64_intdigest(fields))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Footer:
        """Read a footer; raises ArchiveFormatError when the bytes are none."""
        if len(raw) < FOOTER_SIZE or not raw.startswith(FOOTER_MAGIC):
            raise ArchiveFormatError("this is no footer")
        (checksum,) = _CHECKSUM.unpack_from(raw, _FIELDS.size)
        if checksum != xxh3_64_intdigest(raw[: _FIELDS.size]):
            raise ArchiveFormatError("the footer is damaged: its checksum does not match")
        _, generation, reserved, offset, size, xxh3, previous, reserved_too = _FIELDS.unpack_from(raw)
        if reserved or reserved_too or generation == 0:
            raise ArchiveFormatError("the footer has impossible fields")
        return cls(generation, offset, size, xxh3, previous)


def find_footer(file: ArchiveFile) -> tuple[Footer, int]:
    """The last valid footer of an archive file and its archive_offset.

    It is the last 64 bytes of a whole archive. Behind an interrupted `add` lies torn data: then the file is
    searched backwards, and the state before that `add` is found. Raises ArchiveFormatError if there is none.
    """
    end = file.size()
    last = max(end - FOOTER_SIZE, 0)
    footer = _footer_at(file.read(FOOTER_SIZE, last), last)
    if footer is not None:
        return footer, last
    while end > 0:
        start = max(end - _SCAN_SIZE, 0)
        window = file.read(end - start + FOOTER_SIZE, start)
        place = window.rfind(FOOTER_MAGIC)
        while place >= 0:
            footer = _footer_at(window[place : place + FOOTER_SIZE], start + place)
            if footer is not None:
                return footer, start + place
            place = window.rfind(FOOTER_MAGIC, 0, place + len(FOOTER_MAGIC) - 1)
        end = start
    raise ArchiveFormatError(
        "no valid footer: the file is truncated or damaged, and its index cannot be found"
    )


def read_index(file: ArchiveFile, footer: Footer) -> bytes:
    """The image of the index that a footer leads to; raises CorruptIndexError where its checksum is another."""
    pieces = []
    size = 0
    # One call reads 2 GiB at most.
    while size < footer.index_size and (
        piece := file.read(footer.index_size - size, footer.index_offset + size)
    ):
        pieces.append(piece)
        size += len(piece)
    image = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if xxh3_64_intdigest(image) != footer.index_xxh3:
        raise CorruptIndexError("the index is damaged: its checksum does not match")
    return image


def check_earlier_footers(file: ArchiveFile, footer: Footer) -> Iterator[str]:
    """What is wrong with the generations before that of `footer`: their footers and indexes, newest first."""
    while footer.generation > 1 or footer.previous_footer:
        place = footer.previous_footer
        earlier = None
        if place < footer.index_offset:
            earlier = _footer_at(file.read(FOOTER_SIZE, place), place)
        if earlier is None or earlier.generation != footer.generation - 1:
            yield f"generation {footer.generation}: it leads to no footer of the generation before"
            return
        footer = earlier
        try:
            read_index(file, footer)
        except CorruptIndexError as error:
            yield f"generation {footer.generation}: {error.message}"


def _footer_at(raw: bytes, archive_offset: int) -> Footer | None:
    """The valid footer that these bytes at `archive_offset` are, if they are one."""
    try:
        footer = Footer.from_bytes(raw)
    except ArchiveFormatError:
        return None
    return footer if footer.fits(archive_offset) else None
