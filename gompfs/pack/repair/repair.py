"""Repairs an archive whose end is damaged, or whose last `add` was interrupted.

After every step, the same command can continue the repair: a header or a copy of an index is written where none is
valid, and bytes are cut off only after a copy of them is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.format import (
    NUM_COPIES,
    SUPERBLOCK_SIZE,
    Footer,
    Link,
    LocalFile,
    Superblock,
    read_copy,
    read_footer,
    read_range,
    walk_chain,
)
from gompfs.pack.archive_lock import locked_archive
from gompfs.pack.new_file import naming
from gompfs.pack.repair.cut_off import Leftover, cut_off
from gompfs.pack.repair.damaged_copies import index_from_both
from gompfs.pack.repair.header import damaged_header_after, write_header


def repair_archive(archive: Path, *, dry_run: bool = False, discard: bool = False) -> Iterator[str]:
    """Repair the end of the archive. Yields a line for each defect, with what was done; nothing if there is no defect.

    A damaged copy of an index is written again from the other copy, or both from their intact bytes, and a header of
    which one or two bytes are damaged from the footers. All bytes after the newest intact generation are moved to the
    file ARCHIVE.cut, or dropped if `discard` is set. With `dry_run`, nothing is changed. Raises PackError, and
    ArchiveFormatError if no generation can be repaired.
    """
    kept = None if discard else archive.with_name(archive.name + ".cut")
    with naming(archive), locked_archive(archive, to_write=not dry_run) as descriptor:
        yield from _repair(descriptor, kept, dry_run=dry_run)


def _repair(descriptor: int, kept: Path | None, *, dry_run: bool) -> Iterator[str]:
    """Repair the archive open at `descriptor`. Bytes that are cut off are saved in `kept`."""
    file = LocalFile(descriptor)
    superblock = Superblock.from_bytes(file.read(SUPERBLOCK_SIZE, 0))
    newest = damaged = None
    num_changes = -1  # of the generation before; -1 if its index cannot be read
    for link in _walk_and_complete(descriptor, superblock, dry_run=dry_run):
        if isinstance(link, str):
            yield link
            continue
        intact, damaged_copies = _index_of(file, superblock, link)
        if intact is None or intact.footer.num_changes not in (0, num_changes + 1):
            is_whole = intact is not None
            damaged = "an index that it needs is damaged" if is_whole else "both copies of its index are damaged"
            num_changes = -1
            continue
        num_changes = intact.footer.num_changes
        newest, damaged = link, None
        for copy in damaged_copies:
            if not dry_run:
                _write_again(descriptor, link, intact, copy)
            done = "would be" if dry_run else "was"
            yield f"generation {link.generation}: copy {copy} of its index is damaged: it {done} written again"
    if newest is None:
        raise ArchiveFormatError(f"no generation can be repaired: {damaged or 'the file ends before the first index'}")
    leftover = Leftover(newest.generation, newest.position.end, file.size())
    if leftover.size > 0 and not (dry_run and damaged_header_after(file, superblock, newest)):
        if not dry_run:
            cut_off(descriptor, leftover, kept)
        yield leftover.describe(damaged, kept, dry_run=dry_run)


def _walk_and_complete(descriptor: int, superblock: Superblock, *, dry_run: bool) -> Iterator[Link | str]:
    """Yields the links of the chain, and a line for each damaged header that is written again to continue the chain."""
    file, num_links = LocalFile(descriptor), 0
    while True:
        last = None
        for last in islice(walk_chain(file, superblock, file.size()), num_links, None):
            num_links += 1
            yield last
        header = damaged_header_after(file, superblock, last) if last is not None else None
        if last is None or header is None:
            return
        if not dry_run:
            write_header(descriptor, last.next_start, header)
        done = "would be" if dry_run else "was"
        yield f"generation {header.generation}: its header is damaged: it {done} written again"
        if dry_run:
            return


class _Index(NamedTuple):
    """The stored index of a generation, and a footer that describes it."""

    footer: Footer
    blocks: bytes


def _index_of(file: LocalFile, superblock: Superblock, link: Link) -> tuple[_Index | None, list[int]]:
    """Returns the index of a generation, or None if it is lost, and which of its copies are damaged."""
    intact, damaged = None, []
    for copy in range(NUM_COPIES):
        try:
            footer = read_footer(file, superblock, link, copy)
            read_copy(file, footer)
            intact = _Index(footer, read_range(file, footer.index_offset, footer.index_size))
        except CorruptIndexError:
            damaged.append(copy)
    if intact is None and (found := index_from_both(file, superblock, link)):
        intact = _Index(*found)
    return intact, damaged


def _write_again(descriptor: int, link: Link, index: _Index, copy: int) -> None:
    """Write a copy of an index, and sync it."""
    position = link.position
    footer = index.footer._replace(copy=copy, index_offset=position.copy_offset(copy))
    padding = bytes(position.footer_offset(copy) - position.copy_offset(copy) - len(index.blocks))
    with open(descriptor, "r+b", closefd=False) as file:
        file.seek(position.copy_offset(copy))
        file.write(index.blocks + padding + footer.to_bytes())
    os.fsync(descriptor)
