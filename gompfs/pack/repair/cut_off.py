"""Cuts off the end of an archive, after a copy of it is on disk."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from gompfs.errors import PackError
from gompfs.pack.new_file import NewFile

_COPY_SIZE = 64 << 20
_COMPARE_SIZE = 1 << 20
# Errors of copy_file_range if the file system does not support it.
_CANNOT_COPY = (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM)


@dataclass(frozen=True)
class Leftover:
    """The bytes after the newest intact generation of an archive: from `start` to `end`, the end of the file."""

    generation: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.end - self.start

    def describe(self, damaged: str | None, kept: Path | None, *, dry_run: bool) -> str:
        """Returns a line about what is done with the bytes.

        `damaged` says what is wrong with the generation in them, if there is one; `kept` is the copy, if one is made.
        """
        reason = "an add was interrupted, or they are damaged"
        if damaged is not None:
            reason = f"they have a later generation, but {damaged}"
        fate = "dropped" if kept is None else f"moved to {kept.name}"
        after = f"{self.size} bytes after generation {self.generation}"
        return f"{after} are not a complete generation ({reason}): they {'would be' if dry_run else 'were'} {fate}"


def cut_off(descriptor: int, leftover: Leftover, kept: Path | None) -> None:
    """Cut the bytes off the archive open at `descriptor`. If `kept` is not None, copy them to that file first.

    Raises PackError if `kept` exists with other bytes.
    """
    if kept is not None:
        _keep(descriptor, leftover, kept)
    os.ftruncate(descriptor, leftover.start)
    os.fsync(descriptor)


def _keep(descriptor: int, leftover: Leftover, kept: Path) -> None:
    if os.path.lexists(kept):
        # An interrupted repair may have made the copy without cutting the archive.
        if not _is_copy(descriptor, leftover, kept):
            raise PackError("the file exists: move it away, or use --discard", path=kept)
        return
    with NewFile(kept) as file:
        file.take_permissions(descriptor)
        _copy(descriptor, file.descriptor, leftover.start, leftover.size)
        file.publish(replace=False)


def _is_copy(descriptor: int, leftover: Leftover, kept: Path) -> bool:
    with open(os.open(kept, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if os.fstat(file.fileno()).st_size != leftover.size:
            return False
        position = leftover.start
        while piece := file.read(_COMPARE_SIZE):
            if os.pread(descriptor, len(piece), position) != piece:
                return False
            position += len(piece)
    return position == leftover.end


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
