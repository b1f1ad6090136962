"""Finds large or sparse files whose content the archive has which is added to.

The first bytes of a file are compared with those of all files of its size that have data at the same offset. Whole
contents are compared, byte by byte, only with few files that begin in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gompfs.errors import GompfsError
from gompfs.model import Extent
from gompfs.pack.archived_contents import ReadingLimit
from gompfs.pack.archived_files import ArchivedFiles
from gompfs.pack.sources.base import SourceEntry, fill
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE

_HEAD_SIZE = 64 << 10
_COST_OF_HEAD = np.array([256 << 10])  # in bytes that take as long to decode
_MAX_COMPARED = 4
_PIECE_SIZE = 4 << 20

_Ranges = list[tuple[int, int]]


@dataclass(slots=True)
class _OfSize:
    """The files of a size: indexes of FileColumns. Those that are `waiting`, the newest last, have not been read."""

    waiting: list[int]
    by_head: dict[bytes, list[int]] = field(default_factory=dict)


class LargeArchivedContents:
    """The contents of more than MAX_WHOLE_SIZE bytes, or with holes, that an archive has."""

    def __init__(self, files: ArchivedFiles) -> None:
        self._files = files
        self._limit = ReadingLimit()
        self._by_size: dict[int, _OfSize] = {}

    def find(self, entry: SourceEntry) -> int | None:
        """Returns the inode number of a file with the content and the holes of an entry that can be reopened.

        Returns None if there is none, or if the limit does not allow to look. Raises CorruptIndexError, and the errors
        of reading the entry.
        """
        ranges = [(0, entry.size)] if entry.data_ranges is None else entry.data_ranges
        of_size = self._of_size(entry.size)
        if not ranges or not (of_size.waiting or of_size.by_head):
            return None
        self._limit.allow_for(sum(size for _, size in ranges))
        head = entry.read_at(ranges[0][0], min(_HEAD_SIZE, ranges[0][1]))
        candidates = self._at_path(entry, head)
        while of_size.waiting and self._limit.take(_COST_OF_HEAD):
            index = of_size.waiting.pop()
            if (its_head := self._head(index)) is not None:
                of_size.by_head.setdefault(its_head, []).append(index)
        candidates += of_size.by_head.get(head, [])
        for index in candidates[:_MAX_COMPARED]:
            if self._is_equal(entry, ranges, index):
                return int(self._files.columns.inos[index])
        return None

    def _of_size(self, size: int) -> _OfSize:
        if size not in self._by_size:
            columns = self._files.columns
            is_large = (size > MAX_WHOLE_SIZE) | (columns.stored_sizes != size)
            found = np.flatnonzero((columns.sizes == size) & is_large & (columns.stored_sizes > 0))
            _, first = np.unique(columns.keys[found], return_index=True)
            self._by_size[size] = _OfSize(found[np.sort(first)].tolist())
        return self._by_size[size]

    def _at_path(self, entry: SourceEntry, head: bytes) -> list[int]:
        """Returns the file at the path of an entry if it has its size and begins with `head`."""
        directory, _, name = entry.path.rpartition(b"/")
        archived = self._files.find(directory).get(name)
        if archived is None or archived.size != entry.size:
            return []
        index = self._files.columns.index_of(archived.ino)
        return [index] if index is not None and self._head(index) == head else []

    def _head(self, index: int) -> bytes | None:
        """Returns the first bytes of a file that are in no hole, or None if they cannot be read."""
        columns = self._files.columns
        ranges = joined_ranges(columns.extents(index))
        if not ranges:
            return None
        try:
            return self._files.archive.read(int(columns.inos[index]), ranges[0][0], min(_HEAD_SIZE, ranges[0][1]))
        except GompfsError:
            return None

    def _is_equal(self, entry: SourceEntry, ranges: _Ranges, index: int) -> bool:
        """Returns whether a file has the content of an entry, which is not in holes in `ranges`."""
        if joined_ranges(self._files.columns.extents(index)) != ranges:
            return False
        ino = int(self._files.columns.inos[index])
        memory, other = np.empty(_PIECE_SIZE, np.uint8), np.empty(_PIECE_SIZE, np.uint8)
        with entry.open() as file:
            for begin, size in ranges:
                file.seek(begin)
                for file_offset in range(begin, begin + size, _PIECE_SIZE):
                    count = min(_PIECE_SIZE, begin + size - file_offset)
                    try:
                        self._files.archive.decode_into(ino, file_offset, other[:count].data)
                    except GompfsError:  # a damaged file is not used
                        return False
                    if fill(file, memory[:count].data) < count or not np.array_equal(memory[:count], other[:count]):
                        return False
        return True


def joined_ranges(extents: list[Extent]) -> _Ranges:
    """Returns file_offset and size of the ranges of a file that its extents cover, in order."""
    ranges: _Ranges = []
    for file_offset, _, size in extents:
        if ranges and sum(ranges[-1]) == file_offset:
            file_offset, size = ranges[-1][0], ranges.pop()[1] + size
        ranges.append((file_offset, size))
    return ranges
