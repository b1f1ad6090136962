"""The mount table of the kernel.

Nothing here accesses a mounted file system: one whose daemon hangs would never answer.
"""

from __future__ import annotations

import os

from gompfs.light_types import NamedTuple

_TABLE = "/proc/self/mountinfo"
_GOMPFS = "fuse.gompfs"
_AUTOMOUNT = "autofs"
_MAX_SYMLINKS = 40  # the kernel's limit


class MountEntry(NamedTuple):
    """One mount: device number MAJOR:MINOR, mount point, file system type, source, mount id, and what is mounted.

    `root` is the path in the file system that is shown at the mount point: / but for bind mounts. `owner` is the user
    who has made a FUSE mount.
    """

    device: str
    mountpoint: str
    file_system: str
    source: str
    id: int = 0
    root: str = "/"
    owner: int | None = None

    @property
    def is_gompfs(self) -> bool:
        """Whether a gompfs daemon serves the mount, or served it before it died."""
        return self.file_system == _GOMPFS

    @property
    def is_fuse(self) -> bool:
        """Whether a FUSE daemon serves the mount, or served it before it died."""
        return self.file_system.startswith("fuse")

    @property
    def is_automount(self) -> bool:
        """Whether this is an autofs trigger: the first access to it makes autofs mount a file system over it."""
        return self.file_system == _AUTOMOUNT


def read_mount_table() -> list[MountEntry]:
    """Returns all mounts that this process sees, in the order in which they were made."""
    entries = []
    with open(_TABLE, "rb") as file:
        lines = file.read().splitlines()
    for line in lines:
        head, _, tail = line.partition(b" - ")
        fields = head.split(b" ")
        device, root, mountpoint = map(_unescape, (fields[2], fields[3], fields[4]))
        file_system, source = map(_unescape, tail.split(b" ")[:2])
        owner = _owner(tail.split(b" ")[-1])
        entries.append(MountEntry(device, mountpoint, file_system, source, int(fields[0]), root, owner))
    return entries


def _owner(options: bytes) -> int | None:
    """Returns the user in the options of a FUSE mount; None if there is none."""
    prefix = b"user_id="
    return next((int(item[len(prefix) :]) for item in options.split(b",") if item.startswith(prefix)), None)


def mount_at(mountpoint: str) -> MountEntry | None:
    """Returns the topmost mount at a path without symlinks, or None if the path is not the root of a mount."""
    wanted = os.path.abspath(mountpoint)
    found = [entry for entry in read_mount_table() if entry.mountpoint == wanted]
    if not found:
        return None
    try:
        seen = _mount_id(wanted)
    except (FileNotFoundError, NotADirectoryError):
        return None  # another mount hides the directory
    except OSError:
        return found[-1]
    return next((entry for entry in found if entry.id == seen), None)


def resolve_mountpoint(path: str) -> str:
    """Returns the path without symlinks. If a mount is at the path itself, the mount is not accessed."""
    for _ in range(_MAX_SYMLINKS):
        absolute = os.path.abspath(path)
        mountpoints = {entry.mountpoint for entry in read_mount_table()}
        if absolute in mountpoints:
            return absolute
        directory, name = os.path.split(path.rstrip("/"))
        if name in ("", ".", ".."):
            return os.path.realpath(path)
        resolved = os.path.join(os.path.realpath(directory), name)
        if resolved in mountpoints or not os.path.islink(resolved):
            return resolved
        path = os.path.join(os.path.dirname(resolved), os.readlink(resolved))
    return os.path.realpath(path)


def _mount_id(path: str) -> int:
    """Returns the id of the mount that a path leads to, without accessing the mounted file system. Raises OSError."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        with open(f"/proc/self/fdinfo/{descriptor}") as file:
            lines = file.read().splitlines()
    finally:
        os.close(descriptor)
    return next(int(line.removeprefix("mnt_id:")) for line in lines if line.startswith("mnt_id:"))


def _unescape(field: bytes) -> str:
    """Returns a field with its octal escapes decoded, which stand for spaces, tabs, newlines and backslashes."""
    parts = field.split(b"\\")
    return os.fsdecode(parts[0] + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in parts[1:]))
