"""A zip archive as a source, in the order of its directory.

Modes, symlinks, owners and times are taken from the fields that Info-ZIP and compatible programs write. If the archive
has no owners, the user who packs becomes the owner. A time without a time zone is taken as UTC, so that packing gives
the same result everywhere.
"""

from __future__ import annotations

import calendar
import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from gompfs.errors import PackError
from gompfs.pack.sources.base import Source, SourceEntry
from gompfs.pack.sources.exclude import ExcludeRules
from gompfs.pack.sources.member_tree import MAX_SYMLINK_TARGET_SIZE, MemberTree

__all__ = ["ZipSource"]

_SECOND_NS = 1_000_000_000
_SYSTEM_DOS, _SYSTEM_UNIX, _SYSTEM_DARWIN = 0, 3, 19
_FLAG_ENCRYPTED, _FLAG_UTF8 = 0x1, 0x800
_DOS_READ_ONLY = 0x01
_FIELD_NTFS, _FIELD_TIMESTAMP, _FIELD_UNIX_NAME, _FIELD_OWNER = 0x000A, 0x5455, 0x7075, 0x7875
_NTFS_EPOCH_SECONDS = 11_644_473_600
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    UnicodeDecodeError,  # a name that is marked as UTF-8
    RuntimeError,  # a member that is encrypted, or of a compression method that zipfile does not support
    EOFError,
)


@dataclass(slots=True)
class _MemberEntry(SourceEntry):
    """A regular member. A read before the current position decodes the member again from its start."""

    archive: zipfile.ZipFile | None = None
    member: zipfile.ZipInfo | None = None
    content: IO[bytes] | None = None

    @property
    def can_reopen(self) -> bool:
        """Always True."""
        return True

    def read_at(self, file_offset: int, size: int) -> bytes:
        """See `SourceEntry.read_at`. A forward read continues; a backward read decodes the member again."""
        if self.archive is None or self.member is None:
            raise PackError("was not read before the next entry was taken", path=self.path)
        try:
            if self.content is None or self.content.tell() > file_offset:
                self.release()
                self.content = self.archive.open(self.member)
            self.content.seek(file_offset)
            data = self.content.read(size)
        except (OSError, *_ZIP_ERRORS) as error:
            raise PackError(f"cannot read this member of {self.archive.filename}: {error}", path=self.path) from error
        if len(data) != size:
            raise PackError("the zip archive has fewer bytes than this member's size", path=self.path)
        return data

    def release(self) -> None:
        """Close the content."""
        content, self.content = self.content, None
        if content is not None:
            content.close()


class ZipSource(Source):
    """All members of a zip archive, which must be a file."""

    sorted = False

    def __init__(self, file: str | os.PathLike[str], *, rules: ExcludeRules | None = None) -> None:
        """Read the directory of the archive. Raises PackError if it is not a zip archive."""
        self.name = os.fspath(file)
        self.warnings: list[str] = []
        self.skip_inodes: set[tuple[int, int]] = set()
        self._rules = rules or ExcludeRules()
        try:
            with zipfile.ZipFile(file) as archive:
                self._total_size = sum(member.file_size for member in archive.infolist())
        except (OSError, *_ZIP_ERRORS) as error:
            raise PackError(f"cannot read the zip archive: {error}", path=file) from error

    @property
    def total_size(self) -> int:
        """See Source.total_size."""
        return self._total_size

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the members. Raises PackError for one that cannot be decoded."""
        tree = MemberTree(self.name, self.warnings, self._rules)
        try:
            archive = zipfile.ZipFile(self.name)
        except (OSError, *_ZIP_ERRORS) as error:
            raise PackError(f"cannot read the zip archive: {error}", path=self.name) from error
        with archive:
            for member in archive.infolist():
                entry = self._entry(archive, member, tree)
                if entry is None:
                    continue
                yield from tree.admit(entry)
                if isinstance(entry, _MemberEntry):
                    entry.release()
                    entry.archive = None
            yield from tree.root_if_missing()

    def _entry(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, tree: MemberTree) -> SourceEntry | None:
        fields = _extra_fields(member.extra)
        name = _name(member, fields)
        path = tree.clean_path(name)
        if path is None:
            return None
        mode = _mode(member, name)
        uid, gid = _owner(fields)
        attributes = (path, mode, uid, gid, _mtime_ns(member, fields))
        if stat.S_ISDIR(mode):
            return SourceEntry(*attributes, may_be_linked=False)
        if stat.S_ISFIFO(mode):
            return SourceEntry(*attributes, may_be_linked=False)
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            tree.warn(name, "a zip does not store device numbers; left out")
            return None
        content = _MemberEntry(*attributes, member.file_size, may_be_linked=False, archive=archive, member=member)
        if stat.S_ISREG(mode):
            return content
        target = content.read_at(0, min(member.file_size, MAX_SYMLINK_TARGET_SIZE + 1))
        content.release()
        return SourceEntry(*attributes, len(target), symlink_target=target, may_be_linked=False)


def _extra_fields(extra: bytes) -> dict[int, bytes]:
    """Returns the extra fields by number. Malformed fields are ignored, since extra fields are optional."""
    fields: dict[int, bytes] = {}
    position = 0
    while position + 4 <= len(extra):
        number, size = struct.unpack_from("<HH", extra, position)
        fields.setdefault(number, extra[position + 4 : position + 4 + size])
        position += 4 + size
    return fields


def _name(member: zipfile.ZipInfo, fields: dict[int, bytes]) -> bytes:
    """Returns the name as a Unix system would store it. zipfile has decoded it as UTF-8 or code page 437."""
    if member.flag_bits & _FLAG_UTF8:
        name = member.orig_filename.encode("utf-8")
    else:
        name = member.orig_filename.encode("cp437")
        unicode_name = fields.get(_FIELD_UNIX_NAME, b"")
        if len(unicode_name) > 5 and unicode_name[1:5] == struct.pack("<I", zlib.crc32(name)):
            name = unicode_name[5:]
        elif member.create_system not in (_SYSTEM_UNIX, _SYSTEM_DARWIN) and not _is_utf8(name):
            name = member.orig_filename.encode("utf-8")
    if member.create_system == _SYSTEM_DOS and b"/" not in name:
        name = name.replace(b"\\", b"/")
    return name


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _mode(member: zipfile.ZipInfo, name: bytes) -> int:
    """Returns type and permissions. If the member has none, they follow from its name and its DOS attributes."""
    mode = member.external_attr >> 16
    if name.endswith(b"/"):
        return stat.S_IFDIR | (stat.S_IMODE(mode) or 0o755)
    if not mode:
        return stat.S_IFREG | (0o444 if member.external_attr & _DOS_READ_ONLY else 0o644)
    return mode if stat.S_IFMT(mode) else stat.S_IFREG | mode


def _owner(fields: dict[int, bytes]) -> tuple[int, int]:
    """Returns (uid, gid) from the field that Info-ZIP writes, or those of this process."""
    field = fields.get(_FIELD_OWNER, b"")
    if len(field) >= 2 and field[0] == 1:
        uid_end = 2 + field[1]
        gid_end = uid_end + 1 + (field[uid_end] if uid_end < len(field) else 0)
        if uid_end < gid_end - 1 and gid_end <= len(field):
            uid = int.from_bytes(field[2:uid_end], "little")
            return uid, int.from_bytes(field[uid_end + 1 : gid_end], "little")
    return os.getuid(), os.getgid()


def _mtime_ns(member: zipfile.ZipInfo, fields: dict[int, bytes]) -> int:
    """Returns the time from NTFS ticks of 100 ns, or else Unix seconds, or else the DOS time."""
    ntfs = fields.get(_FIELD_NTFS, b"")
    if len(ntfs) >= 16 and struct.unpack_from("<HH", ntfs, 4) == (1, 24):
        ticks = struct.unpack_from("<Q", ntfs, 8)[0]
        return int(ticks) * 100 - _NTFS_EPOCH_SECONDS * _SECOND_NS
    timestamp = fields.get(_FIELD_TIMESTAMP, b"")
    if len(timestamp) >= 5 and timestamp[0] & 1:
        return int(struct.unpack_from("<i", timestamp, 1)[0]) * _SECOND_NS
    year, month, day, *time_of_day = member.date_time
    # Writers that do not know the date set month and day to 0.
    date = (year, min(max(month, 1), 12), max(day, 1), *time_of_day)
    return calendar.timegm(date) * _SECOND_NS
