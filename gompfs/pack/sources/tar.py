"""A tar archive of any compression as a source, from a file or a pipe.

It is read once, forward, so entries come in archive order, and the content of a member must be read before the next
entry is taken. Headers of ustar, PAX and GNU tar are supported: long names, sub-second times, extended attributes
(`SCHILY.xattr.*`), and all kinds of sparse members.
"""

from __future__ import annotations

import math
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from tarfile import ReadError
from typing import Any, BinaryIO, cast

from gompfs.errors import PackError, display_path
from gompfs.pack.sources.base import Source, SourceEntry
from gompfs.pack.sources.exclude import ExcludeRules
from gompfs.pack.sources.forward_reader import ForwardReader, uncompressed
from gompfs.pack.sources.member_tree import MemberTree

__all__ = ["TarSource"]

_XATTR_PREFIX = "SCHILY.xattr."
_MAX_FILE_SIZE = (1 << 63) - 1
_SECOND_NS = 1_000_000_000
_PERMISSIONS = 0o7777
_DECIMAL_SECONDS = re.compile(r"(-?)([0-9]{1,20})(?:\.([0-9]*))?")
_TYPES = {
    tarfile.REGTYPE: stat.S_IFREG,
    tarfile.AREGTYPE: stat.S_IFREG,
    tarfile.CONTTYPE: stat.S_IFREG,
    tarfile.GNUTYPE_SPARSE: stat.S_IFREG,
    tarfile.LNKTYPE: stat.S_IFREG,
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.FIFOTYPE: stat.S_IFIFO,
    tarfile.CHRTYPE: stat.S_IFCHR,
    tarfile.BLKTYPE: stat.S_IFBLK,
}
_BROKEN_HEADER: tuple[type[Exception], ...] = (
    tarfile.InvalidHeaderError,  # type: ignore[attr-defined]
    tarfile.TruncatedHeaderError,  # type: ignore[attr-defined]
    tarfile.SubsequentHeaderError,  # type: ignore[attr-defined]
    ValueError,
    OverflowError,
)


class _Member(tarfile.TarInfo):
    """A header. Unlike in tarfile, a broken header after the first is an error, not the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Member:
        """Returns the next header. Raises ReadError if it is broken."""
        try:
            return super().fromtarfile(tarfile)
        except _BROKEN_HEADER as error:
            if tarfile.offset == 0:
                raise ReadError("not a tar archive, or the compression is unknown") from error
            raise ReadError(f"broken header near byte {tarfile.offset}: {error}") from error

    @property
    def stored_ranges(self) -> list[tuple[int, int]] | None:
        """The (file_offset, size) of each data range of a sparse member, unchecked; None for a plain member.

        Empty ranges are left out: they are end markers, or unused fields of old headers.
        """
        ranges = cast("list[tuple[int, int]] | None", self.sparse)
        return None if ranges is None else [(start, size) for start, size in ranges if size]


@dataclass(slots=True)
class _MemberEntry(SourceEntry):
    """A regular member. Its data begins at `data_position`; the data of a sparse member is stored without the holes."""

    reader: ForwardReader | None = None
    data_position: int = 0

    def read_at(self, file_offset: int, size: int) -> bytes:
        """See `SourceEntry.read_at`. Reads must go forward, before the next entry is taken."""
        if self.data_ranges is None:
            return self._read_stored(file_offset, size)
        end = file_offset + size
        stored_before = 0
        pieces = []
        for range_start, range_size in self.data_ranges:
            start, stop = max(file_offset, range_start), min(end, range_start + range_size)
            if start < stop:
                pieces.append(bytes(start - file_offset))
                pieces.append(self._read_stored(stored_before + start - range_start, stop - start))
                file_offset = stop
            stored_before += range_size
        pieces.append(bytes(end - file_offset))
        return b"".join(pieces)

    def _read_stored(self, stored_offset: int, size: int) -> bytes:
        reader = self.reader
        if reader is None or reader.tell() > self.data_position + stored_offset:
            raise PackError("a member of a tar can be read once, before the next is taken", path=self.path)
        reader.seek(self.data_position + stored_offset)
        data = reader.read_data(size)
        if len(data) != size:
            raise PackError(f"the tar archive ends inside {display_path(self.path)}", path=reader.name)
        return data


class TarSource(Source):
    """All members of a tar archive."""

    sorted = False

    def __init__(self, open_stream: Callable[[], BinaryIO], name: str, *, rules: ExcludeRules | None = None) -> None:
        """`entries` calls `open_stream`, and closes the stream that it returns. `name` is for messages."""
        self.name = name
        self.warnings: list[str] = []
        self.skip_inodes: set[tuple[int, int]] = set()
        self._open_stream = open_stream
        self._rules = rules or ExcludeRules()

    @property
    def total_size(self) -> None:
        """See Source.total_size."""

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the members in archive order. Raises PackError if the archive is damaged or not a tar."""
        tree = MemberTree(self.name, self.warnings, self._rules)
        try:
            stream = self._open_stream()
        except OSError as error:
            raise PackError(f"cannot read: {error.strerror}", path=self.name) from error
        with stream:
            reader = ForwardReader(uncompressed(stream), self.name)
            for member in self._members(reader):
                entry = self._entry(member, tree, reader)
                if entry is not None:
                    yield from tree.admit(entry)
                    if isinstance(entry, _MemberEntry):
                        entry.reader = None
            yield from tree.root_if_missing()
            reader.drain()

    def _members(self, reader: ForwardReader) -> Iterator[_Member]:
        """Yield the headers. The stream must end at the end of a member."""
        try:
            archive = tarfile.TarFile(
                name=self.name,
                fileobj=cast(Any, reader),
                tarinfo=_Member,
                encoding="utf-8",
                errors="surrogateescape",
            )
            while (member := cast("_Member | None", archive.next())) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # a million of them would fill the memory
                _check_size(member, archive.offset, self.name)
                yield member
            if reader.is_at_end:
                self.warnings.append(f"{self.name}: the end-of-archive marker is missing; the tar may be truncated")
        except tarfile.TarError as error:
            raise PackError(f"cannot read the tar archive: {error}", path=self.name) from error

    def _entry(self, member: _Member, tree: MemberTree, reader: ForwardReader) -> SourceEntry | None:
        raw_name = _to_bytes(member.name)
        kind = _TYPES.get(member.type)
        if kind is None:
            tree.warn(raw_name, f"members of type {member.type!r} are not files; left out")
            return None
        path = tree.clean_path(raw_name)
        if path is None:
            return None
        mode = kind | member.mode & _PERMISSIONS  # stat.S_IMODE refuses the negative numbers of binary fields
        attributes = (path, mode, member.uid, member.gid, _mtime_ns(member, tree))
        xattrs = _xattrs(member)
        if member.type == tarfile.LNKTYPE:
            target = tree.clean_path(_to_bytes(member.linkname))
            return None if target is None else SourceEntry(*attributes, hard_link_to=target)
        if kind == stat.S_IFREG:
            ranges = member.stored_ranges
            return _MemberEntry(
                *attributes,
                member.size,
                xattrs=xattrs,
                data_ranges=ranges,
                reader=reader,
                data_position=member.offset_data,
            )
        entry = SourceEntry(*attributes, xattrs=xattrs)
        if kind == stat.S_IFLNK:
            entry.symlink_target = _to_bytes(member.linkname)
            entry.size = len(entry.symlink_target)
        elif kind in (stat.S_IFCHR, stat.S_IFBLK):
            return _with_device_number(entry, member, tree)
        return entry


def _with_device_number(entry: SourceEntry, member: _Member, tree: MemberTree) -> SourceEntry | None:
    try:
        entry.rdev = os.makedev(member.devmajor, member.devminor)
    except (OverflowError, ValueError):
        tree.warn(entry.path, "the device number is invalid; left out")
        return None
    return entry


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _check_size(member: _Member, next_header: int, name: str) -> None:
    """Raise PackError unless the sizes of a member are consistent. `next_header` is the position after the member."""
    ranges = member.stored_ranges or []
    position = 0
    for range_start, range_size in ranges:
        if range_start < position or range_size < 0 or range_start + range_size > member.size:
            raise PackError(f"{member.name!r} has an invalid list of holes", path=name)
        position = range_start + range_size
    stored_size = sum(size for _, size in ranges)
    if not 0 <= member.size <= _MAX_FILE_SIZE or stored_size > next_header - member.offset_data:
        raise PackError(f"{member.name!r} has an invalid size", path=name)


def _mtime_ns(member: tarfile.TarInfo, tree: MemberTree) -> int:
    """Returns the modification time. It is read from the text of a PAX record, since a float would round it."""
    decimal = _DECIMAL_SECONDS.fullmatch(member.pax_headers.get("mtime", ""))
    if decimal is not None:
        sign, seconds, fraction = decimal.groups(default="")
        time_ns = int(seconds) * _SECOND_NS + int((fraction + "000000000")[:9])
        return -time_ns if sign else time_ns
    if not math.isfinite(member.mtime):
        tree.warn(_to_bytes(member.name), "the modification time is not a number; stored 1970-01-01")
        return 0
    return int(member.mtime) * _SECOND_NS


def _xattrs(member: tarfile.TarInfo) -> dict[bytes, bytes]:
    """Returns the extended attributes of PAX records. GNU tar writes `=` and `%` in their names as %3D and %25."""
    return {
        _to_bytes(key.removeprefix(_XATTR_PREFIX)).replace(b"%3D", b"=").replace(b"%25", b"%"): _to_bytes(value)
        for key, value in member.pax_headers.items()
        if key.startswith(_XATTR_PREFIX)
    }
