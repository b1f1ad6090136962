"""Who may read the statistics of a mount: only users who may read the files that a statistic counts.

A statistic of all files is readable by the mounting user alone, unless every user may read every file by its mode and
ACL. Entries in `stats/files/PATH` have the permissions of the file PATH, also its ACL. The directories above them have
the permissions of the corresponding directories of the archive.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable

from gompfs.archive import Archive
from gompfs.errors import GompfsError
from gompfs.log import Logger
from gompfs.model import ACCESS_ACL, ROOT_INO, Inode
from gompfs.mount.access_lists import everybody_may, mapped_acl
from gompfs.options import MountOptions

log = Logger(__name__)

_OWNER, _GROUP, _OTHERS = 6, 3, 0  # right shift of the mode for each class of users
_READ, _READ_AND_SEARCH = 4, 5
_MAX_ACLS = 1000  # different ones that are looked at; with more, statistics belong to the mounting user


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

    def of_link(self, inode: Inode) -> Inode:
        """Returns the inode of a symlink. As on Linux, every user may read it, and its target has permissions."""
        return self._own(inode)._replace(mode=stat.S_IFLNK | 0o777)

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
        change = _change_of_rights(inode, entry)
        rights = [change(shown.mode >> shift & 7) << shift for shift in (_OWNER, _GROUP, _OTHERS)]
        return inode._replace(mode=stat.S_IFMT(inode.mode) | sum(rights), uid=shown.uid, gid=shown.gid)

    def acl_of_entry(self, inode: Inode, entry: Inode) -> bytes | None:
        """Returns the access ACL of a virtual entry that describes `entry`, or None if it has none."""
        if self._options.stats_public or (entry.ino == ROOT_INO and not self._shows_all):
            return None
        acl = self._archive.xattrs(entry.ino).get(ACCESS_ACL)
        return None if acl is None else mapped_acl(acl, self._own(entry).mode, _change_of_rights(inode, entry))

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
            acls = self._archive.index.access_acls(_MAX_ACLS)
        except GompfsError as error:
            log.warning("the statistics belong to the mounting user: %s", error)
            return mounting_user
        shown = [mode & ~options.umask for mode in modes]
        # A mode such as 0604 refuses to the group what others may do.
        if all(_may_read_all(shown, users) for users in (_OWNER, _GROUP, _OTHERS)) and self._all_may_read(acls):
            return None
        if options.uid is not None and _may_read_all(shown, _OWNER):
            return options.uid, mounting_user[1] if options.gid is None else options.gid
        return mounting_user

    def _all_may_read(self, acls: list[tuple[int, bytes]]) -> bool:
        """Returns whether no ACL, of those with the mode of their file, refuses anybody to read or search."""
        umask = self._options.umask
        return len(acls) < _MAX_ACLS and all(
            everybody_may(acl, mode & ~umask, _READ_AND_SEARCH if stat.S_ISDIR(mode) else _READ) for mode, acl in acls
        )


def _change_of_rights(inode: Inode, entry: Inode) -> Callable[[int], int]:
    """Returns how the rights to a virtual entry follow from those to the archive's entry that it describes.

    Both are digits of a mode.
    """
    if not stat.S_ISDIR(inode.mode):
        return lambda rights: rights & _READ
    if stat.S_ISDIR(entry.mode):
        return lambda rights: rights & _READ_AND_SEARCH
    # Users who may read a file may list and search the directory of its statistics.
    return lambda rights: _READ_AND_SEARCH if rights & _READ else 0


def _may_read_all(modes: list[int], shift: int) -> bool:
    """Returns whether modes let a class of users read all regular files, and list and search all directories."""
    return all(
        (not stat.S_ISREG(mode) or mode >> shift & _READ)
        and (not stat.S_ISDIR(mode) or mode >> shift & _READ_AND_SEARCH == _READ_AND_SEARCH)
        for mode in modes
    )
