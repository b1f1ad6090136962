"""Mounts on /dev/fuse without libfuse: root by mount(2), other users by fusermount3."""

from __future__ import annotations

import errno
import os
import select
import stat

from gompfs._native.fuse import mount_read_only, unmount
from gompfs.errors import MountError
from gompfs.mount.fuse.fuse_options import SUBTYPE, fuse_options
from gompfs.mount.system.fusermount import fusermount_mount, fusermount_unmount, has_fusermount
from gompfs.mount.system.mount_table import mount_at
from gompfs.options import MountOptions

_DEVICE = "/dev/fuse"
_DEVICE_ERRORS = {
    errno.ENOENT: "it does not exist; load the kernel module fuse, or add the device to the container",
    errno.ENODEV: "the kernel has no FUSE; load the module fuse",
    errno.ENXIO: "the kernel has no FUSE; load the module fuse",
    errno.EACCES: "opening it is not permitted; in a container, allow the device",
    errno.EPERM: "opening it is not permitted; in a container, allow the device",
}
_MOUNT_ERRORS = {
    errno.EPERM: "mount(2) is not permitted; a container needs CAP_SYS_ADMIN",
    errno.ENODEV: "the kernel has no FUSE; load the module fuse",
    errno.ENOSPC: "there are too many mounts (/proc/sys/fs/mount-max)",
}


class KernelMount:
    """One mount. `device` is its open /dev/fuse descriptor."""

    def __init__(self, mountpoint: str, source: str, options: MountOptions) -> None:
        """Mount at `mountpoint`. `source` is the name shown in the mount table. Raises MountError."""
        self._mountpoint = mountpoint
        device = _mount(mountpoint, source, options) if os.geteuid() == 0 else None
        self.device = fusermount_mount(mountpoint, fuse_options(source, options)) if device is None else device
        mount = mount_at(mountpoint)
        self._number = None if mount is None else mount.device

    def unmount(self) -> None:
        """Detach the mount if it is still there. Raises MountError.

        Open files stay readable while `device` is served.
        """
        poll = select.poll()
        poll.register(self.device, 0)
        if poll.poll(0):  # poll reports an error if the file system is already unmounted
            return
        mount = mount_at(self._mountpoint)
        if mount is None or mount.device != self._number:
            return
        if unmount(os.fsencode(self._mountpoint), True, False) == 0:
            return
        try:
            fusermount_unmount(self._mountpoint, lazy=True)
        except MountError:
            if mount_at(self._mountpoint) == mount:  # nobody else has unmounted it meanwhile
                raise

    def close(self) -> None:
        """Close the connection. Requests on files that are still open in the mount fail from now on."""
        os.close(self.device)


def _mount(mountpoint: str, source: str, options: MountOptions) -> int | None:
    """Mount by mount(2). Raises MountError.

    Returns the /dev/fuse descriptor, or None if mount(2) is not permitted but fusermount3 may be able to mount.
    """
    try:
        device = os.open(_DEVICE, os.O_RDWR)
    except OSError as error:
        reason = _DEVICE_ERRORS.get(error.errno or 0, error.strerror)
        raise MountError(f"{_DEVICE}: {reason}", path=mountpoint) from error
    try:
        values = {
            "fd": device,
            "rootmode": f"{stat.S_IFMT(os.stat(mountpoint).st_mode):o}",
            "user_id": os.getuid(),
            "group_id": os.getgid(),
        }
        data = ",".join(f"{name}={value}" for name, value in values.items())
        if options.allow_other:
            data += ",allow_other,default_permissions"
        shown, place = os.fsencode(options.fsname or source), os.fsencode(mountpoint)
        number = mount_read_only(shown, place, f"fuse.{SUBTYPE}".encode(), data.encode(), options.noexec)
    except BaseException:
        os.close(device)
        raise
    if number == 0:
        return device
    os.close(device)
    # In a sandbox, fusermount3 may be a wrapper that asks a process outside the sandbox to mount.
    if number == errno.EPERM and has_fusermount():
        return None
    raise MountError(_MOUNT_ERRORS.get(number) or os.strerror(number), path=mountpoint)
