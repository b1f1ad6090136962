"""Repairs an archive whose end is damaged, or whose last `add` was interrupted.

After every step, the same command can continue the repair: a footer is written where none is valid, and bytes are cut
off only after a copy of them is on disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from gompfs.codec import BlockStatus, check_block
from gompfs.errors import ArchiveFormatError, PackError
from gompfs.format import FOOTER_SIZE, SUPERBLOCK_SIZE, LocalFile, Superblock
from gompfs.generations import Newest, Survey, Unfinished, accept_end, survey
from gompfs.pack.archive_lock import locked_archive
from gompfs.pack.new_file import NewFile, naming

_COPY_SIZE = 64 << 20
_COMPARE_SIZE = 1 << 20
# Errors of copy_file_range if the file system does not support it.
_CANNOT_COPY = (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM)


def repair_archive(archive: Path, *, dry_run: bool = False, discard: bool = False) -> Iterator[str]:
    """Repair the end of the archive. Yields a line for each defect, with what was done; nothing if there is no defect.

    A generation whose index is intact gets a new footer. All bytes after the newest intact generation are moved to the
    file ARCHIVE.cut, or dropped if `discard` is set. With `dry_run`, nothing is changed. Raises PackError, and
    ArchiveFormatError if no generation can be repaired.
    """
    kept = archive.with_name(archive.name + ".cut")
    with naming(archive), locked_archive(archive, to_write=not dry_run) as descriptor:
        file = LocalFile(descriptor)
        superblock = Superblock.from_bytes(file.read(SUPERBLOCK_SIZE, 0))
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
                if not dry_run:
                    if not discard:
                        _keep(descriptor, found.newest, kept)
                    os.ftruncate(descriptor, found.newest.end)
                    os.fsync(descriptor)
                yield _describe_cut(found, found.newest, None if discard else kept, dry_run)
            else:
                return
            if dry_run:
                return


def _is_complete(file: LocalFile, unfinished: Unfinished) -> bool:
    """Returns whether a generation was written completely: its footer has non-zero bytes, or all blocks are intact."""
    if file.read(FOOTER_SIZE, unfinished.footer_offset).strip(b"\0"):
        return True
    return all(check_block(file.read(size, offset))[1] is BlockStatus.OK for offset, size in unfinished.blocks)


def _describe_cut(found: Survey, newest: Newest, kept: Path | None, dry_run: bool) -> str:
    reason = "an add was interrupted, or they are damaged"
    if found.damaged is not None:
        reason = f"they have a later generation, but {found.damaged}"
    fate = "dropped" if kept is None else f"moved to {kept.name}"
    after = f"{newest.num_ignored_bytes} bytes after generation {newest.footer.generation}"
    return f"{after} are not a complete generation ({reason}): they {'would be' if dry_run else 'were'} {fate}"


def _keep(descriptor: int, newest: Newest, kept: Path) -> None:
    """Copy the bytes that will be cut off to the file `kept`. Raises PackError if it exists with other bytes."""
    if os.path.lexists(kept):
        # An interrupted repair may have made the copy without cutting the archive.
        if not _is_copy(descriptor, newest, kept):
            raise PackError("the file exists: move it away, or use --discard", path=kept)
        return
    with NewFile(kept) as file:
        file.take_permissions(descriptor)
        _copy(descriptor, file.descriptor, newest.end, newest.num_ignored_bytes)
        file.publish(replace=False)


def _is_copy(descriptor: int, newest: Newest, kept: Path) -> bool:
    with open(os.open(kept, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if os.fstat(file.fileno()).st_size != newest.num_ignored_bytes:
            return False
        position = newest.end
        while piece := file.read(_COMPARE_SIZE):
            if os.pread(descriptor, len(piece), position) != piece:
                return False
            position += len(piece)
    return position == newest.size


def _copy(source: int, target: int, start: int, size: int) -> None:
    """Copy `size` bytes from `start` on to the start of another file, as a reflink if the file system supports it."""
    done = 0
    try:
        while done < size:
            count = os.copy_file_range(source, target, min(_COPY_SIZE, size - done), start + done, done)
            if not count:
                break
            done += count
    except OSError as error:
        if error.errno not in _CANNOT_COPY:
            raise
    while done < size:
        piece = os.pread(source, min(_COMPARE_SIZE, size - done), start + done)
        if not piece:
            raise OSError(errno.EIO, "the archive shrank while its end was copied")
        done += os.pwrite(target, piece, done)
