"""Rows of the index as NumPy arrays, for computations over all entries. Plain reading does not need this module."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive


def file_sizes(archive: Archive) -> NDArray[np.int64]:
    """Returns all regular files as rows (ino, size), by ino; int64, shape (n, 2). Raises CorruptIndexError."""
    return np.concatenate([np.empty((0, 2), np.int64), *map(np.array, archive.index.file_sizes())])


def all_extents(archive: Archive) -> NDArray[np.int64]:
    """Returns all extents as rows (ino, file_offset, stream_offset, size), by ino and file_offset.

    int64, shape (n, 4). The rows are not checked. Raises CorruptIndexError.
    """
    return np.array(archive.index.all_extents(), np.int64).reshape(-1, 4)


def segment_numbers(archive: Archive, extents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the number of the segment in which each of some extents begins; that of no segment if it is in none."""
    ends = np.cumsum([len(segment.blocks) for segment in archive.segments], dtype=np.int64) * archive.block_size
    return np.searchsorted(ends, extents[:, 2], "right")


def composed_files(extents: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the files (first column) that have extents in several segments. `numbers` are those of segments."""
    goes_on = extents[1:, 0] == extents[:-1, 0]
    return np.unique(extents[1:, 0][goes_on & (numbers[1:] != numbers[:-1])])


def in_stream_order(archive: Archive, inos: Collection[int]) -> tuple[list[int], dict[int, int]]:
    """Returns the regular files among `inos` in the order of the stream, and for each file one with the same bytes.

    Of the files that are one extent each, the same one, only one is in the list: it has the bytes of the others. Raises
    CorruptIndexError.
    """
    files = file_sizes(archive)
    files = files[np.isin(files[:, 0], np.fromiter(inos, np.int64, len(inos)))]
    extents = np.append(all_extents(archive), [[0, 0, -1, 0]], axis=0)
    first, end = (np.searchsorted(extents[:-1, 0], files[:, 0], side) for side in ("left", "right"))
    extent = extents[np.where(end > first, first, -1)]
    is_one = (end - first == 1) & (extent[:, 1] == 0) & (extent[:, 3] == files[:, 1])
    keys = np.stack([extent[:, 2], files[:, 1], np.where(is_one, 0, files[:, 0])], axis=1)
    _, chosen, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    same = files[chosen, 0]
    return same.tolist(), dict(zip(files[:, 0].tolist(), same[number.reshape(-1)].tolist(), strict=True))


def inode_numbers(archive: Archive) -> NDArray[np.uint64]:
    """Returns the numbers of all inodes in ascending order. Faster than Archive.inode_numbers."""
    lists = (np.fromstring(numbers, np.uint64, sep=",") for numbers in archive.index.inode_numbers())
    return np.concatenate([np.zeros(0, np.uint64), *lists])
