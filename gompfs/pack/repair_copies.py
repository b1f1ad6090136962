"""Repairs an archive of format version 2: writes damaged copies of an index again, and cuts off what follows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.format import NUM_COPIES, LocalFile, Superblock, TrailerFooter, read_image
from gompfs.generations.chain import Link, read_copy, read_footer, walk_chain
from gompfs.pack.cut_off import Leftover, cut_off


def repair_copies(descriptor: int, superblock: Superblock, kept: Path | None, *, dry_run: bool) -> Iterator[str]:
    """Repair the archive open at `descriptor`; see repair_archive. Bytes that are cut off are saved in `kept`."""
    file = LocalFile(descriptor)
    newest = damaged = None
    for link in walk_chain(file, superblock, file.size()):
        footers = [_intact_footer(file, superblock, link, copy) for copy in range(NUM_COPIES)]
        intact = next(filter(None, footers), None)
        if intact is None:
            damaged = "both copies of its index are damaged"
            continue
        newest, damaged = link, None
        for copy in (copy for copy, footer in enumerate(footers) if footer is None):
            if not dry_run:
                _write_again(descriptor, link, intact, copy)
            done = "would be" if dry_run else "was"
            yield f"generation {link.generation}: copy {copy} of its index is damaged: it {done} written again"
    if newest is None:
        raise ArchiveFormatError(f"no generation can be repaired: {damaged or 'the file ends before the first index'}")
    leftover = Leftover(newest.generation, newest.place.end, file.size())
    if leftover.size > 0:
        if not dry_run:
            cut_off(descriptor, leftover, kept)
        yield leftover.describe(damaged, kept, dry_run=dry_run)


def _intact_footer(file: LocalFile, superblock: Superblock, link: Link, copy: int) -> TrailerFooter | None:
    """Returns the footer of a copy of an index if the copy is intact."""
    try:
        footer = read_footer(file, superblock, link, copy)
        read_copy(file, superblock, footer)
    except CorruptIndexError:
        return None
    return footer


def _write_again(descriptor: int, link: Link, intact: TrailerFooter, copy: int) -> None:
    """Write a copy of an index from the intact one, and sync it."""
    place = link.place
    blocks = read_image(LocalFile(descriptor), intact.index_offset, intact.index_size)
    footer = replace(intact, copy=copy, index_offset=place.copy_offset(copy))
    padding = bytes(place.footer_offset(copy) - place.copy_offset(copy) - len(blocks))
    with open(descriptor, "r+b", closefd=False) as file:
        file.seek(place.copy_offset(copy))
        file.write(blocks + padding + footer.to_bytes())
    os.fsync(descriptor)
