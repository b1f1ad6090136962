"""Entries of a tar archive, read in one pass: no seek, so that standard input works as a file does."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import IO, BinaryIO, cast

import zstandard

from gompfs.errors import PackError
from gompfs.pack.sources.base import SourceEntry, clean_path
from gompfs.pack.sources.exclude import Exclusions

_XATTR_PREFIX = "SCHILY.xattr."
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


def decompressed(stream: BinaryIO) -> BinaryIO:
    """A stream without its gzip, bzip2, xz or zstd compression, which its first bytes tell."""
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), 1 << 20)
    magic = buffered.peek(6)[:6]
    if magic.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    if magic.startswith(b"BZh"):
        return cast(BinaryIO, bz2.BZ2File(buffered))
    if magic.startswith((b"\xfd7zXZ\x00", b"]\x00\x00")):
        return cast(BinaryIO, lzma.LZMAFile(buffered))
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        reader = zstandard.ZstdDecompressor().stream_reader(buffered, read_across_frames=True)
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, reader), 1 << 20))
    return buffered


class TarSource:
    """Reads a tar stream, whatever its compression. Members outside the root are left out with a warning."""

    def __init__(self, stream: BinaryIO, name: str, *, exclusions: Exclusions | None = None) -> None:
        self.name = name
        self.total_size: int | None = None
        self.warnings: list[str] = []
        self._stream = stream
        self._exclusions = exclusions or Exclusions()

    def entries(self) -> Iterator[SourceEntry]:
        """See Source.entries. The order is the archive's own."""
        try:
            stream = decompressed(self._stream)
            with tarfile.open(fileobj=stream, mode="r|", errors="surrogateescape", encoding="utf-8") as archive:
                for member in archive:
                    entry = self._entry(archive, member)
                    if entry is not None:
                        yield entry
                    archive.members.clear()  # type: ignore[attr-defined]
        except (tarfile.TarError, EOFError, lzma.LZMAError, zstandard.ZstdError, OSError) as error:
            raise PackError(f"cannot read the tar archive: {error}", path=self.name) from error

    def _entry(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> SourceEntry | None:
        raw = os.fsencode(member.name)
        path = clean_path(raw)
        kind = _TYPES.get(member.type)
        if path is None and kind == stat.S_IFDIR and b".." not in raw.split(b"/"):
            path = b""
        if path is None or kind is None:
            self.warnings.append(f"{self.name}: member {member.name!r} ignored")
            return None
        if path and self._exclusions and self._exclusions.matches_with_parents(path):
            return None
        entry = SourceEntry(
            path, kind | stat.S_IMODE(member.mode), member.uid, member.gid, _mtime_ns(member), may_be_linked=True
        )
        entry.xattrs = {
            os.fsencode(key.removeprefix(_XATTR_PREFIX)): os.fsencode(value)
            for key, value in member.pax_headers.items()
            if key.startswith(_XATTR_PREFIX)
        }
        if member.type == tarfile.LNKTYPE:
            entry.hard_link_to = clean_path(os.fsencode(member.linkname))
        elif kind == stat.S_IFLNK:
            entry.symlink_target = os.fsencode(member.linkname)
            entry.size = len(entry.symlink_target)
        elif kind in (stat.S_IFCHR, stat.S_IFBLK):
            entry.rdev = os.makedev(member.devmajor, member.devminor)
        elif kind == stat.S_IFREG:
            entry.size = member.size
            entry.open = lambda: _content(archive, member)
            sparse: list[tuple[int, int]] | None = getattr(member, "sparse", None)
            if sparse is not None:
                entry.data_ranges = [(start, size) for start, size in sparse if size]
        return entry


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    content: IO[bytes] | None = archive.extractfile(member)
    if content is None:
        raise PackError("the tar member has no content", path=member.name)
    return cast(BinaryIO, content)


def _mtime_ns(member: tarfile.TarInfo) -> int:
    """The exact time of a PAX record; the float that tarfile makes of it has lost its last digits."""
    try:
        return int(Decimal(member.pax_headers["mtime"]) * 1_000_000_000)
    except (KeyError, InvalidOperation):
        return int(member.mtime) * 1_000_000_000
