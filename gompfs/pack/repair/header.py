"""Writes a damaged header of a generation again, from the footers of the archive.

The file must end with a footer, from which the footers of all later generations lead back to the damaged header. If
the file was cut off inside a packed file, these footers may be those of its author, who knows where the header lies and
what it must contain. So the header is written only if few of its bytes change: it still has nearly all bytes of the
header that gompfs wrote there. The header that the author wants has another position of the index, and another
checksum. The author can choose positions that differ in one byte, but not their checksums: a header that differs in at
most two of 64 bytes from a given one, by its position and by its checksum, exists with a probability of 2^-40.

A header that `add` left incomplete, or that was never written, is none of these. A header that is zero cannot be told
from one that was never written.
"""

from __future__ import annotations

import os

from gompfs.errors import ArchiveFormatError
from gompfs.format import (
    FOOTER_SIZE,
    GENERATION_HEADER_SIZE,
    NUM_COPIES,
    Footer,
    GenerationHeader,
    Link,
    LocalFile,
    Superblock,
    TrailerPosition,
)

_MAX_DAMAGED_BYTES = 2


def damaged_header_after(file: LocalFile, superblock: Superblock, link: Link) -> GenerationHeader | None:
    """Returns what the header of the generation after `link`, the last one of the chain, must be, if it is damaged.

    Returns None if it is not damaged, if it is missing, or if more than _MAX_DAMAGED_BYTES of it are damaged.
    """
    raw = file.read(GENERATION_HEADER_SIZE, link.next_start)
    try:
        GenerationHeader.from_bytes(raw)
    except ArchiveFormatError:
        footer = _first_footer_after(file, superblock, link)
        header = None if footer is None else _header_of(link, footer)
        return header if header is not None and _num_different(raw, header.to_bytes()) <= _MAX_DAMAGED_BYTES else None
    return None


def write_header(descriptor: int, archive_offset: int, header: GenerationHeader) -> None:
    """Write a header, and sync it."""
    os.pwrite(descriptor, header.to_bytes(), archive_offset)
    os.fsync(descriptor)


def _first_footer_after(file: LocalFile, superblock: Superblock, link: Link) -> Footer | None:
    """Returns the last footer of the generation after `link`, found by means of the footer at the end of the file."""
    offset = file.size() - FOOTER_SIZE
    while offset > link.next_start:
        try:
            footer = Footer.from_bytes(file.read(FOOTER_SIZE, offset))
        except ArchiveFormatError:
            return None
        position = _position_of(footer)
        is_last_copy = footer.copy == NUM_COPIES - 1 and position.footer_offset(footer.copy) == offset
        if footer.uuid != superblock.uuid or not is_last_copy or footer.previous_footer >= offset:
            return None
        if footer.generation == link.generation + 1:
            return footer
        offset = footer.previous_footer
    return None


def _header_of(link: Link, footer: Footer) -> GenerationHeader | None:
    """Returns the header of the generation of `footer` if it follows `link`."""
    position = _position_of(footer)
    is_next = (footer.start, footer.previous_footer) == (link.next_start, link.position.footer_offset(NUM_COPIES - 1))
    if not is_next or position.index_offset < link.next_start + GENERATION_HEADER_SIZE:
        return None
    return GenerationHeader(footer.generation, footer.uuid, position.index_offset, position.index_size)


def _num_different(some: bytes, others: bytes) -> int:
    return sum(byte != other for byte, other in zip(some, others, strict=True))


def _position_of(footer: Footer) -> TrailerPosition:
    """Returns where the trailers of a footer of the last copy are."""
    size = footer.index_size
    return TrailerPosition(footer.index_offset - (NUM_COPIES - 1) * TrailerPosition(0, size).copy_size, size)
