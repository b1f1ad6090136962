"""Finds contents that the archive has which is added to.

An archive does not store hashes of its files. So files whose sizes are those of new files are decoded and hashed, each
at most once; the file at the path of the new one comes first. How much is decoded is limited in two ways:

* A content of any other path is decoded only while all such contents together cost less than _FREE_COST and a multiple
  of the bytes of new files. Otherwise a file would be compared with any number of files that happen to have its size.
  The next ones after the last content that was found come first: a tree that was moved is still in its order.
* Reading one file costs more than its bytes: whole blocks, and the head of its part. So a range of the stream is read
  whole, and all its files are hashed, once its files that were read alone have cost as much as that. Reading all
  contents in any order then costs at most about twice as much as reading the archive once.

Which contents are found depends on the archive and on the order of the new files alone, not on time or threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gompfs._native.sources import KnownContents, Place
from gompfs.model import PartKind
from gompfs.pack.archived_files import ArchivedFiles, FileColumns
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE

Numbers = NDArray[np.int64]

_RANGE_SIZE = 1 << 20  # of the stream, in parts that are no grammars
_FILE_COST, _RANGE_COST, _HEAD_COST = 4 << 10, 64 << 10, 128 << 10  # in bytes that take as long to decode
_FREE_COST = 64 << 20
_COST_OF_BYTE = 8  # for each byte of new files
_LEAST_COST = 4 << 20  # it takes time to find out what could be read


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

    def take(self, costs: Numbers) -> int:
        """Take the last of some ascending costs of which that much is left. Returns how many are not larger than it."""
        count = int(np.searchsorted(costs, self._left, "right"))
        if count:
            self._left -= int(costs[count - 1])
        return count


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

    def allow_for(self, num_bytes: int) -> None:
        """Allow to read more, for `num_bytes` of new files."""
        self._limit.allow_for(num_bytes)

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
            self.note_found(inos[-1])
            self._read(self._candidates.choose(self._candidates.of_files(inos), None))

    def look_up_sizes(self, sizes: Iterable[int]) -> None:
        """Add contents of these sizes, as far as the limit allows. Raises CorruptIndexError."""
        if self._limit.is_reached:
            return
        known = [size for size in sorted(set(sizes)) if self._files.has_size(size)]
        if known:
            self._read(self._candidates.choose(self._candidates.of_sizes(known), self._limit))

    def note_found(self, ino: int) -> None:
        """Search after this file of the archive, whose content a new file had."""
        self._candidates.begin_at(ino)

    @cached_property
    def _candidates(self) -> _Candidates:
        return _Candidates(self._files.columns)

    def _read(self, files: list[tuple[int, int]]) -> None:
        """Read files, given by inode number and size, on several threads. Adds their contents."""
        if not files:
            return
        digests = self._files.archive.blocks.reader.hash_files(files, self._num_threads)
        for (ino, _), sha256 in zip(files, digests, strict=True):
            if isinstance(sha256, bytes) and self._known.find(sha256) is None:
                self._known.add(sha256, Place.ARCHIVE, ino)


class _Candidates:
    """The files that can be read, in the order of the stream; of several with the same bytes of it, one."""

    def __init__(self, columns: FileColumns) -> None:
        usable = np.flatnonzero(
            (columns.sizes > 0) & (columns.sizes <= MAX_WHOLE_SIZE) & (columns.stored_sizes == columns.sizes)
        )
        where = np.stack([columns.starts[usable], columns.sizes[usable], columns.keys[usable]], axis=1)
        unique, first, inverse = np.unique(where, axis=0, return_index=True, return_inverse=True)
        self._columns = columns
        self._costs_of_extents = (columns.num_extents[usable][first] - 1) * _RANGE_COST
        self._number = np.full(len(columns.inos), -1, np.int64)
        self._number[usable] = inverse.reshape(-1)
        starts, self._sizes = unique[:, 0], unique[:, 1]
        self._inos = columns.inos[usable][first]
        parts = columns.parts[usable][first]
        self._ranges, self._has_head = _ranges_of(columns, starts, parts)
        self._is_left = np.ones(len(unique), np.bool_)
        self._by_size = np.argsort(self._sizes, kind="stable")
        self._sorted_sizes = self._sizes[self._by_size]
        self._of_size: dict[int, Numbers] = {}  # those that were not read when they were last asked for
        self._next = 0
        self._spent: dict[int, int] = {}  # on files of a range that were read alone

    def of_files(self, inos: list[int]) -> Numbers:
        """Returns the numbers of files of the archive that are candidates."""
        indexes = [index for ino in inos if (index := self._columns.index_of(ino)) is not None]
        numbers: Numbers = np.unique(self._number[indexes])
        return numbers[numbers >= 0]

    def of_sizes(self, sizes: list[int]) -> Numbers:
        """Returns the numbers of the candidates of these sizes that were not read, ascending."""
        found = [self._left_of_size(size) for size in sizes]
        return np.sort(np.concatenate(found)) if len(found) > 1 else found[0]

    def _left_of_size(self, size: int) -> Numbers:
        numbers = self._of_size.get(size)
        if numbers is None:
            first, end = (np.searchsorted(self._sorted_sizes, size, side) for side in ("left", "right"))
            numbers = self._by_size[first:end]
        numbers = self._of_size[size] = numbers[self._is_left[numbers]]
        return numbers

    def begin_at(self, ino: int) -> None:
        """Have `choose` take the candidates after a file of the archive first."""
        index = self._columns.index_of(ino)
        if index is not None and self._number[index] >= 0:
            self._next = int(self._number[index])

    def choose(self, numbers: Numbers, limit: ReadingLimit | None) -> list[tuple[int, int]]:
        """Returns inode numbers and sizes of files to read, in the order of the stream, and counts them as read.

        They are those of the candidates `numbers`, which ascend, that were not read before, as far as `limit` allows,
        or all files of their ranges.
        """
        cut = np.searchsorted(numbers, self._next)
        chosen = [*self._choose(numbers[cut:], limit), *self._choose(numbers[:cut], limit)]
        if not chosen:
            return []
        files = np.sort(np.concatenate(chosen))
        return list(zip(self._inos[files].tolist(), self._sizes[files].tolist(), strict=True))

    def _choose(self, numbers: Numbers, limit: ReadingLimit | None) -> Iterator[Numbers]:
        """Yields the files to read of each range."""
        numbers = numbers[self._is_left[numbers]]
        starts = np.flatnonzero(np.diff(self._ranges[numbers], prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(numbers)]):
            files = numbers[start:end]
            number = int(self._ranges[files[0]])
            spent = self._spent.get(number, 0) + self._costs(files)[-1]
            of_range = np.arange(*np.searchsorted(self._ranges, [number, number + 1]))
            of_range = of_range[self._is_left[of_range]]
            if spent >= self._costs(of_range)[-1]:
                files = of_range
            if limit is not None:
                files = files[: limit.take(self._costs(files))]
            if not len(files):
                return
            self._spent[number] = spent
            self._is_left[files] = False
            yield files

    def _costs(self, files: Numbers) -> Numbers:
        """Returns the cost of reading the first one, two, three ... of some files of a range together."""
        fixed = _RANGE_COST + (_HEAD_COST if self._has_head[files[0]] else 0)
        costs: Numbers = np.cumsum(self._sizes[files] + self._costs_of_extents[files] + _FILE_COST) + fixed
        return costs


def _ranges_of(columns: FileColumns, starts: Numbers, parts: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Returns the number of the range in which each file begins, ascending, and whether its part is a grammar.

    `starts` ascend; `parts` are the parts that have these offsets. A grammar is one range.
    """
    has_head: NDArray[np.bool_] = columns.part_table[parts, 3] == PartKind.GRAMMAR
    inside = np.where(has_head, 0, (starts - columns.part_table[parts, 0]) // _RANGE_SIZE)
    is_other = (np.diff(parts) != 0) | (np.diff(inside) != 0)
    return np.concatenate([np.zeros(min(len(parts), 1), np.int64), np.cumsum(is_other)]), has_head
