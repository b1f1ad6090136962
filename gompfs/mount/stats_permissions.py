"""Who may read the statistics of a mount: only users who may read the files that a statistic counts.

A statistic of all files is readable by the mounting user alone, unless every user may read every file. Entries in
`stats/files/PATH` have the permissions of the file PATH. The directories above them have the permissions of the
corresponding directories of the archive.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable

from gompfs.archive import Archive
from gompfs.errors import GompfsError
from gompfs.model import ROOT_INO, Inode
from gompfs.options import MountOptions

log = logging.getLogger(__name__)

_OWNER, _GROUP, _OTHERS = 6, 3, 0  # right shift of the mode for each class of users
_READ, _READ_AND_SEARCH = 4, 5


class StatsPermissions:
    """Sets the owners and modes of virtual entries. Thread-safe."""

    def __init__(self, archive: Archive, options: MountOptions, shown_root: int, own: Callable[[Inode], Inode]) -> None:
        """`shown_root` is the inode shown as the mount's root.

        `own` applies the mount's uid, gid and umask to an inode.
        """
        self._archive = archive
        self._options = options
        self._shows_all = shown_root == ROOT_INO
        self._own = own
        self._lock = threading.Lock()
        self._owner: tuple[int, int] | None = None
        self._is_known = False

    def everybody(self, inode: Inode) -> Inode:
        """Returns the inode with a mode that lets all users read it."""
        is_directory = stat.S_ISDIR(inode.mode)
        return self._own(inode._replace(mode=stat.S_IFDIR | 0o555 if is_directory else stat.S_IFREG | 0o444))

    def of_all_files(self, inode: Inode) -> Inode:
        """Returns the inode with the permissions of a statistic over all files, or a directory of these."""
        owner = self._private_owner()
        if owner is None:
            return self.everybody(inode)
        is_directory = stat.S_ISDIR(inode.mode)
        mode = stat.S_IFDIR | 0o500 if is_directory else stat.S_IFREG | 0o400
        return inode._replace(mode=mode, uid=owner[0], gid=owner[1])

    def of_entry(self, inode: Inode, entry: Inode) -> Inode:
        """Returns the inode of a virtual entry with the permissions of the archive's entry that it describes."""
        if self._options.stats_public:
            return self.everybody(inode)
        if entry.ino == ROOT_INO and not self._shows_all:
            return self.of_all_files(inode)  # the mount does not show everything below
        shown = self._own(entry)
        mode = shown.mode & 0o555
        if stat.S_ISDIR(inode.mode) and not stat.S_ISDIR(entry.mode):
            mode = shown.mode & 0o444
            mode |= mode >> 2  # users who may read the file may search the directory of its statistics
        elif not stat.S_ISDIR(inode.mode):
            mode = shown.mode & 0o444
        return inode._replace(mode=stat.S_IFMT(inode.mode) | mode, uid=shown.uid, gid=shown.gid)

    def _private_owner(self) -> tuple[int, int] | None:
        """Returns uid and gid of the only user who may read statistics of all files, or None if all users may."""
        with self._lock:
            if not self._is_known:
                self._owner = self._find_owner()
                self._is_known = True
            return self._owner

    def _find_owner(self) -> tuple[int, int] | None:
        options = self._options
        if options.stats_public:
            return None
        mounting_user = os.getuid(), os.getgid()
        if not self._shows_all:
            return mounting_user
        try:
            modes = self._archive.index.modes()
        except GompfsError as error:
            log.warning("the statistics belong to the mounting user: %s", error)
            return mounting_user
        shown = [mode & ~options.umask for mode in modes]
        # A mode such as 0604 refuses to the group what others may do.
        if all(_may_read_all(shown, users) for users in (_OWNER, _GROUP, _OTHERS)):
            return None
        if options.uid is not None and _may_read_all(shown, _OWNER):
            return options.uid, mounting_user[1] if options.gid is None else options.gid
        return mounting_user


def _may_read_all(modes: list[int], shift: int) -> bool:
    """Returns whether modes let a class of users read all regular files, and list and search all directories."""
    return all(
        (not stat.S_ISREG(mode) or mode >> shift & _READ)
        and (not stat.S_ISDIR(mode) or mode >> shift & _READ_AND_SEARCH == _READ_AND_SEARCH)
        for mode in modes
    )
