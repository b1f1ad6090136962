"""Creates files that appear complete or not at all, and of which nothing is left if the process is killed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from gompfs._native.index import columns_of
from gompfs.codec.block import Buffer
from gompfs.errors import GompfsError, PackError
from gompfs.index.image import write_image
from gompfs.index.writer import IndexWriter

_INDEX_PREFIX = "gompfs-index-"
_ACL = "system.posix_acl_access"
# Errors of O_TMPFILE, or of linking such a file, if the file system does not support it.
_CANNOT = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.EPERM, errno.EXDEV, errno.ENOSYS)


@contextmanager
def naming(archive: Path) -> Iterator[None]:
    """Turn system errors into PackErrors. They name the file of the error if it is known, or else `archive`."""
    try:
        yield
    except GompfsError as error:
        if not error.path:
            error.archive = error.archive or str(archive)
        raise
    except OSError as error:
        path = error.filename if isinstance(error.filename, (str, bytes)) else archive
        raise PackError(error.strerror or str(error), path=path) from error


class NewFile:
    """A new file for `path`, written through `descriptor`. It has no name until `publish`.

    If the file system does not support files without names, the file has a hidden name in the same folder, and is
    locked. A file with such a name and without a lock is left over from a killed process; the next NewFile removes it.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError, which names the folder."""
        self.path = path
        self.warnings: list[str] = []
        self._name: str | None = None  # the hidden name in the folder of `path`, if there is one
        self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _remove_stale(path.parent, rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
            self.descriptor = self._open()
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        except OSError as error:
            os.close(self._folder)
            raise OSError(error.errno, error.strerror, str(path.parent)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._name is not None:
            os.unlink(self._name, dir_fd=self._folder)
        os.close(self.descriptor)
        os.close(self._folder)

    def take_permissions(self, old: int) -> None:
        """Copy mode, owner, group and access list of the open file that will be replaced, as far as permitted.

        If the group or the access list cannot be copied, group and others both get only the rights that both have.
        """
        status = os.fstat(old)
        mode = stat.S_IMODE(status.st_mode)
        is_same = True
        for owner, group in ((-1, status.st_gid), (status.st_uid, -1)):
            try:
                os.fchown(self.descriptor, owner, group)
            except PermissionError:
                is_same = is_same and group == -1
        os.fchmod(self.descriptor, mode)
        try:
            os.setxattr(self.descriptor, _ACL, os.getxattr(old, _ACL))
        except OSError as error:
            is_same = is_same and error.errno in (errno.ENODATA, errno.EOPNOTSUPP)
        if not is_same:
            both = mode >> 3 & mode & 0o7
            os.fchmod(self.descriptor, mode & 0o700 | both << 3 | both)

    def publish(self, *, replace: bool) -> None:
        """Sync the file and give it its name. Raises OSError, and FileExistsError without `replace`.

        The folder is synced, too. If that fails, the file exists, and `warnings` says so.
        """
        try:
            os.fsync(self.descriptor)
            self._give_name(replace)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        try:
            os.fsync(self._folder)
        except OSError as error:
            reason = f"{error.strerror}: the new file may not survive a crash of the system"
            self.warnings.append(f"{self.path.parent}: {reason}")

    def _give_name(self, replace: bool) -> None:
        if self._name is None and not replace:
            self._link(self.descriptor, self.path.name)
            return
        if self._name is None:
            name = _temporary_name(self.path)
            self._link(self.descriptor, name)
            self._name = name
        if not replace and os.path.lexists(self.path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.rename(self._name, self.path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._name = None

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            descriptor = os.open(".", flags | os.O_TMPFILE, 0o600, dir_fd=self._folder)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
        else:
            if self._can_link():
                return descriptor
            os.close(descriptor)

        def create() -> tuple[int, str]:
            name = _temporary_name(self.path)
            return os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._folder), name

        descriptor, self._name = _create_locked(create)
        return descriptor

    def _can_link(self) -> bool:
        """Returns whether files without names can be linked here. Tested early, before the file is written."""
        name = _temporary_name(self.path)
        descriptor = os.open(".", os.O_RDWR | os.O_CLOEXEC | os.O_TMPFILE, 0o600, dir_fd=self._folder)
        try:
            self._link(descriptor, name)
            os.unlink(name, dir_fd=self._folder)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
            return False
        finally:
            os.close(descriptor)
        return True

    def _link(self, descriptor: int, name: str) -> None:
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=self._folder, follow_symlinks=True)


class TemporaryIndex:
    """A new index, which `writer` writes to an unlinked file in $TMPDIR."""

    def __init__(self, base: Buffer | None = None) -> None:
        """`base` are the columns of the index to extend. Raises OSError, which names the folder."""
        folder = tempfile.gettempdir()
        try:
            _remove_stale(Path(folder), rf"{_INDEX_PREFIX}[a-z0-9_]{{8}}")
            self._descriptor, name = _create_locked(partial(tempfile.mkstemp, prefix=_INDEX_PREFIX))
            try:
                if base is not None:
                    write_image(base, self._descriptor)
                self.writer = IndexWriter(Path(name))
            except BaseException:
                os.close(self._descriptor)
                raise
            finally:
                os.unlink(name)
        except OSError as error:
            raise OSError(error.errno, error.strerror, folder) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.abandon()
        os.close(self._descriptor)

    def finish(self) -> tuple[Buffer, list[int]]:
        """Finish the index. Returns its columns, and where each of them ends."""
        self.writer.finish()
        return columns_of(self._descriptor)


def _create_locked(create: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Returns the descriptor and name of a new, locked file.

    Before the file is locked, another process may take it for stale and remove it; then another file is created.
    """
    while True:
        descriptor, name = create()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, name
        os.close(descriptor)


def _temporary_name(path: Path) -> str:
    return f".{path.name}.{secrets.token_hex(4)}.tmp"


def _remove_stale(folder: Path, pattern: str) -> None:
    """Remove this user's files with such names that are not locked: processes that were killed have left them."""
    is_temporary = re.compile(pattern).fullmatch
    with os.scandir(folder) as listing:
        names = [item.name for item in listing if is_temporary(item.name) and item.is_file(follow_symlinks=False)]
    for name in names:
        path = folder / name
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_uid == os.geteuid():
                path.unlink(missing_ok=True)
        except OSError:
            pass  # locked: it is being written
        finally:
            os.close(descriptor)
