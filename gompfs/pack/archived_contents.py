"""Finds contents that the archive has which is added to.

An archive does not store hashes of its files. So files whose sizes are those of new files are decoded and hashed, each
at most once; the file at the path of the new one comes first. How much is decoded is limited in two ways:

* A content of any other path is decoded only while all such contents together cost less than _FREE_COST and a multiple
  of the bytes of new files. Otherwise a file would be compared with any number of files that happen to have its size.
* Reading one file costs more than its bytes: whole blocks, and the head of its part. So a range of the stream is read
  whole, and all its files are hashed, once its files that were read alone have cost as much as that. Reading all
  contents in any order then costs at most about twice as much as reading the archive once.

Which contents are found depends on the archive and on the order of the new files alone, not on time or threads.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gompfs._native.blocks import ContentLoader
from gompfs._native.sources import KnownContents, LoadedFiles
from gompfs.model import Inode, PartKind
from gompfs.pack.archived_files import ArchivedFiles, FileColumns
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE

Numbers = NDArray[np.int64]

_RANGE_SIZE = 1 << 20  # of the stream, in parts that are no grammars
_FILE_COST, _RANGE_COST, _HEAD_COST = 4 << 10, 64 << 10, 128 << 10  # in bytes that take as long to decode
_FREE_COST = 64 << 20
_COST_OF_BYTE = 8  # for each byte of new files
_LEAST_COST = 1 << 20  # it takes time to find out what could be read
_BYTES_AHEAD = 32 << 20


class ReadingLimit:
    """How much may be read of contents that need not be equal to new ones. Costs are in bytes."""

    def __init__(self) -> None:
        self._left = _FREE_COST

    def allow_for(self, num_bytes: int) -> None:
        """Allow more for `num_bytes` of new files."""
        self._left += _COST_OF_BYTE * num_bytes

    @property
    def is_reached(self) -> bool:
        """Whether so little is left that it is not worth a search."""
        return self._left < _LEAST_COST

    def take(self, cost: int) -> bool:
        """Take `cost` if that much is left. Returns whether it was."""
        if cost > self._left:
            return False
        self._left -= cost
        return True


class ArchivedContents:
    """Adds contents of up to MAX_WHOLE_SIZE bytes that the archive has to KnownContents, before they are looked up.

    Files with holes are left out: with equal bytes and without holes, a file may be text. So are files that cannot be
    read.
    """

    def __init__(self, files: ArchivedFiles, known: KnownContents, num_threads: int) -> None:
        self._files = files
        self._known = known
        self._num_threads = num_threads
        self._limit = ReadingLimit()

    def look_up(self, directory: bytes, new: list[tuple[bytes, int]]) -> None:
        """Add contents that new files of a directory may have, given by names and sizes: those at the same paths.

        Raises CorruptIndexError.
        """
        archived = self._files.find(directory)
        inos = [
            file.ino
            for name, size in new
            if (file := archived.get(name)) is not None and file.size == size <= MAX_WHOLE_SIZE
        ]
        if inos:
            self._read(self._candidates.choose(self._candidates.of_files(inos), None))

    def look_up_sizes(self, sizes: Iterable[int]) -> None:
        """Add contents of these sizes, as far as the limit allows. Raises CorruptIndexError."""
        wanted = np.array(list(sizes), np.int64)
        self._limit.allow_for(int(wanted.sum()))
        if not self._limit.is_reached:
            found = self._candidates.of_sizes(np.unique(wanted))
            self._read(self._candidates.choose(found, self._limit))

    @cached_property
    def _candidates(self) -> _Candidates:
        return _Candidates(self._files.columns)

    @cached_property
    def _loader(self) -> ContentLoader:
        return ContentLoader(self._files.archive.blocks.reader, _BYTES_AHEAD, self._num_threads)

    def _read(self, files: list[tuple[int, int]]) -> None:
        """Read files, given by inode number and size, on several threads. Adds their contents."""
        if not files:
            return
        announced = self._loader.load([(b"", Inode(ino, stat.S_IFREG, 0, 0, size, 0, 1), {}) for ino, size in files])
        position = 0
        while (taken := announced.take()) is not None:
            if not isinstance(taken, LoadedFiles):  # it cannot be read
                position += 1
                continue
            self._known.add_archived(taken, [ino for ino, _ in files[position : position + len(taken)]])
            position += len(taken)


class _Candidates:
    """The files that can be read, in the order of the stream; of several with the same bytes of it, one."""

    def __init__(self, columns: FileColumns) -> None:
        usable = np.flatnonzero(
            (columns.sizes > 0) & (columns.sizes <= MAX_WHOLE_SIZE) & (columns.stored_sizes == columns.sizes)
        )
        where = np.stack([columns.starts[usable], columns.sizes[usable]], axis=1)
        unique, first, inverse = np.unique(where, axis=0, return_index=True, return_inverse=True)
        self._columns = columns
        self._number = np.full(len(columns.inos), -1, np.int64)
        self._number[usable] = inverse.reshape(-1)
        starts, self._sizes = unique[:, 0], unique[:, 1]
        self._inos = columns.inos[usable][first]
        parts = columns.parts[usable][first]
        self._ranges, self._has_head = _ranges_of(columns, starts, parts)
        self._is_left = np.ones(len(unique), np.bool_)
        self._by_size = np.argsort(self._sizes, kind="stable")
        self._sorted_sizes = self._sizes[self._by_size]
        self._spent: dict[int, int] = {}  # on files of a range that were read alone

    def of_files(self, inos: list[int]) -> Numbers:
        """Returns the numbers of files of the archive that are candidates."""
        indexes = [index for ino in inos if (index := self._columns.index_of(ino)) is not None]
        numbers: Numbers = self._number[indexes]
        return numbers[numbers >= 0]

    def of_sizes(self, sizes: Numbers) -> Numbers:
        """Returns the numbers of the candidates of these sizes."""
        first = np.searchsorted(self._sorted_sizes, sizes)
        end = np.searchsorted(self._sorted_sizes, sizes, "right")
        return np.concatenate([np.zeros(0, np.int64), *map(self._of_size, first.tolist(), end.tolist())])

    def _of_size(self, first: int, end: int) -> Numbers:
        return self._by_size[first:end]

    def choose(self, numbers: Numbers, limit: ReadingLimit | None) -> list[tuple[int, int]]:
        """Returns inode numbers and sizes of files to read, in the order of the stream, and counts them as read.

        They are the candidates of these numbers that were not read before, the newest ones if `limit` does not allow
        all, or all files of their ranges.
        """
        numbers = np.unique(numbers[self._is_left[numbers]])
        chosen = list(self._choose(numbers, limit))
        if not chosen:
            return []
        files = np.concatenate(chosen[::-1])
        self._is_left[files] = False
        return list(zip(self._inos[files].tolist(), self._sizes[files].tolist(), strict=True))

    def _choose(self, numbers: Numbers, limit: ReadingLimit | None) -> Iterator[Numbers]:
        """Yields the files to read of each range, the last range first."""
        cuts = np.flatnonzero(np.diff(self._ranges[numbers])) + 1
        for files in reversed(np.split(numbers, cuts) if len(numbers) else []):
            number = int(self._ranges[files[0]])
            spent = self._spent.get(number, 0) + self._cost(files)
            of_range = np.arange(*np.searchsorted(self._ranges, [number, number + 1]))
            of_range = of_range[self._is_left[of_range]]
            if spent >= self._cost(of_range):
                files = of_range
            if limit is not None and not limit.take(self._cost(files)):
                return
            self._spent[number] = spent
            yield files

    def _cost(self, files: Numbers) -> int:
        """Returns the cost of reading files of one range together."""
        fixed = _RANGE_COST + (_HEAD_COST if self._has_head[files[0]] else 0)
        return int(self._sizes[files].sum()) + len(files) * _FILE_COST + fixed


def _ranges_of(columns: FileColumns, starts: Numbers, parts: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Returns the number of the range in which each file begins, ascending, and whether its part is a grammar.

    `starts` ascend; `parts` are the parts that have these offsets. A grammar is one range.
    """
    has_head: NDArray[np.bool_] = columns.part_table[parts, 3] == PartKind.GRAMMAR
    inside = np.where(has_head, 0, (starts - columns.part_table[parts, 0]) // _RANGE_SIZE)
    is_other = (np.diff(parts) != 0) | (np.diff(inside) != 0)
    return np.concatenate([np.zeros(min(len(parts), 1), np.int64), np.cumsum(is_other)]), has_head
