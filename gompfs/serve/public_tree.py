"""The entries that a web server shows: what a mount would show, as far as everybody may read it.

A client of the server is nobody that the archive knows. So an entry is served if its mode and ACL let all users read
it, and let all users search the directories on the way to it.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

from gompfs._native.fuse import FIRST_VIRTUAL
from gompfs.archive.entries import names_in
from gompfs.model import ACCESS_ACL, ROOT_INO, Inode
from gompfs.mount.access_lists import everybody_may
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.tree.content import Content
from gompfs.mount.tree.tree import PRIVATE
from gompfs.mount.virtual_content import SEARCH_SOCKET

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.mount.tree.content import ArchiveOperations

Result = TypeVar("Result")

_READ, _SEARCH = 4, 1
_MAX_SYMLINKS = 40
_MAX_COMPUTATIONS = 4  # of statistics at once
_MAX_LISTINGS = 2  # at once: each has all entries of a directory in memory
_PATIENCE = 10.0  # seconds that a request waits for its turn
_NOBODY = -1  # the user id of clients


class PublicTree:
    """Finds and reads entries by path. Thread-safe. Raises OSError and GompfsError as the operations of a mount do."""

    def __init__(self, content: Content, *, num_archives: int, serves_all: bool) -> None:
        """Show `content`. With `serves_all`, modes and ACLs do not matter."""
        self._content = content
        self._serves_all = serves_all
        self._has_acls = content.has_acls()
        self._computations = threading.BoundedSemaphore(_MAX_COMPUTATIONS)
        self._listings = threading.BoundedSemaphore(_MAX_LISTINGS)
        # Each of several archives has a directory, which absolute links and `..` do not leave.
        self._min_depth = 1 if num_archives == 1 else 2
        self._statistics = {directory.ino for directory in content.statistics()}

    def root(self) -> Inode:
        """Returns the root directory."""
        return self._content.of(ROOT_INO).inode(ROOT_INO)

    def resolve(self, names: Sequence[bytes]) -> Inode:
        """Returns the entry at a path from the root, after following links inside the archive.

        Raises PermissionError if a directory on the way may not be searched, FileNotFoundError or another OSError if
        there is no such entry, OSError (EBUSY) if too many statistics are being computed.
        """
        path = [self.root()]
        rest = list(reversed(names))
        num_links = 0
        while rest:
            name = rest.pop()
            directory = path[-1]
            if not stat.S_ISDIR(directory.mode):
                raise _error(errno.ENOTDIR)
            if name == b"..":
                if len(path) > self._min_depth:
                    path.pop()
                continue
            child = self._lookup(directory, name)
            if stat.S_ISLNK(child.mode):
                num_links += 1
                if num_links > _MAX_SYMLINKS:
                    raise _error(errno.ELOOP)
                target = child.symlink_target or b""
                if target.startswith(b"/"):
                    del path[self._min_depth :]
                rest.extend(reversed(names_in(target)))
            else:
                path.append(child)
        return path[-1]

    def _lookup(self, directory: Inode, name: bytes) -> Inode:
        """Returns the entry of a directory that has a name. Computes the size of a statistic."""
        self._require(directory, _SEARCH)
        if name == SEARCH_SOCKET and directory.ino in self._statistics:
            raise _error(errno.ENOENT)  # it is for programs on this machine
        operations = self._content.of(directory.ino)
        user = 0 if self._serves_all else _NOBODY
        if directory.ino < FIRST_VIRTUAL:
            child = operations.lookup(directory.ino, name, user)
        else:
            with _turn(self._computations):
                child = _awaited(lambda: operations.lookup(directory.ino, name, user))
        if child is None:
            raise _error(errno.ENOENT)
        return child

    @contextmanager
    def entries(self, directory: Inode) -> Iterator[Sequence[tuple[bytes, Inode]]]:
        """Gives the entries of a directory in byte order of their names. Raises PermissionError, OSError (EBUSY)."""
        self._require(directory, _READ | _SEARCH)
        with _turn(self._listings):
            found = self._content.of(directory.ino).children(directory.ino)
            yield [entry for entry in found if entry[0] != PRIVATE or not is_statistic(entry[1])]

    def read(self, file: Inode, file_offset: int, size: int) -> bytes:
        """Returns up to `size` bytes of a file. Raises PermissionError."""
        self._require(file, _READ)
        operations = self._content.of(file.ino)
        return b"".join(_awaited(lambda: operations.read(file.ino, file_offset, size)))

    def version(self, file: Inode) -> str | None:
        """Returns a name for the content of a file that no other content has, or None for a statistic."""
        if is_statistic(file):
            return None
        archive = self._archive_of(file)
        footer = archive.footer
        return f"{archive.superblock.uuid.hex()}-{footer.generation}-{footer.columns_xxh3:x}-{file.ino:x}"

    def is_text(self, file: Inode) -> bool:
        """Returns whether a file is text: a statistic, or a file that has statistics."""
        if is_statistic(file):
            return True
        found = self._content.of(file.ino).archive_inode(file.ino)
        return found is not None and not self._archive_of(file).index.is_binary_file(found.ino)

    def _archive_of(self, file: Inode) -> Archive:
        return cast("ArchiveOperations", self._content.of(file.ino)).archive  # only directories belong to several

    def may_read(self, entry: Inode) -> bool:
        """Returns whether an entry can be read, and a directory listed, as far as its own permissions go."""
        return self._may(entry, _READ | _SEARCH if stat.S_ISDIR(entry.mode) else _READ)

    def _require(self, entry: Inode, rights: int) -> None:
        if not self._may(entry, rights):
            raise _error(errno.EACCES)

    def _may(self, entry: Inode, rights: int) -> bool:
        for_everybody = rights * 0o111
        if self._serves_all:
            return True
        if entry.mode & for_everybody != for_everybody:
            return False
        acl = self._content.of(entry.ino).xattrs(entry.ino).get(ACCESS_ACL) if self._has_acls else None
        return acl is None or everybody_may(acl, entry.mode, rights)


def is_statistic(entry: Inode) -> bool:
    """Returns whether an entry belongs to the statistics, not to an archive."""
    return entry.ino >= FIRST_VIRTUAL


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _awaited(compute: Callable[[], Result]) -> Result:
    """Returns what `compute` returns when its text is there."""
    while True:
        try:
            return compute()
        except NotReadyError as error:
            ready = threading.Event()
            error.call_later(ready.set)
            ready.wait()


@contextmanager
def _turn(turns: threading.Semaphore) -> Iterator[None]:
    if not turns.acquire(timeout=_PATIENCE):
        raise _error(errno.EBUSY)
    try:
        yield
    finally:
        turns.release()
