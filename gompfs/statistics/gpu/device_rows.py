"""Rows that a device has put in order, and that stay on it until they are read, piece by piece.

So an answer need not be in host memory, and its first byte does not wait for the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gompfs.errors import StatsUnavailableError
from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.statistics.gpu.forest import number_keys
from gompfs.statistics.gpu.local_tables import PairCounts
from gompfs.statistics.gpu.traversal import add_along
from gompfs.statistics.temporary_files import free_space, temporary_directory, temporary_file

_POWERS_OF_TEN = np.array([10**power for power in range(20)], np.uint64)
_BYTES_OF_A_STEP = 32 << 20  # copied at once to a file
_ROWS_OF_A_PIECE = 1 << 15
_ROWS_OF_THE_FIRST_PIECE = 1 << 11  # few, because a reader waits for it
Slice = tuple[NDArray[np.uint64], NDArray[np.uint64], int, tuple[NDArray[np.uint64], ...]]
"""Pairs, counts, the bits of the second number of a pair, and the halves of the keys from that of the first row on."""
Lines = Callable[[list[tuple[Any, ...]], int], list[bytes]]
"""Takes sources and a number of threads, and returns pieces of text, as `row_lines` does."""


class DeviceRows:
    """Pairs of numbers with counts, in the order of the pairs. The first number of a pair may stand for a key.

    The rows are in device memory until `settle` writes them to a temporary file. Several threads may use an object.
    """

    def __init__(self, device: ArrayDevice, pairs: PairCounts, halves: Sequence[Array] = ()) -> None:
        """`halves` are the keys by first number, ascending, as 64-bit parts with the highest first.

        Without them, first numbers are keys themselves.
        """
        self.second_bits = pairs.second_bits
        self.num_rows = int(pairs.keys.size)
        self._device: ArrayDevice | None = device
        self._lock = threading.Lock()
        self._arrays: tuple[Any, ...] = (pairs.keys, pairs.counts, *halves)
        self._error: str | None = None

    @property
    def num_bytes(self) -> int:
        """The device memory that the rows take."""
        return 0 if self._device is None else sum(int(array.nbytes) for array in self._arrays)

    def settle(self) -> None:
        """Moves the rows to a temporary file, so that their device memory is free.

        If this fails, they are lost, and each reader of them gets the error.
        """
        with self._lock:
            device, self._device = self._device, None
            if device is None:
                return
            try:
                needed = sum(int(array.nbytes) for array in self._arrays)
                if needed > free_space(temporary_directory()) // 2:
                    raise OSError("they need more temporary space than is allowed")
                with device:
                    self._arrays = tuple(_written(device, array) for array in self._arrays)
            except (OSError, MemoryError) as error:
                self._arrays, self._error = (), str(error) or "out of memory"

    def keys_of(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Returns the keys of some rows as an array (rows, 2) of high and low halves."""
        keys = np.zeros((rows.size, 2), np.uint64)
        with self._lock, self._inside():
            pairs, _, *halves = self._arrays
            firsts = pairs[self._there(rows)] >> np.uint64(self.second_bits)
            columns = [half[firsts.astype(np.int64)] for half in halves] or [firsts]
            for column, values in enumerate(reversed(columns)):
                keys[:, 1 - column] = self._here(values)
        return keys

    def starts_of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Returns for each of `keys`, as keys_of returns them, the first row whose key is not below it."""
        with self._lock, self._inside() as xp:
            pairs, _, *halves = self._arrays
            high, low = (self._there(np.ascontiguousarray(keys[:, column])) for column in range(2))
            if len(halves) == 2:
                firsts = _lower_bound(xp, halves[0], halves[1], high, low)
            else:
                firsts = xp.searchsorted(halves[0], low) if halves else low
            starts = xp.searchsorted(pairs, firsts.astype(np.uint64) << np.uint64(self.second_bits))
            return self._here(starts).astype(np.int64)

    def read(self, begin: int, end: int) -> Slice:
        """Returns the rows `begin` to `end` - 1, in host memory. Raises StatsUnavailableError if they were lost."""
        with self._lock, self._inside():
            pairs, counts = (self._here(array[begin:end]) for array in self._arrays[:2])
            if pairs.size:
                first, last = (int(pairs[row]) >> self.second_bits for row in (0, -1))
            else:
                first, last = 0, -1
            halves = tuple(self._here(half[first : last + 1]) for half in self._arrays[2:])
        return pairs, counts, self.second_bits, halves

    def _inside(self) -> AbstractContextManager[Any]:
        """Returns what to be inside of while arrays are used, which gives the array library."""
        if self._error is not None:
            raise StatsUnavailableError(f"the rows on the device had to be freed, and could not be kept: {self._error}")
        return nullcontext(np) if self._device is None else _Inside(self._device)

    def _there(self, array: NDArray[Any]) -> Array:
        return array if self._device is None else self._device.upload(array)

    def _here(self, array: Array) -> NDArray[Any]:
        return np.array(array) if self._device is None else self._device.download(array)


def settle_all(answers: Iterable[DeviceRows]) -> None:
    """Moves rows to temporary files."""
    for rows in answers:
        rows.settle()


@dataclass(frozen=True)
class Totals:
    """How often n-grams occur. `halves` are their keys as 64-bit parts, the highest first; all arrays are uint64."""

    halves: tuple[Array, ...]
    counts: Array

    @property
    def num_bytes(self) -> int:
        """The device memory in bytes."""
        return sum(int(array.nbytes) for array in (*self.halves, self.counts))

    def brought_from(self, device: ArrayDevice, other: ArrayDevice) -> Totals:
        """Returns a copy on `device` of totals that are on the device `other`."""
        with other:
            copy = self.on_host(other)
        with device:
            *halves, counts = (device.upload(array) for array in (*copy.halves, copy.counts))
        return Totals(tuple(halves), counts)

    @property
    def are_few(self) -> bool:
        """Whether one piece of text has all rows. Then the host sorts them with less delay than a device."""
        return int(self.counts.size) <= _ROWS_OF_THE_FIRST_PIECE

    def on_host(self, device: ArrayDevice) -> Totals:
        """Returns a copy in host memory, for totals on a device."""
        *halves, counts = (device.download(array) for array in (*self.halves, self.counts))
        return Totals(tuple(halves), counts)

    def by_count(self, xp: Any) -> Totals:
        """Returns the same by falling count, then key. The keys must ascend. `xp` is the library of the arrays."""
        order = xp.argsort(~self.counts, kind="stable")
        return Totals(tuple(half[order] for half in self.halves), self.counts[order])

    def first(self, count: int) -> Totals:
        """Returns the first `count`, or all if there are fewer."""
        return Totals(tuple(half[:count] for half in self.halves), self.counts[:count])

    def text(self, lines: Lines) -> bytes:
        """Returns the text of totals in host memory, in the same order. See RowsText."""
        size = self.counts.size
        pairs, cuts = np.arange(size, dtype=np.uint64), np.array([0, size], np.uint64)
        (text,) = lines([(pairs, self.counts, 0, cuts, self.halves)], 1)
        return text

    def rows(self, device: ArrayDevice) -> DeviceRows:
        """Returns the totals as rows in the same order; the first number of each row is its index."""
        pairs = device.xp.arange(self.counts.size, dtype=np.uint64)
        return DeviceRows(device, PairCounts(pairs, self.counts, 0), self.halves)

    def size_of_lines(self, device: ArrayDevice, sizes_by_number: Array) -> int:
        """Returns the size of lines of word, tab and count, for keys that are numbers of words, in bytes.

        `sizes_by_number` (uint32) has the size of each word. They may be paths of files as well.
        """
        digits = device.xp.searchsorted(device.upload(_POWERS_OF_TEN), self.counts, side="right")
        sizes = sizes_by_number[self.halves[0]].astype(np.int64)
        return int((sizes + digits).sum()) + 2 * int(sizes.size)


def add_totals(device: ArrayDevice, totals: Sequence[Totals]) -> Totals:
    """Returns the sum of totals, of which there is at least one."""
    if len(totals) == 1:
        return totals[0]
    xp = device.xp
    counts = xp.concatenate([each.counts for each in totals])
    halves = tuple(xp.concatenate(columns) for columns in zip(*(each.halves for each in totals), strict=True))
    numbers, halves = number_keys(device, halves)
    sums = xp.zeros(halves[0].size, np.uint64)
    add_along(device, xp.arange(numbers.size, dtype=np.uint32), numbers, counts, sums)
    return Totals(halves, sums)


class RowsText:
    """The text that `row_lines` makes of rows, in pieces, for a PiecewiseReport."""

    def __init__(
        self,
        sources: Sequence[DeviceRows],
        lines: Lines,
        *,
        by_key: bool = True,
        size: int | None = None,
        begin: bytes = b"",
        end: bytes = b"",
    ) -> None:
        """`lines` makes the text.

        With `by_key`, a piece has all rows of its keys. Otherwise there is one source, and rows are cut anywhere.
        `size` is the size of the text in bytes, if it is known. If there are rows, `begin` and `end` are added to the
        text.
        """
        self.size = size
        self._begin, self._end = begin, end
        self._sources = sources
        self._lines = lines
        if not sources:
            self._cuts = np.zeros((1, 0), np.int64)
            return
        rows = [_cut_rows(source.num_rows) for source in sources]
        if by_key and any(row.size for row in rows):
            keys = np.unique(
                np.concatenate([source.keys_of(row) for source, row in zip(sources, rows, strict=True)]), axis=0
            )
            rows = [source.starts_of(keys) for source in sources]
        ends = np.array([source.num_rows for source in sources], np.int64)
        cuts = np.concatenate([0 * ends[None], np.stack(rows, 1), ends[None]])
        self._cuts = cuts[np.concatenate([[True], np.diff(cuts.sum(1)) > 0])]

    def pieces(self, first: int, count: int, num_threads: int) -> list[bytes]:
        """Returns up to `count` pieces from `first` on; fewer at the end."""
        cuts = self._cuts[first : first + count + 1]
        if len(cuts) < 2:
            return []
        sources = []
        for index, source in enumerate(self._sources):
            pairs, counts, bits, halves = source.read(int(cuts[0, index]), int(cuts[-1, index]))
            sources.append((pairs, counts, bits, (cuts[:, index] - cuts[0, index]).astype(np.uint64), halves))
        pieces = self._lines(sources, num_threads)
        if first == 0:
            pieces[0] = self._begin + pieces[0]
        if first + count + 1 >= len(self._cuts):
            pieces[-1] += self._end
        return pieces


def _cut_rows(num_rows: int) -> NDArray[np.int64]:
    rows = np.arange(0, num_rows, _ROWS_OF_A_PIECE)
    rows[:1] = _ROWS_OF_THE_FIRST_PIECE
    return rows[rows < num_rows]


class _Inside(AbstractContextManager[Any]):
    """Enters a device, and gives its array library."""

    def __init__(self, device: ArrayDevice) -> None:
        self._device = device

    def __enter__(self) -> Any:
        return self._device.__enter__().xp

    def __exit__(self, *error: object) -> None:
        self._device.__exit__(*error)


def _written(device: ArrayDevice, array: Array) -> NDArray[Any]:
    """Returns a copy of an array in a temporary file without a name. Raises OSError."""
    step = _BYTES_OF_A_STEP // array.itemsize
    with temporary_file() as file:
        for begin in range(0, array.size, step):
            data = memoryview(device.download(array[begin : begin + step]).data).cast("B")
            while data:
                data = data[file.write(data) :]
        return np.memmap(file, array.dtype, "r", shape=array.shape) if array.size else np.empty(0, array.dtype)


def _lower_bound(xp: Any, highs: Array, lows: Array, high: Array, low: Array) -> Array:
    """Returns how many of the keys (highs, lows), which ascend, are below each of the keys (high, low)."""
    begin, end = xp.zeros(high.size, np.int64), xp.full(high.size, highs.size, np.int64)
    for _ in range(int(highs.size).bit_length()):
        middle = (begin + end) // 2
        at = xp.minimum(middle, highs.size - 1)
        found = highs[at]
        is_below = (found < high) | ((found == high) & (lows[at] < low))
        is_below &= begin < end
        begin, end = xp.where(is_below, middle + 1, begin), xp.where(is_below, end, middle)
    return begin
