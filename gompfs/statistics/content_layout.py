"""Computes where the bytes of many files lie in the stream, with arrays."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive
from gompfs.archive.index_arrays import all_extents, file_sizes
from gompfs.errors import CorruptIndexError

Numbers = NDArray[np.int64]
_MAX = np.iinfo(np.int64).max


@dataclass(frozen=True)
class TextLayout:
    """Files that have bytes and no holes, in the order of the stream. All arrays are int64.

    File f has inode `inos[f]` and `sizes[f]` bytes: those of the runs `starts[f]` to `starts[f + 1]` - 1. Run r is
    `run_sizes[r]` bytes of the stream from `stream_offsets[r]` on.
    """

    inos: Numbers
    sizes: Numbers
    starts: Numbers
    stream_offsets: Numbers
    run_sizes: Numbers


def locate_text(archive: Archive, inos: Collection[int]) -> tuple[TextLayout, list[int]]:
    """Returns the layout of the non-empty regular files among `inos` without holes, and the inodes of those with holes.

    Raises CorruptIndexError if extents overlap, are empty or lie outside the stream.
    """
    files = file_sizes(archive)
    files = files[(files[:, 1] > 0) & np.isin(files[:, 0], np.fromiter(inos, np.int64, len(inos)))]
    extents = all_extents(archive)
    extents = extents[np.isin(extents[:, 0], files[:, 0])]
    numbers = np.searchsorted(files[:, 0], extents[:, 0])
    _check_extents(archive, numbers, extents)
    sizes = np.minimum(extents[:, 3], files[numbers, 1] - extents[:, 1])
    numbers, offsets, sizes = (column[sizes > 0] for column in (numbers, extents[:, 2], sizes))
    is_outside = offsets + sizes > archive.num_blocks * archive.block_size
    if is_outside.any():
        raise outside(archive, int(files[numbers[np.argmax(is_outside)], 0]), "the stream")
    covered = np.zeros(len(files), np.int64)
    np.add.at(covered, numbers, sizes)
    is_whole = covered == files[:, 1]
    kept = is_whole[numbers]
    layout = _in_order(files[is_whole], np.cumsum(is_whole)[numbers[kept]] - 1, offsets[kept], sizes[kept])
    return layout, files[~is_whole, 0].tolist()


def _in_order(files: Numbers, numbers: Numbers, offsets: Numbers, sizes: Numbers) -> TextLayout:
    """Returns the layout of files, sorted by the stream offset at which each begins. `numbers` must ascend."""
    starts = np.searchsorted(numbers, np.arange(len(files)))
    order = np.argsort(offsets[starts], kind="stable")
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    runs = np.argsort(positions[numbers], kind="stable")
    counts = np.bincount(positions[numbers], minlength=len(files))
    return TextLayout(
        files[order, 0], files[order, 1], np.concatenate([[0], np.cumsum(counts)]), offsets[runs], sizes[runs]
    )


def _check_extents(archive: Archive, numbers: Numbers, extents: Numbers) -> None:
    """Raise CorruptIndexError for impossible extents. `extents` are sorted by file and file_offset."""
    _, begin, stream_offset, size = extents.T
    is_wrong = (size <= 0) | (begin < 0) | (stream_offset < 0)
    is_wrong |= (begin > _MAX - np.maximum(size, 0)) | (stream_offset > _MAX - np.maximum(size, 0))
    is_wrong[1:] |= (numbers[1:] == numbers[:-1]) & (begin[1:] - size[:-1] < begin[:-1])
    if is_wrong.any():
        ino = int(extents[np.argmax(is_wrong), 0])
        reason = f"the index is damaged: inode {ino} has impossible extents"
        raise CorruptIndexError(reason, archive=archive.path, path=archive.path_of(ino))


def outside(archive: Archive, ino: int, what: str) -> CorruptIndexError:
    """Returns the error for a file that has bytes outside the stream or its segment."""
    return CorruptIndexError(f"inode {ino} has bytes outside {what}", archive=archive.path, path=archive.path_of(ino))


def union(first: Numbers, last: Numbers) -> Numbers:
    """Returns all numbers that lie in any of the ranges `first[i]` to `last[i]`, inclusive, in ascending order."""
    if not first.size:
        return np.zeros(0, np.int64)
    base = int(np.min(first))
    changes = np.zeros(int(np.max(last)) - base + 2, np.int64)
    np.add.at(changes, first - base, 1)
    np.add.at(changes, last - base + 1, -1)
    return np.flatnonzero(np.cumsum(changes) > 0) + base
