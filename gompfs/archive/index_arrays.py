"""Rows of the index as NumPy arrays, for computations over all entries. Plain reading does not need this module."""

from __future__ import annotations

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


def inode_numbers(archive: Archive) -> NDArray[np.uint64]:
    """Returns the numbers of all inodes in ascending order. Faster than Archive.inode_numbers."""
    lists = (np.fromstring(numbers, np.uint64, sep=",") for numbers in archive.index.inode_numbers())
    return np.concatenate([np.zeros(0, np.uint64), *lists])
