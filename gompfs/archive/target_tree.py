"""The stack of directories that an extraction is in, as open descriptors.

An extraction walks the tree depth first, so the directories that it is in form a chain from the target to the current
directory. The chain is kept as a stack. Invariants:

- Everything below the target is opened relative to the descriptor of its directory, without following symlinks. A user
  who may write to the target can swap entries at any time; a symlink that is swapped in is never followed.
- At most `_MAX_OPEN` descriptors are open. Directories nearer to the target are closed, and their device and inode
  numbers are kept. Such a directory is opened again as `..` of the directory below it, and is only accepted if the
  numbers are the same.
- A directory of the archive has mode 0700 while it is on the stack. It gets its attributes when it leaves the stack,
  because everything in it is written by then.
- A directory that cannot be made or opened again stays on the stack as lost: everything below it in the archive is
  skipped.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from gompfs.errors import ExtractError, GompfsError, display_path
from gompfs.model import Inode

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors after which nothing more can be written."""

_MAX_OPEN = 16
_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_TRIES = 8  # a limit, since another process may keep swapping the directory while it is made


class _Directory:
    """One directory of the stack. `inode` holds the attributes to set at the end; None leaves them unchanged.

    Its path is the first `path_size` bytes of the current directory's path. Storing every path would take memory
    quadratic in the depth.
    """

    __slots__ = ("descriptor", "identity", "inode", "is_lost", "path_size")

    def __init__(self, path_size: int, descriptor: int | None, inode: Inode | None) -> None:
        self.path_size = path_size
        self.descriptor = descriptor
        self.inode = inode
        self.identity = (0, 0)
        self.is_lost = descriptor is None


class TargetTree:
    """The stack of directories from the target of an extraction down to the current one."""

    def __init__(
        self,
        target: Path,
        finish: Callable[[int, bytes, Inode], None],
        on_error: Callable[[GompfsError], None],
    ) -> None:
        """Start at the directory `target`. Raises OSError if it cannot be opened.

        `finish(descriptor, path, inode)` sets the attributes of a directory when the walk leaves it. `on_error` is
        called for each directory that is lost.
        """
        self._finish = finish
        self._on_error = on_error
        self._path = b""  # of the current directory
        self._stack = [_Directory(0, os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), None)]

    def go_to(self, path: bytes) -> int | None:
        """Make the directory at `path` the current one. Missing parents are made with mode 0755.

        Returns its descriptor, or None if the directory is lost.
        """
        while not _is_within(path, self._path):
            self.leave()
        while not (top := self._stack[-1]).is_lost and self._path != path:
            start = len(self._path) + 1 if self._path else 0
            end = path.find(b"/", start)
            self.enter(path[: end if end >= 0 else None], None)
        return top.descriptor

    def enter(self, path: bytes, inode: Inode | None) -> None:
        """Make a directory in the current one, unless it exists, and make it the current one.

        `inode` holds its attributes. A directory that cannot be made is reported and counts as lost. Raises OSError if
        the file system is full.
        """
        if not path:
            self._stack[0].inode = inode
            return
        parent = self._stack[-1].descriptor
        assert parent is not None
        descriptor = None
        try:
            descriptor = _make(path.rpartition(b"/")[2], parent, may_replace=inode is not None)
        except OSError as error:
            if error.errno in FULL:
                raise OSError(error.errno, error.strerror, display_path(path)) from error
            self._on_error(ExtractError(error.strerror or str(error), path=path))
        self._stack.append(_Directory(len(path), descriptor, inode))
        self._path = path
        self._close_far_ones()

    def leave(self) -> None:
        """Set the attributes of the current directory, and return to its parent."""
        left, path = self._stack.pop(), self._path
        if self._stack:
            self._path = path[: self._stack[-1].path_size]
            if self._stack[-1].descriptor is None:
                self._open_again(self._stack[-1], left)
        if left.descriptor is None:
            return
        try:
            if left.inode is not None:
                self._finish(left.descriptor, path, left.inode)
        finally:
            os.close(left.descriptor)

    def leave_all(self) -> None:
        """Leave all directories, including the target."""
        while self._stack:
            self.leave()

    def open_parent(self, path: bytes) -> int:
        """Returns a descriptor of the parent directory of `path`, which the caller closes. Raises OSError."""
        descriptor = self._stack[0].descriptor
        assert descriptor is not None
        descriptor = os.dup(descriptor)
        for part in path.split(b"/")[:-1]:
            try:
                child = os.open(part, _OPEN_FLAGS, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = child
        return descriptor

    def _close_far_ones(self) -> None:
        if len(self._stack) > _MAX_OPEN:
            far = self._stack[-_MAX_OPEN]  # never the target itself
            if far.descriptor is not None:
                far.identity = file_identity(far.descriptor)
                os.close(far.descriptor)
                far.descriptor = None

    def _open_again(self, directory: _Directory, child: _Directory) -> None:
        if directory.is_lost:
            return
        for from_child in (True, False):
            try:
                if not from_child:
                    found = self.open_parent(self._path + b"/")
                elif child.descriptor is not None:
                    found = os.open(b"..", _OPEN_FLAGS, dir_fd=child.descriptor)
                else:
                    continue
            except OSError:
                continue
            if file_identity(found) == directory.identity:
                directory.descriptor = found
                return
            os.close(found)
        directory.is_lost = True
        self._on_error(ExtractError("the directory was moved while it was extracted", path=self._path))


def _is_within(path: bytes, directory: bytes) -> bool:
    return not directory or path == directory or path.startswith(directory + b"/")


def file_identity(descriptor: int) -> tuple[int, int]:
    """Returns the device and inode numbers of an open file."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _make(name: bytes, parent: int, *, may_replace: bool) -> int:
    """Make and open a directory, or open an existing one. `may_replace` replaces an entry that is not a directory.

    Raises OSError.
    """
    num_tries = 0
    while True:
        try:
            os.mkdir(name, 0o700 if may_replace else 0o755, dir_fd=parent)
        except FileExistsError:
            pass
        try:
            return os.open(name, _OPEN_FLAGS, dir_fd=parent)
        except (NotADirectoryError, FileNotFoundError):
            # With these flags, a symlink gives ENOTDIR too.
            num_tries += 1
            if not may_replace or num_tries == _MAX_TRIES:
                raise
        try:
            os.unlink(name, dir_fd=parent)
        except (FileNotFoundError, IsADirectoryError):
            pass
