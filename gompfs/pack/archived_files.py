"""The regular files of the archive that is added to, whose contents new files may have.

The index is untrusted input. A file whose extents break a rule of the format is left out, so that no new file gets such
extents.
"""

from __future__ import annotations

import stat
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gompfs.archive import Archive
from gompfs.archive.index_arrays import all_extents, file_sizes
from gompfs.index.visited import VisitedDirectories
from gompfs.model import ROOT_INO, Extent
from gompfs.pack.sources.base import ArchivedFile

if TYPE_CHECKING:
    from gompfs.index.reader import IndexReader

Numbers = NDArray[np.int64]

_MAX_CACHED_DIRECTORIES = 64


class ArchivedFiles:
    """The files of an archive, by path and as columns."""

    def __init__(self, archive: Archive) -> None:
        """`archive` must stay open. Raises CorruptIndexError."""
        self.archive = archive
        self.directories = _directories(archive.index)
        """The inode numbers of all directories by path."""
        self._found: dict[bytes, dict[bytes, ArchivedFile]] = {}

    def find(self, directory: bytes) -> dict[bytes, ArchivedFile]:
        """Returns the files in the directory of a path by name. Raises CorruptIndexError."""
        if directory not in self._found:
            if len(self._found) >= _MAX_CACHED_DIRECTORIES:
                self._found.pop(next(iter(self._found)))
            self._found[directory] = self._read_directory(directory)
        return self._found[directory]

    def _read_directory(self, directory: bytes) -> dict[bytes, ArchivedFile]:
        ino = self.directories.get(directory)
        if ino is None:
            return {}
        files = [entry for entry in self.archive.index.directory(ino) if stat.S_ISREG(entry.inode.mode)]
        return {  # without files, it does not take the columns
            name: ArchivedFile(inode.size, inode.mtime_ns, inode.ino)
            for name, inode in files
            if self.columns.index_of(inode.ino) is not None
        }

    @cached_property
    def columns(self) -> FileColumns:
        """The files with valid extents. The first use reads the index, and may raise CorruptIndexError."""
        return FileColumns(self.archive)

    def has_size(self, size: int) -> bool:
        """Returns whether a file has this size. That takes less memory than `columns`. May raise CorruptIndexError."""
        index = bisect_left(self._sizes, size)
        return index < len(self._sizes) and int(self._sizes[index]) == size

    @cached_property
    def _sizes(self) -> Numbers:
        sizes = [np.unique(np.array(rows, np.int64)[:, 1]) for rows in self.archive.index.file_sizes()]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *sizes]))

    def is_binary(self, ino: int) -> bool:
        """Returns whether the archive lists a file as binary."""
        return self.archive.index.is_binary_file(ino)


class FileColumns:
    """The regular files of an archive whose extents keep the rules of the format, by inode number.

    `inos`, `sizes` and `stored_sizes` (without holes) have one number for each, in bytes. `starts` is the offset of its
    first extent in the stream, -1 if it has none, and `parts` the number of the part which has that offset. `keys` are
    equal for files with the same extents; `num_extents` says how many there are.
    """

    def __init__(self, archive: Archive) -> None:
        """Read the index of `archive`. Raises CorruptIndexError."""
        files = file_sizes(archive)
        extents = all_extents(archive)
        extents = extents[np.isin(extents[:, 0], files[:, 0])]
        parts = _parts_of(archive)
        first = np.searchsorted(extents[:, 0], files[:, 0])
        end = np.searchsorted(extents[:, 0], files[:, 0], "right")
        file = np.repeat(np.arange(len(files)), end - first)
        part = np.searchsorted(parts[:, 0], extents[:, 2], "right") - 1
        is_bad = ~_are_possible(extents, files[file, 1], parts, part)
        goes_on = extents[1:, 0] == extents[:-1, 0]
        is_bad[1:] |= goes_on & (extents[1:, 1] - extents[:-1, 3] < extents[:-1, 1])
        keep = np.bincount(file[is_bad], minlength=len(files)) == 0
        keep &= files[:, 1] >= 0
        stored, keys = np.zeros(len(files), np.int64), np.zeros(len(files), np.int64)
        np.add.at(stored, file[~is_bad], extents[~is_bad, 3])
        np.add.at(keys, file, (2 * extents[:, 1] + 1) * extents[:, 2] + extents[:, 3])
        padded = np.append(extents[:, 2], -1), np.append(part, -1)
        at = np.where(end > first, first, len(extents))
        self.inos, self.sizes, self.stored_sizes = files[keep, 0], files[keep, 1], stored[keep]
        self.starts, self.parts = padded[0][at][keep], padded[1][at][keep]
        self.keys, self.num_extents = keys[keep], (end - first)[keep]
        self.part_table = parts
        """A row for each part: its first offset in the stream, the offset after it, number of the segment, kind."""
        self._first, self._end = first[keep], end[keep]
        self._extents = extents

    def index_of(self, ino: int) -> int | None:
        """Returns the index of a file in the columns, or None."""
        index = int(np.searchsorted(self.inos, ino))
        return index if index < len(self.inos) and self.inos[index] == ino else None

    def extents(self, index: int) -> list[Extent]:
        """Returns the extents of the file of an index by file_offset."""
        rows = self._extents[self._first[index] : self._end[index], 1:]
        return [Extent(*row) for row in rows.tolist()]


def _parts_of(archive: Archive) -> Numbers:
    """Returns the rows of FileColumns.part_table, and one for an empty part before all others."""
    rows = [(-1, -1, -1, -1)]
    for segment in archive.segments:
        ranges = segment.part_ranges(archive.block_size)
        rows += [
            (begin, end, segment.number, kind) for kind, (begin, end) in zip(segment.parts.kinds, ranges, strict=True)
        ]
    return np.array(rows, np.int64)


def _are_possible(extents: Numbers, sizes: Numbers, parts: Numbers, part: Numbers) -> NDArray[np.bool_]:
    """Returns which extents lie within a part and within their file, of `sizes` bytes. `part` is negative for none."""
    _, file_offsets, starts, counts = extents.T
    is_possible: NDArray[np.bool_] = (part > 0) & (counts > 0) & (file_offsets >= 0) & (starts >= 0)
    is_possible &= (counts <= sizes) & (file_offsets <= sizes - counts)
    is_possible &= (starts < parts[part, 1]) & (counts <= parts[part, 1] - starts)
    return is_possible


def _directories(index: IndexReader) -> dict[bytes, int]:
    children: dict[int, list[tuple[bytes, int]]] = {}
    for parent, name, ino in index.subdirectories():
        children.setdefault(parent, []).append((name, ino))
    directories: dict[bytes, int] = {}
    visited = VisitedDirectories()
    pending: list[tuple[bytes, int]] = [(b"", ROOT_INO)] if index.inode(ROOT_INO) is not None else []
    while pending:
        path, ino = pending.pop()
        visited.enter(ino, path)
        directories[path] = ino
        prefix = path + b"/" if path else b""
        pending.extend((prefix + name, child) for name, child in children.get(ino, ()))
    return directories
