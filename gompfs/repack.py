"""Packs the content of an archive again, into a new archive."""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gompfs._native.blocks import AnnouncedContent, ContentLoader
from gompfs.archive import Archive
from gompfs.codec import DEFAULT_LEVEL, Codec
from gompfs.errors import GompfsError, display_path
from gompfs.model import WORD_RULES, Inode
from gompfs.options import PackOptions
from gompfs.pack import PackReport, pack_archive
from gompfs.pack.packer import ProgressCallback
from gompfs.pack.sources import FileContent, Source, SourceEntry
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE
from gompfs.statistics.grammar_cache import segments_with_grammars

_ENTRIES_AHEAD = 256
_BYTES_AHEAD = 32 << 20


def repack_archive(
    archive: Archive,
    target: Path,
    *,
    codec: Codec | None = None,
    level: int = DEFAULT_LEVEL,
    dependency_elimination: bool = False,
    block_size: int | None = None,
    stats: bool | None = None,
    words: str | None = None,
    jobs: int = 0,
    grammar_builder: str = "repair",
    dictionary_size: int | None = None,
    force: bool = False,
    progress: ProgressCallback | None = None,
) -> PackReport:
    """Pack all entries of `archive` into a new archive at `target`, which appears complete or not at all.

    The entries keep all metadata, holes and hard links. The new archive has the format version that `pack` writes, or
    that of the old one if it is later. By default, it has the block size and the word rule of the old one, and
    statistics if the old one has them. It gets a dictionary of its own, as with `pack`. With `force`, an existing
    archive is replaced, which may be the old one. Raises PackError, or the error of a damaged archive.
    """
    options = PackOptions(
        codec=codec,
        level=level,
        dependency_elimination=dependency_elimination,
        block_size=block_size or archive.block_size,
        jobs=jobs,
        stats=bool(segments_with_grammars(archive)) if stats is None else stats,
        grammar_builder=grammar_builder,
        words=words or archive.meta.get("words", WORD_RULES[0]),
        force=force,
        dictionary_size=dictionary_size,
        version=max(archive.superblock.version, PackOptions.version),
    )
    return pack_archive([ArchiveSource(archive)], target, options, engine=archive.engine, progress=progress)


class ArchiveSource(Source):
    """The entries of an archive."""

    sorted = True

    def __init__(self, archive: Archive) -> None:
        """`archive` must stay open while entries are read."""
        self.name = display_path(archive.path)
        self.warnings: list[str] = []
        self.skip_inodes: set[tuple[int, int]] = set()
        self._archive = archive

    @property
    def total_size(self) -> int:
        """The size of all files, each counted once."""
        return self._archive.index.totals()[1]

    def files(self) -> Iterator[FileContent]:
        """See Source.files."""
        seen: set[int] = set()
        for _, inode in self._archive.walk():
            if stat.S_ISREG(inode.mode) and inode.ino not in seen:
                if inode.nlink > 1:
                    seen.add(inode.ino)
                yield FileContent(inode.size, partial(self._archive.read, inode.ino))

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the root, then all entries depth first. Raises CorruptIndexError.

        Small files are read by threads, ahead of the entries that the caller takes.
        """
        loader = ContentLoader(self._archive.blocks.reader, _BYTES_AHEAD, self._archive.engine.num_threads)
        pending: deque[tuple[SourceEntry, AnnouncedContent | None]] = deque()
        for entry in self._walk():
            is_small = entry.has_content and entry.data_ranges is None and 0 < entry.size <= MAX_WHOLE_SIZE
            ahead = loader.load(entry.ino, entry.size) if is_small and isinstance(entry, _ArchiveEntry) else None
            pending.append((entry, ahead))
            if len(pending) > _ENTRIES_AHEAD:
                yield _with_content(*pending.popleft())
        while pending:
            yield _with_content(*pending.popleft())

    def _walk(self) -> Iterator[SourceEntry]:
        first_paths: dict[int, bytes] = {}
        for path, inode in self._archive.walk():
            if stat.S_ISDIR(inode.mode) or inode.nlink < 2:
                yield self._entry(path, inode)
            elif inode.ino in first_paths:
                yield SourceEntry(path, inode.mode, hard_link_to=first_paths[inode.ino])
            else:
                first_paths[inode.ino] = path
                yield self._entry(path, inode)

    def _entry(self, path: bytes, inode: Inode) -> SourceEntry:
        entry = _ArchiveEntry(
            path,
            inode.mode,
            inode.uid,
            inode.gid,
            inode.mtime_ns,
            inode.size if stat.S_ISREG(inode.mode) or stat.S_ISLNK(inode.mode) else 0,
            inode.rdev if stat.S_ISCHR(inode.mode) or stat.S_ISBLK(inode.mode) else 0,
            inode.symlink_target if stat.S_ISLNK(inode.mode) else None,
            xattrs=self._archive.xattrs(inode.ino),
            may_be_linked=inode.nlink > 1 and not stat.S_ISDIR(inode.mode),
            archive=self._archive,
            ino=inode.ino,
        )
        if stat.S_ISREG(inode.mode):
            entry.data_ranges = self._data_ranges(path, inode)
        return entry

    def _data_ranges(self, path: bytes, inode: Inode) -> list[tuple[int, int]] | None:
        """Returns the ranges of a file that are not holes, or None if there are no holes."""
        ranges: list[tuple[int, int]] = []
        try:
            extents = self._archive.extents(inode.ino)
        except GompfsError as error:
            error.path = display_path(path)
            raise
        for extent in extents:
            begin, end = extent.file_offset, min(extent.file_offset + extent.size, inode.size)
            if ranges and sum(ranges[-1]) == begin:
                begin = ranges.pop()[0]
            if begin < end:
                ranges.append((begin, end - begin))
        return None if ranges == [(0, inode.size)] or not inode.size else ranges


def _with_content(entry: SourceEntry, ahead: AnnouncedContent | None) -> SourceEntry:
    if ahead is not None and isinstance(entry, _ArchiveEntry):
        entry.content, entry.sha256 = ahead.take()
    return entry


@dataclass(slots=True)
class _ArchiveEntry(SourceEntry):
    """An entry whose content is in an archive, and perhaps in memory as `content`."""

    archive: Archive | None = None
    ino: int = 0
    content: memoryview | None = None

    @property
    def can_reopen(self) -> bool:
        """See SourceEntry.can_reopen."""
        return True

    def read_all(self) -> bytes | memoryview:
        """See SourceEntry.read_all."""
        return self.read_at(0, self.size) if self.content is None else self.content

    def read_at(self, file_offset: int, size: int) -> bytes:
        """See SourceEntry.read_at. Raises the error of a damaged block, which names the entry."""
        assert self.archive is not None
        try:
            return self.archive.read(self.ino, file_offset, size)
        except GompfsError as error:
            error.path = display_path(self.path)
            raise
