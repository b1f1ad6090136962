"""Finds the newest generation of an archive of any format version."""

from __future__ import annotations

from collections.abc import Iterator

from gompfs.codec.block import Buffer
from gompfs.format import (
    SUPERBLOCK_SIZE,
    ArchiveFile,
    Footer,
    Superblock,
    TrailerFooter,
    check_earlier_footers,
    read_index,
)
from gompfs.generations import chain
from gompfs.generations.generation import Newest


def find_newest(file: ArchiveFile) -> Newest:
    """Returns the newest generation of an archive.

    Raises ArchiveFormatError if there is none, UnsupportedVersionError, and CorruptIndexError if the newest generation
    is there but its index is damaged. `gompfs repair` can then go back to the previous generation.
    """
    superblock = Superblock.from_bytes(file.read(SUPERBLOCK_SIZE, 0))
    if superblock.version == 1:
        from gompfs.generations import survey  # here: few archives are of version 1

        return survey.find_newest(file, superblock)
    return chain.find_newest(file, superblock)


def read_image(file: ArchiveFile, superblock: Superblock, footer: Footer | TrailerFooter) -> Buffer:
    """Returns the image of the index that a footer describes. Raises CorruptIndexError."""
    if isinstance(footer, Footer):
        return read_index(file, footer)
    return chain.read_copy(file, superblock, footer)


def check_newest(file: ArchiveFile, superblock: Superblock) -> Iterator[str]:
    """Yields the damage of the copies of the newest index. Format version 1 has one copy, which opening it checks."""
    return chain.check_newest_copies(file, superblock) if superblock.version > 1 else iter(())


def check_generations(file: ArchiveFile, superblock: Superblock, footer: Footer | TrailerFooter) -> Iterator[str]:
    """Yields the defects in footers and indexes, except those of the index that `footer` describes."""
    if isinstance(footer, Footer):
        return check_earlier_footers(file, footer)
    return chain.check_copies(file, superblock)
