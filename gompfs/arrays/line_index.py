"""The offsets of the lines of many files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from gompfs.arrays.result import Arrays
from gompfs.errors import OptionError
from gompfs.memory import check_memory_for

Numbers = NDArray[np.int64]
_BATCH_BYTES = 64 << 20
_NEWLINE = 10
_MAX_SIZE = 1 << 62  # of all files, in bytes
_MEMORY_PER_LINE = 32  # bytes, while the lines of all batches are put together


class LineIndex:
    """The lines of files, numbered from 0 on, without the newlines that end them.

    Offsets are in all files one after another, so that 8 bytes for each line say where it begins.
    """

    def __init__(self, read: Callable[[Numbers], Arrays], inos: Numbers, sizes: Numbers, extents: Numbers) -> None:
        """Finds the lines of the files with these inode numbers and sizes. `read` reads ranges of them.

        `extents` has rows (ino, file_offset, stream_offset, size) of all files of the archive, by ino and file_offset:
        holes, which have no newlines, are not read. Raises OptionError if the files have 2^62 bytes or more together,
        MemoryError if there are too many lines, and what `read` raises.
        """
        if sizes.sum(dtype=np.float64) >= _MAX_SIZE:
            raise OptionError("the files are too large for samples of lines")
        self._inos = inos
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        newlines = self._newlines(read, sizes, extents)
        begins, ends = self._offsets[:-1][sizes > 0], self._offsets[1:]
        self._ends_with_newline = (sizes > 0) & _is_in(ends - 1, newlines)
        newlines += 1
        after = newlines[~_is_in(newlines, self._offsets)]
        self._starts = np.concatenate([begins, after])
        self._starts.sort()

    def _newlines(self, read: Callable[[Numbers], Arrays], sizes: Numbers, extents: Numbers) -> Numbers:
        """Returns the offsets of all newlines, in ascending order."""
        batches, num_found = [np.zeros(0, np.int64)], 0
        for rows, starts in _batches(_stored_ranges(self._inos, sizes, extents), self._inos, self._offsets):
            arrays = read(rows)
            found = np.flatnonzero(arrays.data == _NEWLINE)
            pieces = np.searchsorted(arrays.offsets, found, "right") - 1
            batches.append(starts[pieces] + found - arrays.offsets[pieces])
            num_found += found.size
            check_memory_for(num_found * _MEMORY_PER_LINE)
        return np.concatenate(batches)

    def __len__(self) -> int:
        return self._starts.size

    def files(self, lines: Numbers) -> Numbers:
        """Returns the number of the file of each line."""
        return np.searchsorted(self._offsets, self._starts[lines], "right") - 1

    def ranges(self, lines: Numbers) -> Numbers:
        """Returns a row of inode number, start and stop for each line."""
        files = self.files(lines)
        starts, limits = self._starts[lines], self._offsets[files + 1]
        following = self._starts[np.minimum(lines + 1, self._starts.size - 1)]
        goes_on = (following > starts) & (following < limits)
        stops = np.where(goes_on, following - 1, limits - self._ends_with_newline[files])
        base = self._offsets[files]
        return np.stack([self._inos[files], starts - base, stops - base], axis=1)


def _is_in(numbers: Numbers, known: Numbers) -> NDArray[np.bool_]:
    """Returns which numbers are among those that are `known`, in ascending order."""
    at = np.searchsorted(known, numbers)
    found: NDArray[np.bool_] = np.append(known, -1)[at] == numbers
    return found


def _stored_ranges(inos: Numbers, sizes: Numbers, extents: Numbers) -> Iterator[tuple[int, int, int]]:
    """Yields the ranges of files that are not in holes, file by file: number of the file, begin and end."""
    first = np.searchsorted(extents[:, 0], inos, "left")
    counts = np.searchsorted(extents[:, 0], inos, "right") - first
    files = np.repeat(np.arange(inos.size), counts)
    rows = np.arange(files.size) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    begins = np.clip(extents[rows, 1], 0, sizes[files])
    ends = begins + np.clip(extents[rows, 3], 0, sizes[files] - begins)
    return zip(files.tolist(), begins.tolist(), ends.tolist(), strict=True)


def _batches(
    ranges: Iterator[tuple[int, int, int]], inos: Numbers, offsets: Numbers
) -> Iterator[tuple[Numbers, Numbers]]:
    """Cuts ranges of files into batches of _BATCH_BYTES.

    Yields rows of inode number, start and stop, and the offset of each range in all files.
    """
    rows: list[tuple[int, int, int]] = []
    starts: list[int] = []
    space = _BATCH_BYTES
    for file, first, limit in ranges:
        begin = first
        while begin < limit:
            end = min(limit, begin + space)
            rows.append((int(inos[file]), begin, end))
            starts.append(int(offsets[file]) + begin)
            space -= end - begin
            begin = end
            if space == 0:
                yield np.array(rows, np.int64), np.array(starts, np.int64)
                rows, starts, space = [], [], _BATCH_BYTES
    if rows:
        yield np.array(rows, np.int64), np.array(starts, np.int64)
