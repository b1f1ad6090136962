"""Kernel settings of a mount that only root may change."""

from __future__ import annotations

import errno
import os

from gompfs.log import Logger
from gompfs.mount.system.mount_table import mount_at

log = Logger(__name__)


def set_read_ahead(mountpoint: str, size: int) -> None:
    """Set the kernel's read-ahead to `size` bytes. If that is not permitted, it stays as it is.

    From 1 MiB on, the kernel's read requests are 1 MiB each rather than 128 KiB, which nearly doubles the speed of
    sequential reads. With 4 MiB, several requests are in flight at once, for as many threads.
    """
    mount = mount_at(mountpoint)
    if mount is None:
        return
    try:
        with open(f"/sys/class/bdi/{mount.device}/read_ahead_kb", "w") as file:
            file.write(str(size >> 10))
    except OSError as error:
        if error.errno not in (errno.ENODEV, errno.ENOENT):  # unmounted meanwhile
            # Only root may change the setting: other users get no message for each of their mounts.
            tell = log.info if os.geteuid() == 0 else log.debug
            tell("read-ahead stays at the kernel's default: %s", error)
