"""What is mounted where, as the kernel tells it. No mount is asked: one whose daemon hangs would not answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_TABLE = Path("/proc/self/mountinfo")
_GOMPFS = "fuse.gompfs"
_AUTOMOUNT = "autofs"


class MountEntry(NamedTuple):
    """A mount: its device number MAJOR:MINOR, where it is, its file system, what is mounted."""

    device: str
    mountpoint: str
    file_system: str
    source: str

    @property
    def is_gompfs(self) -> bool:
        """Whether a gompfs daemon serves it, or has served it."""
        return self.file_system == _GOMPFS

    @property
    def is_automount(self) -> bool:
        """Whether it only waits for somebody to look, and then has something mounted over it."""
        return self.file_system == _AUTOMOUNT


def read_mount_table() -> list[MountEntry]:
    """All mounts that this process sees, in the order in which they were made."""
    entries = []
    for line in _TABLE.read_bytes().splitlines():
        head, _, tail = line.partition(b" - ")
        fields, (file_system, source) = head.split(b" "), tail.split(b" ")[:2]
        texts = map(_unescape, (fields[2], fields[4], file_system, source))
        entries.append(MountEntry(*texts))
    return entries


def mount_at(mountpoint: str) -> MountEntry | None:
    """The topmost mount at a path without symlinks."""
    wanted = os.path.abspath(mountpoint)
    found = [entry for entry in read_mount_table() if entry.mountpoint == wanted]
    return found[-1] if found else None


def _unescape(field: bytes) -> str:
    """A field with its spaces, tabs, newlines and backslashes, which are written as octal numbers."""
    parts = field.split(b"\\")
    return os.fsdecode(parts[0] + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in parts[1:]))
