"""Rows of the index as NumPy arrays, for computations with all entries; reading an archive needs none of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive


def file_sizes(archive: Archive) -> NDArray[np.int64]:
    """All regular files as rows of ino and size, by ino; raises CorruptIndexError."""
    return np.concatenate([np.empty((0, 2), np.int64), *map(np.array, archive.file_sizes())])


def all_extents(archive: Archive) -> NDArray[np.int64]:
    """All extents as rows of ino, file_offset, stream_offset, size, by the first two, unchecked; likewise."""
    return np.concatenate([np.empty((0, 4), np.int64), *map(np.array, archive.all_extents())])


def inode_numbers(archive: Archive) -> NDArray[np.uint64]:
    """The numbers of all inodes, ascending; takes less time than Archive.inode_numbers."""
    lists = (np.fromstring(numbers, np.uint64, sep=",") for numbers in archive.inode_number_lists())
    return np.concatenate([np.zeros(0, np.uint64), *lists])
