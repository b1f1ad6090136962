"""Checks which files have their text in parts of text: all but binary files, which are listed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive
from gompfs.archive.index_arrays import all_extents, file_sizes
from gompfs.model import TEXT_KINDS, Problem, first_problems
from gompfs.statistics.grammar_cache import grammar_sections, has_text_parts


def check_text_files(archive: Archive) -> Iterator[Problem]:
    """Yields a problem for each file whose words statistics count but should not, or the other way round."""
    segments = [segment for segment in archive.segments if has_text_parts(segment)]
    if not segments:
        return
    ranges = [
        range_of_part
        for segment in segments
        for kind, range_of_part in zip(segment.parts.kinds, segment.part_ranges(archive.block_size), strict=True)
        if kind in TEXT_KINDS
    ]
    begins, ends = np.array(ranges, np.int64).T
    extents = all_extents(archive)
    part = np.searchsorted(begins, extents[:, 2], "right") - 1
    in_text = np.unique(extents[(part >= 0) & (extents[:, 2] < ends[part]), 0])
    binary = np.array(archive.index.binary_files(), np.int64)
    regular = file_sizes(archive)
    with_holes = files_with_holes(regular, extents)
    yield from each_file(np.intersect1d(in_text, binary), "it is in parts of text and listed as a binary file")
    yield from each_file(np.intersect1d(in_text, with_holes), "it is in parts of text and has holes")
    if len(segments) == len(archive.segments) and not grammar_sections(archive):
        not_empty = regular[regular[:, 1] > 0, 0]
        others = np.setdiff1d(not_empty, np.concatenate([in_text, binary, with_holes]))
        yield from each_file(others, "it is neither in parts of text nor listed as a binary file")


def files_with_holes(regular: NDArray[np.int64], extents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the inodes of the files whose extents do not cover all their bytes.

    `regular` has rows (ino, size) by ino, `extents` rows that begin with ino and end with size.
    """
    extents = extents[np.isin(extents[:, 0], regular[:, 0])]
    covered = np.zeros(len(regular), np.int64)
    np.add.at(covered, np.searchsorted(regular[:, 0], extents[:, 0]), extents[:, 3])
    with_holes: NDArray[np.int64] = regular[covered < regular[:, 1], 0]
    return with_holes


def each_file(inos: NDArray[np.int64], reason: str) -> Iterator[Problem]:
    """Yields a problem for each of some inodes, or for the first ones and their number if there are many."""
    return first_problems(Problem(reason, ino) for ino in inos.tolist())
