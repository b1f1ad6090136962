"""Unmounting, and telling what state a mount point is in."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

from gompfs.errors import MountError
from gompfs.mount.mount_table import mount_at


def is_stale(mountpoint: str) -> bool:
    """Whether the daemon behind a mount has died, so that every access fails."""
    try:
        os.statvfs(mountpoint)  # which is never answered from a cache, as stat is
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def check_mountpoint(mountpoint: str) -> None:
    """Raise MountError unless an archive can be mounted there."""
    if is_stale(mountpoint):
        raise MountError("what is mounted here does not answer any more, and is none of gompfs", path=mountpoint)
    if not Path(mountpoint).is_dir():
        raise MountError("the mount point is no directory", path=mountpoint)
    mount = mount_at(mountpoint)
    if mount is not None and not mount.is_automount and os.path.ismount(mountpoint):
        raise MountError("something is mounted here already", path=mountpoint)


def clear_dead_mounts(mountpoint: str) -> bool:
    """Unmount gompfs mounts whose daemons were killed; whether there were any. Raises MountError."""
    mountpoint = os.path.realpath(mountpoint)
    found = False
    while is_stale(mountpoint) and (mount := mount_at(mountpoint)) is not None and mount.is_gompfs:
        unmount(mountpoint)
        found = True
    return found


def unmount(mountpoint: str, *, lazy: bool = False) -> None:
    """Unmount; `lazy` lets go of a mount that is in use. Also clears one whose daemon has died."""
    if mount_at(os.path.realpath(mountpoint)) is None:
        raise MountError("nothing is mounted here", path=mountpoint)
    stale = is_stale(mountpoint)
    command = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
    if lazy or stale:
        command.append("-l" if command[0] == "umount" else "-z")
    result = subprocess.run([*command, "--", mountpoint], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        reason = result.stderr.strip().rpartition(": ")[2].rstrip(".") or "umount failed"
        raise MountError(reason, path=mountpoint)
