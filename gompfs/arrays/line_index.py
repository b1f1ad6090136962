"""Where the lines of many files begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from gompfs.arrays.result import Arrays

Numbers = NDArray[np.int64]
_BATCH_BYTES = 64 << 20
_NEWLINE = 10


class LineIndex:
    """The lines of files, numbered from 0 on, without the newlines that end them.

    Offsets are in all files one after another, so that 8 bytes for each line say where it begins.
    """

    def __init__(self, read: Callable[[Numbers], Arrays], inos: Numbers, sizes: Numbers) -> None:
        """Finds the lines of the files with these inode numbers and sizes. `read` reads ranges of them."""
        self._inos = inos
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        newlines = np.concatenate([np.zeros(0, np.int64), *self._newlines(read, sizes)])
        is_full = sizes > 0
        self._ends_with_newline = np.zeros(sizes.size, np.bool_)
        self._ends_with_newline[is_full] = np.isin(self._offsets[1:][is_full] - 1, newlines)
        after = newlines + 1
        self._starts = np.union1d(self._offsets[:-1][is_full], after[~np.isin(after, self._offsets)])

    def _newlines(self, read: Callable[[Numbers], Arrays], sizes: Numbers) -> Iterator[Numbers]:
        """Yields the offsets of all newlines, batch by batch."""
        for rows, starts in _batches(self._inos, sizes, self._offsets):
            arrays = read(rows)
            found = np.flatnonzero(arrays.data == _NEWLINE)
            pieces = np.searchsorted(arrays.offsets, found, "right") - 1
            yield starts[pieces] + found - arrays.offsets[pieces]

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


def _batches(inos: Numbers, sizes: Numbers, offsets: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Cuts files into ranges, and these into batches of _BATCH_BYTES.

    Yields rows of inode number, start and stop, and the offset of each range in all files.
    """
    rows: list[tuple[int, int, int]] = []
    starts: list[int] = []
    space = _BATCH_BYTES
    for ino, size, offset in zip(inos.tolist(), sizes.tolist(), offsets.tolist(), strict=False):
        begin = 0
        while begin < size:
            end = min(size, begin + space)
            rows.append((ino, begin, end))
            starts.append(offset + begin)
            space -= end - begin
            begin = end
            if space == 0:
                yield np.array(rows, np.int64), np.array(starts, np.int64)
                rows, starts, space = [], [], _BATCH_BYTES
    if rows:
        yield np.array(rows, np.int64), np.array(starts, np.int64)
