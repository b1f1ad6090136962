"""What is mounted where, as the kernel tells it. No mount is asked: one whose daemon hangs would not answer."""

from __future__ import annotations

import os
from typing import NamedTuple

_TABLE = "/proc/self/mountinfo"
_GOMPFS = "fuse.gompfs"
_AUTOMOUNT = "autofs"
_MAX_SYMLINKS = 40  # as the kernel has it


class MountEntry(NamedTuple):
    """A mount: its device number MAJOR:MINOR, where it is, its file system, what is mounted, its id."""

    device: str
    mountpoint: str
    file_system: str
    source: str
    id: int = 0

    @property
    def is_gompfs(self) -> bool:
        """Whether a gompfs daemon serves it, or has served it."""
        return self.file_system == _GOMPFS

    @property
    def is_fuse(self) -> bool:
        """Whether a daemon serves it, or has served it."""
        return self.file_system.startswith("fuse")

    @property
    def is_automount(self) -> bool:
        """Whether it only waits for somebody to look, and then has something mounted over it."""
        return self.file_system == _AUTOMOUNT


def read_mount_table() -> list[MountEntry]:
    """All mounts that this process sees, in the order in which they were made."""
    entries = []
    with open(_TABLE, "rb") as file:
        lines = file.read().splitlines()
    for line in lines:
        head, _, tail = line.partition(b" - ")
        fields = head.split(b" ")
        device, mountpoint, file_system, source = map(_unescape, (fields[2], fields[4], *tail.split(b" ")[:2]))
        entries.append(MountEntry(device, mountpoint, file_system, source, int(fields[0])))
    return entries


def mount_at(mountpoint: str) -> MountEntry | None:
    """The topmost mount at a path without symlinks, None if the path is not the root of a mount."""
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
    """The path without symlinks, for which no mount at the path itself is asked."""
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
    """The id of the mount that a path leads to; the mount itself is not asked. Raises OSError."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        with open(f"/proc/self/fdinfo/{descriptor}") as file:
            lines = file.read().splitlines()
    finally:
        os.close(descriptor)
    return next(int(line.removeprefix("mnt_id:")) for line in lines if line.startswith("mnt_id:"))


def _unescape(field: bytes) -> str:
    """A field with its spaces, tabs, newlines and backslashes, which are written as octal numbers."""
    parts = field.split(b"\\")
    return os.fsdecode(parts[0] + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in parts[1:]))
