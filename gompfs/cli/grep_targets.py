"""What `gompfs grep` searches: archives, named by their paths or by paths in mounts of them.

The inode numbers in a mount say what a path is in the archive, whatever directory of the archive the mount shows. They
are given to the daemon, or, if that cannot search, looked up in the archive.
"""

from __future__ import annotations

import os
import stat

from gompfs.errors import GompfsError, MountError, display_path
from gompfs.format import SUPERBLOCK_MAGIC
from gompfs.light_types import TYPE_CHECKING, NamedTuple
from gompfs.model import MAX_INO, ROOT_INO
from gompfs.remote import is_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gompfs.archive import Archive
    from gompfs.mount.system.mount_table import MountEntry


class Target(NamedTuple):
    """An archive to search, as the user named it."""

    name: str
    archive: str
    mountpoint: str | None = None
    """If `name` is a path in a mount: where that is mounted. For a path in a bind mount, if possible the mount point
    of the whole."""

    def check_readable(self) -> None:
        """Raises MountError if `archive` cannot be opened in place of the mount."""
        if self.mountpoint is None:
            return
        if os.path.exists(self.archive) and not os.access(self.archive, os.R_OK):
            raise MountError(
                f"{display_path(self.name)} is in a mount of {display_path(self.archive)}, which you may not read; "
                "what you may read in the mount can be searched with rg or grep -r"
            )
        if not is_archive(self.archive):
            raise MountError(
                f"{display_path(self.name)} is in a mount of several archives, or of one that was removed; "
                "name the archives"
            )

    def entries(self, paths: Sequence[str]) -> list[os.stat_result] | None:
        """Returns the status of what `paths` name in the mount; None if one of them names nothing, or what is outside.

        Symlinks are followed, as in the archive.
        """
        assert self.mountpoint is not None
        try:
            device = os.stat(self.mountpoint).st_dev
            # A slash after the name of a file is an error.
            found = [os.stat(os.path.join(self.name, path) if path else self.name) for path in paths]
        except OSError:
            return None
        return found if all(status.st_dev == device for status in found) else None

    def path_in(self, archive: Archive) -> bytes:
        """Returns the path in the archive that is searched. Raises MountError, OSError."""
        if self.mountpoint is None:
            return b""
        status = os.stat(self.name)
        ino = _archive_ino(status.st_ino)
        if ino == ROOT_INO:
            return archive.path_of(_shown_root(archive, self.name))
        if not _is_inode(archive, ino, status):
            raise _shows_another(self.name, archive)
        return archive.path_of(ino)


def target_of(name: str) -> Target:
    """Returns what an argument names."""
    mount = None if is_archive(name) else _mount_of(name)
    return Target(name, name) if mount is None else Target(name, mount.source, mount.mountpoint)


def names_target(path: str) -> bool:
    """Returns whether a path is that of an archive, or in a mount of one."""
    return is_archive(path) or _mount_of(path) is not None


def is_archive(path: str) -> bool:
    """Returns whether a local file begins as archives do, or a URL is given. Does not wait for a writer of a FIFO."""
    if is_url(path):
        return True
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            return file.read(len(SUPERBLOCK_MAGIC)) == SUPERBLOCK_MAGIC
    except OSError:
        return False


def _mount_of(path: str) -> MountEntry | None:
    """Returns the mount of gompfs that a path is in; None if there is none.

    In a bind mount of a part of it, the mount of the whole, which has the address of the daemon, if that can be seen.
    """
    from gompfs.mount.system.mount_table import read_mount_table

    device = _device_of(path)
    mounts = [entry for entry in read_mount_table() if entry.device == device and entry.is_gompfs]
    whole = (entry for entry in mounts if entry.root == "/" and _device_of(entry.mountpoint) == device)
    return next(whole, mounts[0] if mounts else None)


def _device_of(path: str) -> str:
    """Returns the number of the file system that has a path, as mount tables write it. A path may name nothing."""
    for existing in (path, os.path.dirname(os.path.realpath(path))):
        try:
            number = os.stat(existing).st_dev
        except OSError:
            continue
        return f"{os.major(number)}:{os.minor(number)}"
    return ""


def _archive_ino(ino: int) -> int:
    """Returns the inode number in the archive. With `-o follow`, the upper bits are the number of the snapshot."""
    from gompfs._native.fuse import SNAPSHOT_SHIFT

    return ino if ino >= MAX_INO else ino & ((1 << SNAPSHOT_SHIFT) - 1)


def _is_inode(archive: Archive, ino: int, status: os.stat_result) -> bool:
    """Returns whether the archive has a file or directory of a mount. Owner and mode may be those of the mount."""
    try:
        inode = archive.inode(ino)
    except GompfsError:
        return False
    shown = (stat.S_IFMT(status.st_mode), status.st_mtime_ns)
    return shown == (stat.S_IFMT(inode.mode), inode.mtime_ns)


def _shown_root(archive: Archive, root: str) -> int:
    """Returns the inode number of the directory that a mount shows as its `root`, where it has the number ROOT_INO.

    It is the one with the same entries. Raises MountError if there is none.
    """
    with os.scandir(os.fsencode(root)) as scan:
        entries = {entry.name: entry.inode() for entry in scan}
    shown = {name: _archive_ino(ino) for name, ino in entries.items() if ino < MAX_INO}
    for ino in (ROOT_INO, *_parents(archive, shown)):
        if {entry.name: entry.inode.ino for entry in archive.index.directory(ino)} == shown:
            return ino
    raise _shows_another(root, archive)


def _parents(archive: Archive, shown: dict[bytes, int]) -> set[int]:
    """Returns the directories that one of some entries may be in: one, unless these are hard links."""
    found = map(archive.index.name_of, shown.values())
    return {parent_and_name[0] for parent_and_name in found if parent_and_name is not None}


def _shows_another(path: str, archive: Archive) -> MountError:
    return MountError(f"{display_path(path)}: the mount does not show what {display_path(archive.path)} now has")
