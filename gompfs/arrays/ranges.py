"""The ranges that a caller of `read_many` asks for, as columns of inode numbers and offsets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from copy import copy
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

AnyPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
File: TypeAlias = AnyPath | int
FileOrRange: TypeAlias = File | tuple[File, int | None, int | None]

_MAX = 1 << 62  # no file is as large


class Ranges:
    """Ranges of files: inode number, offset of the first byte, and offset after the last (uint64 arrays)."""

    def __init__(self, wanted: Iterable[FileOrRange] | NDArray[np.integer], inode_number: Callable[[AnyPath], int]):
        """`wanted` has files, by path or inode number, and ranges: (file, start, stop), with None as in slices.

        An array of integers has inode numbers, or rows of inode number, start and stop. `inode_number` finds paths.
        Raises what that raises, and ValueError for a negative offset or number, or a range that ends before it starts.
        """
        self._wanted: list[FileOrRange] | None = None
        if isinstance(wanted, np.ndarray):
            columns = _columns_of(wanted)
        else:
            self._wanted = list(wanted)
            rows = [_row_of(each, inode_number) for each in self._wanted]
            columns = np.array(rows, np.int64).reshape(-1, 3).T
        is_wrong = (columns < 0).any(axis=0) | (columns[2] < columns[1])
        if is_wrong.any():
            number = int(np.argmax(is_wrong))
            raise ValueError(f"item {number} is not a range of a file: {self._wanted_at(number, wanted)!r}")
        self.inos, self.begins, self.ends = (np.ascontiguousarray(column, np.uint64) for column in columns)

    def only(self, run: slice) -> Ranges:
        """Returns some of the ranges that follow each other."""
        part = copy(self)
        part.inos, part.begins, part.ends = self.inos[run], self.begins[run], self.ends[run]
        part._wanted = None if self._wanted is None else self._wanted[run]
        return part

    def path(self, number: int) -> str | bytes | None:
        """Returns the path that the caller gave for a range, or None for an inode number."""
        if self._wanted is None:
            return None
        wanted = self._wanted[number]
        file = wanted[0] if isinstance(wanted, tuple) else wanted
        return os.fspath(file) if isinstance(file, str | bytes | os.PathLike) else None

    def _wanted_at(self, number: int, wanted: object) -> object:
        if self._wanted is not None:
            return self._wanted[number]
        assert isinstance(wanted, np.ndarray)
        return wanted[number].tolist()


def _columns_of(wanted: NDArray[np.integer]) -> NDArray[np.int64]:
    if wanted.dtype.kind not in "iu" or wanted.shape not in {(wanted.size,), (wanted.shape[0], 3)}:
        raise ValueError("an array must have inode numbers, or rows of inode number, start and stop")
    if wanted.ndim == 1:
        return np.stack([wanted.astype(np.int64), np.zeros(wanted.size, np.int64), np.full(wanted.size, _MAX)])
    return wanted.astype(np.int64).T


def _row_of(wanted: FileOrRange, inode_number: Callable[[AnyPath], int]) -> tuple[int, int, int]:
    file, start, stop = wanted if isinstance(wanted, tuple) else (wanted, None, None)
    number = inode_number(file) if isinstance(file, str | bytes | os.PathLike) else index(file)
    return min(number, _MAX), min(start or 0, _MAX), _MAX if stop is None else min(stop, _MAX)
