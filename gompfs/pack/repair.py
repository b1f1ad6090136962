"""Repairs an archive whose end is damaged, or whose last `add` was interrupted.

After every step, the same command can continue the repair: a footer or a copy of an index is written where none is
valid, and bytes are cut off only after a copy of them is on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gompfs.format import SUPERBLOCK_SIZE, LocalFile, Superblock
from gompfs.pack.archive_lock import locked_archive
from gompfs.pack.new_file import naming
from gompfs.pack.repair_copies import repair_copies
from gompfs.pack.repair_footer import repair_footer


def repair_archive(archive: Path, *, dry_run: bool = False, discard: bool = False) -> Iterator[str]:
    """Repair the end of the archive. Yields a line for each defect, with what was done; nothing if there is no defect.

    A generation whose index is intact gets a new footer; in format version 2, a damaged copy of an index is written
    again from the other copy. All bytes after the newest intact generation are moved to the file ARCHIVE.cut, or
    dropped if `discard` is set. With `dry_run`, nothing is changed. Raises PackError, and ArchiveFormatError if no
    generation can be repaired.
    """
    kept = None if discard else archive.with_name(archive.name + ".cut")
    with naming(archive), locked_archive(archive, to_write=not dry_run) as descriptor:
        superblock = Superblock.from_bytes(LocalFile(descriptor).read(SUPERBLOCK_SIZE, 0))
        repair = repair_footer if superblock.version == 1 else repair_copies
        yield from repair(descriptor, superblock, kept, dry_run=dry_run)
