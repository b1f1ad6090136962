"""Checks the members of tar and zip archives, which are untrusted input.

A member is left out, with a warning, if extracting it would write outside the target, pass through an entry that is not
a directory, or be refused by the file system. Missing parent directories are added.
"""

from __future__ import annotations

import stat
import tempfile
from dataclasses import replace

from gompfs._native.sources import PathTable
from gompfs.errors import display_path
from gompfs.model import (
    MAX_NAME_SIZE,
    MAX_SYMLINK_TARGET_SIZE,
    MAX_TIME_NS,
    MAX_XATTR_NAME_SIZE,
    MAX_XATTR_VALUE_SIZE,
)
from gompfs.pack.sources.base import SourceEntry
from gompfs.pack.sources.exclude import ExcludeRules

__all__ = ["MAX_SYMLINK_TARGET_SIZE", "MemberTree"]

MAX_ID = 0xFFFFFFFF
NOBODY = 65534
_MADE_DIRECTORY_MODE = stat.S_IFDIR | 0o755


class MemberTree:
    """Records the paths of the members so far, and decides on each new member. Members left out add to `warnings`."""

    def __init__(self, archive_name: str, warnings: list[str], rules: ExcludeRules) -> None:
        self._archive_name = archive_name
        self._warnings = warnings
        self._rules = rules
        self._directories: set[bytes] = set()
        self._others = PathTable(tempfile.gettempdir())  # 1 for each path of another kind
        self._told_leading = False

    def warn(self, member: bytes, text: str) -> None:
        """Add a warning about a member."""
        self._warnings.append(f"{self._archive_name}: {display_path(member)}: {text}")

    def clean_path(self, name: bytes) -> bytes | None:
        """Returns the path of a member relative to the root, or None, with a warning, if the name is not allowed."""
        parts = [part for part in name.split(b"/") if part not in (b"", b".")]
        if b".." in parts:
            self.warn(name, "the name contains '..'; left out")
            return None
        if b"\0" in name or any(len(part) > MAX_NAME_SIZE for part in parts):
            self.warn(name, "the file name is invalid; left out")
            return None
        if name.startswith(b"/") and not self._told_leading:
            self._told_leading = True
            self.warn(name, "leading '/' removed from this and further names")
        return b"/".join(parts)

    def admit(self, entry: SourceEntry) -> list[SourceEntry]:
        """Returns the entry, after the directories that are missing above it; an empty list if it is left out."""
        is_directory = stat.S_ISDIR(entry.mode)
        if self._rules and self._rules.excludes_with_parents(entry.path, is_directory):
            return []
        if not self._fits(entry, is_directory):
            return []
        self._bound_numbers(entry)
        self._drop_impossible_xattrs(entry)
        admitted = self._missing_parents(entry)
        if admitted is None:
            return []
        if is_directory:
            if self._others.get(entry.path):
                self._others.set(entry.path, 0)
            self._directories.add(entry.path)
        else:
            self._others.set(entry.path, 1)
        return [*admitted, entry]

    def root_if_missing(self) -> list[SourceEntry]:
        """Returns a root directory if no member made one, or an empty list."""
        return [] if b"" in self._directories else [SourceEntry(b"", _MADE_DIRECTORY_MODE, may_be_linked=False)]

    def _fits(self, entry: SourceEntry, is_directory: bool) -> bool:
        """Returns whether the entry itself can be created. Warns if not."""
        target = entry.symlink_target
        if not is_directory and (not entry.path or entry.path in self._directories):
            self.warn(entry.path, "would replace a directory; left out")
        elif stat.S_ISLNK(entry.mode) and not (target and len(target) <= MAX_SYMLINK_TARGET_SIZE and 0 not in target):
            self.warn(entry.path, "the symbolic link target is invalid; left out")
        elif entry.hard_link_to is not None and not self._others.get(entry.hard_link_to):
            self.warn(entry.path, f"hard link to {display_path(entry.hard_link_to)}, which is missing; left out")
        else:
            return entry.hard_link_to != entry.path  # a link to itself changes nothing
        return False

    def _missing_parents(self, entry: SourceEntry) -> list[SourceEntry] | None:
        """Returns the directories to create above an entry, outermost first, or None if another entry is in the way."""
        parent = entry.path.rpartition(b"/")[0]
        if not entry.path or parent in self._directories:
            return []
        missing = []
        while parent not in self._directories:
            if self._others.get(parent):
                self.warn(entry.path, f"lies below {display_path(parent)}, which is not a directory; left out")
                return None
            missing.append(parent)
            if not parent:
                break
            parent = parent.rpartition(b"/")[0]
        self._directories.update(missing)
        made = SourceEntry(
            b"", _MADE_DIRECTORY_MODE, entry.uid, entry.gid, entry.mtime_ns, xattrs={}, may_be_linked=False
        )
        return [replace(made, path=path, xattrs={}) for path in reversed(missing)]

    def _bound_numbers(self, entry: SourceEntry) -> None:
        """Replace an owner, group or time that no file system supports."""
        if not (0 <= entry.uid <= MAX_ID and 0 <= entry.gid <= MAX_ID):
            self.warn(entry.path, f"the user or group number is out of range; stored {NOBODY}")
            entry.uid = entry.uid if 0 <= entry.uid <= MAX_ID else NOBODY
            entry.gid = entry.gid if 0 <= entry.gid <= MAX_ID else NOBODY
        if abs(entry.mtime_ns) > MAX_TIME_NS:
            self.warn(entry.path, "the modification time is out of range; stored the nearest time")
            entry.mtime_ns = MAX_TIME_NS if entry.mtime_ns > 0 else -MAX_TIME_NS

    def _drop_impossible_xattrs(self, entry: SourceEntry) -> None:
        """Remove extended attributes that no inode can have."""
        for name, value in list(entry.xattrs.items()):
            fits = len(name) <= MAX_XATTR_NAME_SIZE and len(value) <= MAX_XATTR_VALUE_SIZE
            if not fits or b"\0" in name or b"." not in name[1:]:
                self.warn(entry.path, f"the extended attribute {display_path(name)} is invalid; left out")
                del entry.xattrs[name]
