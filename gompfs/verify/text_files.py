"""Checks where files have their bytes: text in parts of text, but for composed files and the listed binary files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive
from gompfs.archive.index_arrays import all_extents, composed_files, file_sizes, segment_numbers
from gompfs.errors import CorruptBlockError
from gompfs.model import TEXT_KINDS, Problem, first_problems
from gompfs.statistics.grammar_cache import has_text_parts
from gompfs.text import PROBE_SIZE, is_text


def check_text_files(archive: Archive, blocks_with_nul: Sequence[int]) -> Iterator[Problem]:
    """Yields a problem for each file whose words statistics count but should not, or the other way round.

    It is also one if the text of a file is not where statistics look for it. They read the content of composed files,
    which may be anywhere. `blocks_with_nul` are the blocks of the stream, in segments with parts of text, that have a
    NUL byte.
    """
    segments = [segment for segment in archive.segments if has_text_parts(segment)]
    if not segments:
        return
    ranges = [
        range_of_part
        for segment in segments
        for kind, range_of_part in zip(segment.parts.kinds, segment.part_ranges(archive.block_size), strict=True)
        if kind in TEXT_KINDS
    ]
    parts = np.array(ranges, np.int64)
    extents = all_extents(archive)
    composed = composed_files(extents, segment_numbers(archive, extents))
    extents = extents[np.isin(extents[:, 0], composed, invert=True)]
    part = np.searchsorted(parts[:, 0], extents[:, 2], "right") - 1
    is_in_text = (part >= 0) & (extents[:, 2] < parts[part, 1])
    in_text = np.unique(extents[is_in_text, 0])
    binary = np.array(archive.index.binary_files(), np.int64)
    regular = file_sizes(archive)
    with_holes = files_with_holes(regular, extents)
    yield from each_file(np.intersect1d(in_text, binary), "it is in parts of text and listed as a binary file")
    yield from each_file(np.intersect1d(in_text, with_holes), "it is in parts of text and has holes")
    elsewhere = np.intersect1d(in_text, extents[~is_in_text, 0])
    yield from each_file(elsewhere, "it is in parts of text and in others")
    apart = _files_apart(extents[is_in_text], parts[part[is_in_text]], part[is_in_text])
    yield from each_file(apart, "it does not continue in the next part of text")
    candidates = _files_with_nul(archive, extents[is_in_text], blocks_with_nul)
    with_nul = [ino for ino in candidates.tolist() if _has_nul(archive, ino)]
    yield from each_file(np.array(with_nul, np.int64), "it is in parts of text and has a NUL near its beginning")
    if len(segments) == len(archive.segments):
        not_empty = regular[regular[:, 1] > 0, 0]
        others = np.setdiff1d(not_empty, np.concatenate([in_text, composed, binary, with_holes]))
        yield from each_file(others, "it is neither in parts of text nor listed as a binary file")


def _files_apart(extents: NDArray[np.int64], parts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the inodes of files whose text is not at the ends and beginnings of successive parts of text.

    `extents` has rows (ino, file_offset, stream_offset, size) by ino and file_offset; `parts` and `numbers` have for
    each of them the part that it is in: (begin, end), and its number among the parts of text.
    """
    same = extents[1:, 0] == extents[:-1, 0]
    goes_on = (
        (numbers[1:] == numbers[:-1] + 1)
        & (extents[1:, 2] == parts[1:, 0])
        & (extents[:-1, 2] + extents[:-1, 3] == parts[:-1, 1])
    )
    apart: NDArray[np.int64] = np.unique(extents[1:][same & ~goes_on, 0])
    return apart


def _files_with_nul(archive: Archive, extents: NDArray[np.int64], blocks: Sequence[int]) -> NDArray[np.int64]:
    """Returns the inodes of files whose first bytes touch one of some blocks, which ascend."""
    first = extents[extents[:, 1] < PROBE_SIZE]
    last = first[:, 2] + np.minimum(first[:, 3], PROBE_SIZE - first[:, 1]) - 1
    at = np.searchsorted(blocks, first[:, 2] // archive.block_size)
    touched: NDArray[np.int64] = np.unique(
        first[at != np.searchsorted(blocks, last // archive.block_size, side="right"), 0]
    )
    return touched


def _has_nul(archive: Archive, ino: int) -> bool:
    try:
        return not is_text(archive.read(ino, 0, PROBE_SIZE))
    except CorruptBlockError:
        return False  # which is reported


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
