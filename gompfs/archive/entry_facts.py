"""What listings of entries in JSON say."""

from __future__ import annotations

import os
import stat

from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from gompfs.model import Inode

_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def entry_facts(path: bytes, inode: Inode) -> dict[str, Any]:
    """Returns the facts about the entry at a path by their JSON keys. Other bytes than UTF-8 are lone surrogates."""
    facts: dict[str, Any] = {
        "path": os.fsdecode(path),
        "type": _TYPES.get(stat.S_IFMT(inode.mode), "unknown"),
        "ino": inode.ino,
        "mode": f"{stat.S_IMODE(inode.mode):04o}",
        "uid": inode.uid,
        "gid": inode.gid,
        "size": inode.size,
        "mtime_ns": inode.mtime_ns,
        "nlink": inode.nlink,
    }
    if inode.symlink_target is not None:
        facts["symlink_target"] = os.fsdecode(inode.symlink_target)
    if stat.S_ISCHR(inode.mode) or stat.S_ISBLK(inode.mode):
        facts["device"] = [os.major(inode.rdev), os.minor(inode.rdev)]
    return facts
