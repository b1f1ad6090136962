"""Entries of a zip archive."""

from __future__ import annotations

import calendar
import os
import stat
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gompfs.errors import PackError
from gompfs.pack.sources.base import SourceEntry, clean_path
from gompfs.pack.sources.exclude import Exclusions

_UNIX = 3
_EXTENDED_TIMESTAMP = 0x5455


class ZipSource:
    """Reads a zip file: names, Unix modes and symlinks, times to the second where they are stored."""

    def __init__(self, path: Path, *, exclusions: Exclusions | None = None) -> None:
        self.name = str(path)
        self.warnings: list[str] = []
        self._exclusions = exclusions or Exclusions()
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError) as error:
            raise PackError(f"cannot read the zip archive: {error}", path=path) from error
        self.total_size: int | None = sum(member.file_size for member in self._archive.infolist())

    def entries(self) -> Iterator[SourceEntry]:
        """See Source.entries; members come by path."""
        members = {}
        for member in self._archive.infolist():
            path = clean_path(_raw_name(member))
            if path is None:
                self.warnings.append(f"{self.name}: member {member.filename!r} ignored")
            else:
                members[path] = member
        try:
            for path, member in sorted(members.items(), key=lambda item: item[0].split(b"/")):
                if not (self._exclusions and self._exclusions.matches_with_parents(path)):
                    yield self._entry(path, member)
        except (zipfile.BadZipFile, RuntimeError, OSError, NotImplementedError) as error:
            raise PackError(f"cannot read the zip archive: {error}", path=self.name) from error
        finally:
            self._archive.close()

    def _entry(self, path: bytes, member: zipfile.ZipInfo) -> SourceEntry:
        mode = member.external_attr >> 16 if member.create_system == _UNIX else 0
        if member.is_dir():
            mode = stat.S_IFDIR | (stat.S_IMODE(mode) or 0o755)
        elif stat.S_IFMT(mode) != stat.S_IFLNK:
            mode = stat.S_IFREG | (stat.S_IMODE(mode) or 0o644)
        entry = SourceEntry(path, mode, mtime_ns=_mtime(member) * 1_000_000_000)
        if stat.S_ISLNK(mode):
            entry.symlink_target = self._archive.read(member)
            entry.size = len(entry.symlink_target)
        elif stat.S_ISREG(mode):
            entry.size = member.file_size
            entry.can_reopen = True
            entry.open = lambda: cast(BinaryIO, self._archive.open(member))
        return entry


def _raw_name(member: zipfile.ZipInfo) -> bytes:
    """The name's bytes as they lie in the archive; zipfile has decoded them as UTF-8 or code page 437."""
    if member.flag_bits & 0x800:
        return os.fsencode(member.filename)
    try:
        return member.filename.encode("cp437")
    except UnicodeEncodeError:
        return os.fsencode(member.filename)


def _mtime(member: zipfile.ZipInfo) -> int:
    """Seconds since the epoch: of the extended timestamp, else of the DOS time, taken as UTC."""
    extra = member.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        field = extra[4 : 4 + size]
        if kind == _EXTENDED_TIMESTAMP and len(field) >= 5 and field[0] & 1:
            return int(struct.unpack_from("<i", field, 1)[0])
        extra = extra[4 + size :]
    return calendar.timegm(member.date_time)
