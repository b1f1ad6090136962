"""Builds a segment: writes entries to the index, and their contents through ContentWriter."""

from __future__ import annotations

import stat
import tempfile
from typing import TYPE_CHECKING

from gompfs._native.sources import PathTable
from gompfs.engine import Engine
from gompfs.errors import PackError, UnreadableFileError, display_path
from gompfs.index.writer import IndexWriter
from gompfs.model import MAX_INO, MAX_TIME_NS, NEXT_INO, ROOT_INO, Inode
from gompfs.options import PackOptions
from gompfs.pack.contents import ContentWriter
from gompfs.pack.sources.base import SourceEntry
from gompfs.pack.sources.file_run import FileRun
from gompfs.pack.stream import BlockWriter, ChooseDictionary

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary
    from gompfs._native.sources import LoadedFiles
    from gompfs.pack.archived_files import ArchivedFiles

_DEFAULT_DIRECTORY_MODE = stat.S_IFDIR | 0o755


class SegmentBuilder:
    """Takes the entries of a segment in any order in which a hard link follows the entry that it names."""

    def __init__(
        self,
        index: IndexWriter,
        writer: BlockWriter,
        engine: Engine,
        options: PackOptions,
        block_size: int,
        *,
        archived: ArchivedFiles | None = None,
        dictionary: Dictionary | ChooseDictionary | None = None,
    ) -> None:
        """Write rows to `index` and blocks to `writer`. `archived` are the files of the index that `index` extends.

        `dictionary` is that of the archive, or chooses it.
        """
        self.writer = writer
        self._index = index
        self._options = options
        self._directories = PathTable(tempfile.gettempdir())  # inode numbers
        self._merged: set[bytes] = set()  # directories that were there before the entry of a source came
        self._linkable = PathTable(tempfile.gettempdir())  # inode numbers
        self._left_out: set[bytes] = set()
        self._number = 0
        self._next_ino = ROOT_INO
        first_block = 0
        if archived is not None:
            archive = archived.archive
            for path, ino in archived.directories.items():
                self._directories.set(path, ino)
            self._number, first_block = len(archive.segments), archive.num_blocks
            # Inode numbers are never reused: the grammars of older segments still contain files that were replaced.
            self._next_ino = int(archive.meta[NEXT_INO])
        self.contents = ContentWriter(index, writer, engine, options, block_size, first_block, dictionary, archived)
        self.warnings = self.contents.warnings

    def add(self, entry: SourceEntry) -> int:
        """Store an entry. Returns the size of its content in bytes. Raises PackError."""
        kind = stat.S_IFMT(entry.mode)
        directory = self._directories.get(entry.path)
        if kind != stat.S_IFDIR and directory:
            raise PackError("the archive has a directory at this path; an entry cannot replace it", path=entry.path)
        if entry.hard_link_to is not None:
            return self._add_link(entry, entry.hard_link_to)
        if directory:
            self._index.remove_xattrs(directory)
            self._merged.add(entry.path)
        ino = self._number_for(entry, kind)
        size = entry.size
        if kind == stat.S_IFREG:
            try:
                size = self.contents.add(ino, entry)
            except UnreadableFileError as error:
                return self._leave_out(entry, error.message)
        if entry.path:
            self._name(entry.path, ino)
        if entry.xattrs:
            self._index.add_xattrs((ino, *item) for item in entry.xattrs.items())
        self._add_inode(ino, entry, size)
        if entry.may_be_linked:
            self._linkable.set(entry.path, ino)
        return size if kind == stat.S_IFREG else 0

    def add_files(self, run: FileRun) -> int:
        """Store the entries of a run, and empty it. Returns the size of their contents in bytes. Raises PackError."""
        files = run.files
        if not self.contents.takes_files or self._replaces_directory(run):
            return sum(map(self.add, run.entries()))
        size = files.size
        while len(files):
            rest = files.split_off(self._index.room)
            self._add_rows(run.directory, files)
            files = rest
        return size

    def _replaces_directory(self, run: FileRun) -> bool:
        """Returns whether a file has the path of a directory, which only one that was there before can have."""
        if run.directory not in self._merged:
            return False
        prefix = run.directory + b"/" if run.directory else b""
        return any(self._directories.get(prefix + name) for name in run.files.names())

    def _add_rows(self, directory: bytes, files: LoadedFiles) -> None:
        parent = self._directory(directory)
        ino = self._take_numbers(len(files))
        self.contents.add_files(ino, directory, files)
        self._index.add_xattrs(files.xattr_rows(ino))
        options = self._options
        self._index.add_files(
            files.inode_rows(ino, options.owner, options.group, options.mtime_ns), files.dirent_rows(parent, ino)
        )

    def _add_link(self, entry: SourceEntry, first_path: bytes) -> int:
        """Store another name of an inode."""
        if first_path in self._left_out:
            return self._leave_out(entry, "it is another name of a file that cannot be read")
        ino = self._linkable.get(first_path)
        if not ino:
            raise PackError(f"hard link to {display_path(first_path)}, which is missing", path=entry.path)
        self._name(entry.path, ino)
        self._linkable.set(entry.path, ino)
        return 0

    def _leave_out(self, entry: SourceEntry, reason: str) -> int:
        """Skip an entry, with a warning. Its inode number stays unused, and bytes already read belong to no file."""
        self._left_out.add(entry.path)
        self.warnings.append(f"{display_path(entry.path)}: {reason}; left out")
        return 0

    def finish(self) -> None:
        """Write the rest of the contents, and store their positions in the index."""
        self._directory(b"")
        self.contents.finish(self._number)
        self._index.set_meta({NEXT_INO: str(self._next_ino)})

    def abandon(self) -> None:
        """Stop all work in progress."""
        self.contents.abandon()
        self._index.abandon()

    # Names and inodes

    def _number_for(self, entry: SourceEntry, kind: int) -> int:
        if kind == stat.S_IFDIR and (known := self._directories.get(entry.path)):
            return known
        if entry.path:
            self._directory(entry.path.rpartition(b"/")[0], entry)
        ino = self._take_numbers(1)
        if kind == stat.S_IFDIR:
            self._directories.set(entry.path, ino)
        return ino

    def _take_numbers(self, count: int) -> int:
        """Returns the first of `count` new inode numbers."""
        ino = self._next_ino
        if ino + count > MAX_INO:
            raise PackError("the archive has no inode numbers left: nothing can be added")
        self._next_ino += count
        return ino

    def _name(self, path: bytes, ino: int) -> None:
        parent, _, name = path.rpartition(b"/")
        self._index.add_name(self._directory(parent), name, ino)

    def _directory(self, path: bytes, below: SourceEntry | None = None) -> int:
        """Returns the inode number of a directory. Creates it if no entry did.

        It then has the owner, group and time of `below`, an entry below it.
        """
        ino = self._directories.get(path)
        if not ino:
            entry = SourceEntry(path, _DEFAULT_DIRECTORY_MODE, mtime_ns=self._options.mtime_ns or 0)
            if below is not None:
                entry.uid, entry.gid, entry.mtime_ns = below.uid, below.gid, below.mtime_ns
            ino = self._number_for(entry, stat.S_IFDIR)
            if path:
                self._name(path, ino)
            self._add_inode(ino, entry, 0)
        return ino

    def _add_inode(self, ino: int, entry: SourceEntry, size: int) -> None:
        options = self._options
        mtime_ns = entry.mtime_ns if options.mtime_ns is None else options.mtime_ns
        if abs(mtime_ns) > MAX_TIME_NS:
            path = display_path(entry.path)
            self.warnings.append(f"{path}: the modification time is out of range; stored the nearest time")
            mtime_ns = MAX_TIME_NS if mtime_ns > 0 else -MAX_TIME_NS
        self._index.add_inode(
            Inode(
                ino,
                entry.mode,
                entry.uid if options.owner is None else options.owner,
                entry.gid if options.group is None else options.group,
                size,
                mtime_ns,
                1,
                entry.rdev,
                entry.symlink_target,
            )
        )
