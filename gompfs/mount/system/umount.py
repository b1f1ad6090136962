"""Unmounting, and the state of mount points.

A mount whose daemon hangs never answers, and a process that accesses such a mount cannot even be killed. So this module
reads the kernel's mount table instead, and where only the mount itself can tell, a child process asks it (see
questions.py).
"""

from __future__ import annotations

import errno
import os
from enum import Enum

from gompfs.errors import MountError, display_path
from gompfs.mount.system.mount_table import MountEntry, mount_at, resolve_mountpoint
from gompfs.mount.system.questions import ask

_SECONDS = 1.0  # timeout for the answer of a daemon
_ERRORS = {errno.EBUSY: "target is busy", errno.EPERM: "unmounting is not permitted here"}


class DaemonState(Enum):
    """Whether the daemon of a mount answers, hangs, or is dead."""

    SERVING = b"s"
    DEAD = b"d"
    SILENT = b""


def daemon_state(mountpoint: str) -> DaemonState:
    """Returns the state of a mount's daemon: SILENT if it does not answer within one second."""
    return DaemonState(ask({mountpoint: lambda: _state(mountpoint).value}, _SECONDS).get(mountpoint, b""))


def is_stale(mountpoint: str) -> bool:
    """Returns whether the daemon of a mount has died, so that every access fails."""
    return daemon_state(mountpoint) is DaemonState.DEAD


def check_mountpoint(mountpoint: str) -> None:
    """Raise MountError unless an archive can be mounted there. The last directory of the path need not exist."""
    mount = mount_at(mountpoint)
    if mount is not None and not mount.is_automount:
        raise MountError(_why_taken(mount), path=mountpoint)
    if os.path.isdir(mountpoint):
        return
    if os.path.lexists(mountpoint):
        raise MountError("the mount point is not a directory", path=mountpoint)
    if not os.path.isdir(os.path.dirname(mountpoint)):
        raise MountError("the directory of the mount point does not exist", path=mountpoint)


def hides_entries(mountpoint: str) -> bool:
    """Returns whether a mount hides what a directory has, as with mount(8)."""
    mountpoint = resolve_mountpoint(mountpoint)
    if mount_at(mountpoint) is not None:
        return False
    try:
        with os.scandir(mountpoint) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _why_taken(mount: MountEntry) -> str:
    state = daemon_state(mount.mountpoint) if mount.is_fuse else DaemonState.SERVING
    if state is DaemonState.SILENT:
        return "the daemon of the mount here does not answer; gompfs umount --lazy detaches the mount"
    if state is DaemonState.DEAD:
        return f"the daemon of the {mount.file_system} mount here has died; unmount it first"
    return "something is mounted here already"


def clear_dead_mounts(mountpoint: str) -> bool:
    """Unmount gompfs mounts whose daemons have died. Returns whether there were any. Raises MountError."""
    mountpoint = resolve_mountpoint(mountpoint)
    found = False
    while (mount := mount_at(mountpoint)) is not None and mount.is_gompfs and is_stale(mountpoint):
        _unmount(mount, lazy=True)
        found = True
    return found


def unmount(mountpoint: str, *, lazy: bool = False, force: bool = False) -> None:
    """Unmount an archive, even if the daemon has died. Raises MountError, also for a mount that is not of gompfs.

    `lazy` detaches a mount that is in use. `force` first makes all unanswered requests fail.
    """
    mountpoint = resolve_mountpoint(mountpoint)
    mount = mount_at(mountpoint)
    if mount is None:
        raise MountError("nothing is mounted here", path=mountpoint)
    if not mount.is_gompfs:
        kind = display_path(mount.file_system)
        raise MountError(f"a file system of type {kind} is mounted here, not an archive; use umount", path=mountpoint)
    try:
        _unmount(mount, lazy=lazy or force, force=force)
    except MountError as error:
        state = DaemonState.SERVING if lazy or force else daemon_state(mountpoint)
        if state is DaemonState.SERVING:
            raise
        if state is DaemonState.SILENT:
            reason = f"{error.message}, and its daemon does not answer; use --lazy or --force"
            raise MountError(reason, path=mountpoint) from error
        _unmount(mount, lazy=True)  # the daemon is dead: programs that use the mount get only errors


def _unmount(mount: MountEntry, *, lazy: bool, force: bool = False) -> None:
    if os.geteuid() != 0:
        from gompfs.mount.system.fusermount import fusermount_unmount

        try:
            if force:
                _abort(mount)
            fusermount_unmount(mount.mountpoint, lazy=lazy)
        except MountError as error:
            if mount.owner in (None, os.getuid()):
                raise
            owner = _user_name(mount.owner)
            others = "root" if owner == "root" else f"{owner} or root"
            reason = f"this is a mount of {owner}; only {others} can unmount it"
            raise MountError(reason, path=mount.mountpoint) from error
        return
    from gompfs._native.fuse import unmount as umount2

    number = umount2(os.fsencode(mount.mountpoint), lazy, force)
    if number != 0:
        raise MountError(_ERRORS.get(number) or os.strerror(number), path=mount.mountpoint)


def _user_name(uid: int) -> str:
    import pwd

    try:
        return display_path(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return f"user {uid}"


def _abort(mount: MountEntry) -> None:
    """Abort the kernel's connection to a FUSE daemon, which its owner may do."""
    control = f"/sys/fs/fuse/connections/{mount.device.partition(':')[2]}/abort"
    try:
        with open(control, "wb") as file:
            file.write(b"1")
    except OSError as error:
        raise MountError(f"the mount cannot be forced: {control}: {error.strerror}", path=mount.mountpoint) from error


def _state(mountpoint: str) -> DaemonState:
    """Returns the state of the daemon. Blocks until the daemon answers."""
    try:
        os.statvfs(mountpoint)  # statvfs is never answered from the kernel's cache, unlike stat
    except OSError as error:
        return DaemonState.DEAD if error.errno in (errno.ENOTCONN, errno.ECONNABORTED) else DaemonState.SERVING
    return DaemonState.SERVING
