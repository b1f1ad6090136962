"""Repairs the end of an archive of format version 1: writes a footer again, or cuts off what follows the last one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gompfs.codec import BlockStatus, check_block
from gompfs.errors import ArchiveFormatError
from gompfs.format import FOOTER_SIZE, LocalFile, Superblock
from gompfs.generations.survey import Unfinished, accept_end, survey
from gompfs.pack.cut_off import Leftover, cut_off


def repair_footer(descriptor: int, superblock: Superblock, kept: Path | None, *, dry_run: bool) -> Iterator[str]:
    """Repair the archive open at `descriptor`; see repair_archive. Bytes that are cut off are saved in `kept`."""
    file = LocalFile(descriptor)
    while accept_end(file, superblock, file.size()) is None:
        found = survey(file, superblock, file.size())
        if found.unfinished is not None and _is_complete(file, found.unfinished):
            if not dry_run:
                os.pwrite(descriptor, found.unfinished.footer.to_bytes(), found.unfinished.footer_offset)
                os.fsync(descriptor)
            number = found.unfinished.footer.generation
            done = "would be" if dry_run else "was"
            state = "its index is intact, but its footer is damaged or missing"
            yield f"generation {number}: {state}: a new footer {done} written"
        elif found.newest is None:
            reason = found.damaged or "none has an intact index"
            raise ArchiveFormatError(f"no generation can be repaired: {reason}")
        elif found.newest.num_ignored_bytes:
            leftover = Leftover(found.newest.footer.generation, found.newest.end, found.newest.size)
            if not dry_run:
                cut_off(descriptor, leftover, kept)
            yield leftover.describe(found.damaged, kept, dry_run=dry_run)
        else:
            return
        if dry_run:
            return


def _is_complete(file: LocalFile, unfinished: Unfinished) -> bool:
    """Returns whether a generation was written completely: its footer has non-zero bytes, or all blocks are intact."""
    if file.read(FOOTER_SIZE, unfinished.footer_offset).strip(b"\0"):
        return True
    return all(check_block(file.read(size, offset))[1] is BlockStatus.OK for offset, size in unfinished.blocks)
