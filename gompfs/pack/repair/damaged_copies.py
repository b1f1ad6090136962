"""Puts a stored index together from its two copies if both are damaged, but not in the same bytes.

The copies lie side by side, so one damaged range of the file can reach the end of copy 0 and the beginning of copy 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gompfs.errors import CorruptIndexError
from gompfs.format import (
    NUM_COPIES,
    Footer,
    Link,
    LocalFile,
    Superblock,
    decode_columns,
    read_footer,
    read_range,
)

_CHUNK_SIZE = 512  # bytes: a sector, the least that a disk loses
_MAX_ATTEMPTS = 8  # each decodes an index; two damaged ranges need four at the most


def index_from_both(file: LocalFile, superblock: Superblock, link: Link) -> tuple[Footer, bytes] | None:
    """Returns an intact footer of a generation, and its stored index of bytes from both copies.

    Returns None if no footer is intact, or if none of the tries has the checksum of the columns that the footer states.
    """
    footer = next(filter(None, (_footer(file, superblock, link, copy) for copy in range(NUM_COPIES))), None)
    if footer is None:
        return None
    size = link.position.index_size
    copies = [read_range(file, link.position.copy_offset(copy), size) for copy in range(NUM_COPIES)]
    for stored in islice(_mixtures(*copies), _MAX_ATTEMPTS):
        try:
            decode_columns(stored, footer.columns_size, footer.columns_xxh3)
        except CorruptIndexError:
            continue
        return footer, stored
    return None


def _footer(file: LocalFile, superblock: Superblock, link: Link, copy: int) -> Footer | None:
    """Returns the footer of a copy if it is intact."""
    try:
        return read_footer(file, superblock, link, copy)
    except CorruptIndexError:
        return None


def _mixtures(first: bytes, second: bytes) -> Iterator[bytes]:
    """Yields the first bytes of one copy and the rest of the other, cut wherever a range in which they differ ends."""
    differs = False
    for begin in range(0, len(first), _CHUNK_SIZE):
        chunk = slice(begin, begin + _CHUNK_SIZE)
        differed, differs = differs, first[chunk] != second[chunk]
        if differed and not differs:
            yield first[:begin] + second[begin:]
            yield second[:begin] + first[begin:]
