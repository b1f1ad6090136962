"""Packs the content of an archive again, into a new archive."""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import BinaryIO, cast

from gompfs._native.blocks import AnnouncedContents, ContentLoader
from gompfs._native.sources import LoadedFiles
from gompfs.archive import Archive
from gompfs.codec import DEFAULT_LEVEL, Codec
from gompfs.errors import CorruptIndexError, GompfsError, display_path
from gompfs.index.visited import VisitedDirectories
from gompfs.model import MAX_TIME_NS, WORD_RULES, Inode
from gompfs.options import PackOptions
from gompfs.pack import PackReport, pack_archive
from gompfs.pack.packer import ProgressCallback
from gompfs.pack.sources import Source, SourceEntry
from gompfs.pack.sources.base import ContentStream
from gompfs.pack.sources.file_run import FileRun
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE
from gompfs.pack.sources.versions import Order

_Pending = Callable[[], Iterator[SourceEntry | FileRun]]
"""Yields entries that were announced."""

_MAX_TIME_OF_RUNS = MAX_TIME_NS - 10**9  # these times have whole seconds before them that the index can store
_ITEMS_AHEAD = 64
_FILES_AT_ONCE = 64
_BYTES_AHEAD = 32 << 20
_RANGE_SIZE = 1 << 20


def repack_archive(
    archive: Archive,
    target: Path,
    *,
    codec: Codec = Codec.GOMPRESSO_TADOC,
    level: int = DEFAULT_LEVEL,
    dependency_elimination: bool = False,
    block_size: int | None = None,
    words: str | None = None,
    jobs: int = 0,
    dictionary_size: int | None = None,
    force: bool = False,
    check: bool = True,
    comment: str = "",
    progress: ProgressCallback | None = None,
) -> PackReport:
    """Pack all entries of `archive` into a new archive at `target`, which appears complete or not at all.

    The entries keep all metadata, holes and hard links. By default, the new archive has the block size and the word
    rule of the old one. It gets a dictionary of its own, as with `pack`. With `force`, an existing archive is replaced,
    which may be the old one. With `check`, the new archive is read back before it appears. Raises PackError, or the
    error of a damaged archive.
    """
    options = PackOptions(
        codec=codec,
        level=level,
        dependency_elimination=dependency_elimination,
        block_size=block_size or archive.block_size,
        jobs=jobs,
        words=words or _word_rule(archive),
        force=force,
        check=check,
        dictionary_size=dictionary_size,
        comment=comment,
    )
    return pack_archive(
        [ArchiveSource(archive)], target, options, engine=archive.engine, progress=progress, command="repack"
    )


def _word_rule(archive: Archive) -> str:
    """Returns the word rule that the archive states, or the default one. Raises CorruptIndexError if it is unknown."""
    words = archive.meta.get("words", WORD_RULES[0])
    if words not in WORD_RULES:
        reason = f"unknown word rule {words!r} in the index; choose one for the new archive (--words)"
        raise CorruptIndexError(reason, archive=archive.path)
    return words


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

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the root, then all entries depth first. Raises CorruptIndexError."""
        first_paths: dict[int, bytes] = {}
        for path, inode in self._walk():
            yield self._describe(path, inode, first_paths)

    def items(self) -> Iterator[SourceEntry | FileRun]:
        """See Source.items.

        Small files are read by threads, ahead of the entries that the caller takes.
        """
        pending: deque[_Pending] = deque()
        for announced in self._announced():
            pending.append(announced)
            if len(pending) > _ITEMS_AHEAD:
                yield from pending.popleft()()
        while pending:
            yield from pending.popleft()()

    def _walk(self) -> Iterator[tuple[bytes, Inode]]:
        """Yields all entries in the order in which a directory that has them would be packed."""
        visited = VisitedDirectories(self._archive.path)
        root = self._archive.resolve("")
        yield b"", root
        levels = [_Level(self._archive, None, [(0, b"")], [root], visited, 1)]
        while levels:
            level = levels[-1]
            for step in level.steps:
                inodes = [level.inode(*place) for place in step.names]
                yield from zip(level.paths(step.names), inodes, strict=True)
                if step.kind == stat.S_IFDIR:
                    num_open = sum(len(each.places) for each in levels) + len(inodes)
                    levels.append(_Level(self._archive, level, step.names, inodes, visited, num_open))
                    break
            else:
                levels.pop()

    def _announced(self) -> Iterator[_Pending]:
        """Has the loader read the files that can be in runs, and yields all entries, in order."""
        loader = ContentLoader(self._archive.blocks.reader, _BYTES_AHEAD, self._archive.engine.num_threads)
        with_holes = {ino for rows in self._archive.index.stored_sizes() for ino, _ in rows}
        first_paths: dict[int, bytes] = {}

        def directory_of(entry: tuple[bytes, Inode]) -> bytes | None:
            """Returns the directory of an entry that can be in a run, else None."""
            path, (ino, mode, _, _, size, mtime_ns, nlink, *_) = entry
            is_whole = stat.S_ISREG(mode) and nlink == 1 and size <= MAX_WHOLE_SIZE and ino not in with_holes
            return path.rpartition(b"/")[0] if is_whole and abs(mtime_ns) <= _MAX_TIME_OF_RUNS else None

        for directory, entries in groupby(self._walk(), directory_of):
            if directory is None:
                for path, inode in entries:
                    yield partial(iter, (self._describe(path, inode, first_paths),))
                continue
            while some := list(islice(entries, _FILES_AT_ONCE)):
                files = [(path.rpartition(b"/")[2], inode, self._archive.xattrs(inode.ino)) for path, inode in some]
                yield partial(self._files, directory, some, loader.load(files))

    def _files(
        self, directory: bytes, entries: list[tuple[bytes, Inode]], announced: AnnouncedContents
    ) -> Iterator[SourceEntry | FileRun]:
        while (taken := announced.take()) is not None:
            if isinstance(taken, LoadedFiles):
                yield FileRun(directory, taken)
            else:
                yield self._entry(*entries[taken])

    def _describe(self, path: bytes, inode: Inode, first_paths: dict[int, bytes]) -> SourceEntry:
        """Returns an entry: a hard link if its inode is in `first_paths`."""
        if stat.S_ISDIR(inode.mode) or inode.nlink < 2:
            return self._entry(path, inode)
        if inode.ino in first_paths:
            return SourceEntry(path, inode.mode, hard_link_to=first_paths[inode.ino])
        first_paths[inode.ino] = path
        return self._entry(path, inode)

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


class _Level:
    """Directories of an archive that are walked side by side.

    `places` has for each of them the number of its directory in the level above, and its name there. Paths are made
    when they are needed: those of all open directories would take memory in proportion to the square of the depth.
    """

    def __init__(
        self,
        archive: Archive,
        above: _Level | None,
        places: Sequence[tuple[int, bytes]],
        inodes: Sequence[Inode],
        visited: VisitedDirectories,
        num_open: int,
    ) -> None:
        """`num_open` is the number of directories that the walk is in. Raises CorruptIndexError."""
        for inode in inodes:
            visited.enter(inode.ino)
        self.places = places
        self._above = above
        self._inodes = [dict(archive.index.directory(inode.ino)) for inode in inodes]
        listings = [[(name, stat.S_IFMT(inode.mode)) for name, inode in inodes.items()] for inodes in self._inodes]
        self.steps = Order(listings, stat.S_IFDIR, num_open).steps()

    def inode(self, directory: int, name: bytes) -> Inode:
        """Returns the inode of a name in one of the directories."""
        return self._inodes[directory][name]

    def paths(self, names: Sequence[tuple[int, bytes]]) -> Iterator[bytes]:
        """Yields the paths of names, each with the number of its directory."""
        prefixes = {directory: self._prefix(directory) for directory, _ in names}
        yield from (prefixes[directory] + name for directory, name in names)

    def _prefix(self, directory: int) -> bytes:
        """Returns the path of a directory, with a slash at its end; nothing for the root."""
        names = [b""]
        level: _Level | None = self
        while level is not None and level._above is not None:
            directory, name = level.places[directory]
            names.append(name)
            level = level._above
        return b"/".join(reversed(names))


@dataclass(slots=True)
class _ArchiveEntry(SourceEntry):
    """An entry whose content is in an archive."""

    archive: Archive | None = None
    ino: int = 0

    @property
    def can_reopen(self) -> bool:
        """See SourceEntry.can_reopen."""
        return True

    def read_at(self, file_offset: int, size: int) -> bytes:
        """See SourceEntry.read_at. Raises the error of a damaged block, which names the entry."""
        assert self.archive is not None
        try:
            return self.archive.read(self.ino, file_offset, size)
        except GompfsError as error:
            error.path = display_path(self.path)
            raise

    def open(self) -> BinaryIO:
        """See SourceEntry.open. A read may return fewer bytes than wanted also before the end of the file."""
        if self.data_ranges is not None:  # holes are not read
            return SourceEntry.open(self)
        return cast(BinaryIO, ContentStream(self.read_at, self.size, self._read_into))

    def _read_into(self, file_offset: int, memory: memoryview) -> int:
        """Decode the bytes from `file_offset` on into `memory`, on all threads. Returns their number."""
        assert self.archive is not None
        try:
            self.archive.decode_into(self.ino, file_offset, memory)
        except GompfsError:  # of any damaged block; the caller wants the first one
            memory = memory[:_RANGE_SIZE]
            memory[:] = self.read_at(file_offset, len(memory))
        return len(memory)
