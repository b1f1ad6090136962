"""Entries of the file system: a directory with all below it, or one file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gompfs.errors import PackError
from gompfs.pack.sources.base import SourceEntry
from gompfs.pack.sources.exclude import Exclusions

_KEPT_TYPES = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK)


class DirectorySource:
    """Walks a directory depth first, names in byte order. Also takes a single file."""

    def __init__(self, path: Path, *, prefix: bytes = b"", exclusions: Exclusions | None = None) -> None:
        """Walk `path`; its entries come out below `prefix` (b"": as the root of the archive)."""
        self.name = str(path)
        self.total_size: int | None = None
        self.warnings: list[str] = []
        self._path = os.fsencode(path)
        self._prefix = prefix
        self._exclusions = exclusions or Exclusions()
        self._first_names: dict[tuple[int, int], bytes] = {}
        self._has_xattrs = True

    def entries(self) -> Iterator[SourceEntry]:
        """See Source.entries."""
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise PackError(error.strerror or str(error), path=self._path) from None
        if not stat.S_ISDIR(status.st_mode):
            entry = self._entry(self._path, self._prefix, status)
            if entry is not None:
                yield entry
            return
        pending: list[tuple[bytes, bytes, os.stat_result]] = [(self._path, self._prefix, status)]
        while pending:
            place, path, status = pending.pop()
            entry = self._entry(place, path, status)
            if entry is None:
                continue
            yield entry
            if stat.S_ISDIR(status.st_mode):
                pending.extend(self._children(place, path))

    def _children(self, place: bytes, path: bytes) -> list[tuple[bytes, bytes, os.stat_result]]:
        """What a directory holds, last name first."""
        prefix = path + b"/" if path else b""
        children = []
        try:
            with os.scandir(place) as names:
                for name in names:
                    child = prefix + name.name
                    if not (self._exclusions and self._exclusions.matches(child[len(self._prefix) :].lstrip(b"/"))):
                        children.append((name.path, child, name.stat(follow_symlinks=False)))
        except OSError as error:
            raise PackError(error.strerror or str(error), path=error.filename or place) from None
        children.sort(key=lambda child: child[1], reverse=True)
        return children

    def _entry(self, place: bytes, path: bytes, status: os.stat_result) -> SourceEntry | None:
        kind = stat.S_IFMT(status.st_mode)
        if kind not in _KEPT_TYPES:
            self.warnings.append(f"{os.fsdecode(place)}: socket ignored")
            return None
        entry = SourceEntry(path, status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns)
        if kind != stat.S_IFDIR and status.st_nlink > 1:
            first = self._first_names.setdefault((status.st_dev, status.st_ino), path)
            entry.may_be_linked = True
            if first != path:
                entry.hard_link_to = first
                return entry
        try:
            if self._has_xattrs:
                entry.xattrs = self._xattrs(place)
            if kind == stat.S_IFLNK:
                entry.symlink_target = os.readlink(place)
                entry.size = len(entry.symlink_target)
        except OSError as error:
            raise PackError(error.strerror or str(error), path=place) from None
        if kind == stat.S_IFREG:
            entry.size = status.st_size
            entry.can_reopen = True
            entry.open = lambda: _open(place)
            if status.st_blocks * 512 < status.st_size:
                entry.data_ranges = _data_ranges(place, status.st_size)
        elif kind in (stat.S_IFCHR, stat.S_IFBLK):
            entry.rdev = status.st_rdev
        return entry

    def _xattrs(self, place: bytes) -> dict[bytes, bytes]:
        try:
            names = os.listxattr(place, follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENOTSUP, errno.ENODATA):
                self._has_xattrs = error.errno != errno.ENOTSUP
                return {}
            raise
        return {os.fsencode(name): os.getxattr(place, name, follow_symlinks=False) for name in names}


def _open(place: bytes) -> BinaryIO:
    try:
        return open(place, "rb", buffering=0)
    except OSError as error:
        raise PackError(error.strerror or str(error), path=place) from None


def _data_ranges(place: bytes, size: int) -> list[tuple[int, int]] | None:
    """The parts of a file that are no holes, or None where the file system cannot tell."""
    ranges = []
    with _open(place) as file:
        position = 0
        while position < size:
            try:
                start = os.lseek(file.fileno(), position, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break
                return None
            position = min(os.lseek(file.fileno(), start, os.SEEK_HOLE), size)
            if start < position:
                ranges.append((start, position - start))
    return ranges
