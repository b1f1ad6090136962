"""Local tables on a device, and the pairs that are made from their entries (G-TADOC section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gompfs.gpu.device.arrays import Array, ArrayDevice

SOURCE_OF_TABLES = "statistics/tables"
_SOURCE_OF_PAIRS = "statistics/pairs"
BYTES_OF_A_SLOT = 24
BYTES_OF_A_PAIR = 48
"""Device memory per pair while pairs are sorted and added up."""


class Tables:
    """One local table of (item, count) per owner; items are uint32. See kernels/statistics/tables.cuh."""

    def __init__(self, device: ArrayDevice, bounds: Array) -> None:
        """Makes empty tables. The table of each owner has space for `bounds[owner]` items (uint64)."""
        xp = device.xp
        self._device = device
        self.starts = xp.zeros(bounds.size + 1, np.uint64)
        self.starts[1:] = xp.cumsum(bounds)
        capacity = int(self.starts[-1])
        self._locks = xp.zeros(capacity, np.uint32)
        self._entries = xp.full(capacity, 0xFFFFFFFF, np.uint32)
        self.items = xp.empty(capacity, np.uint32)
        self.counts = xp.zeros(capacity, np.uint64)
        self._nexts = xp.empty(capacity, np.uint32)
        self.sizes = xp.zeros(bounds.size, np.uint32)
        self._overflow = xp.zeros(1, np.uint32)

    @property
    def arguments(self) -> tuple[Array, ...]:
        """The buffers in the order in which kernels take them."""
        buffers = (self._locks, self._entries, self.items, self.counts, self._nexts)
        return (self.starts, *buffers, self.sizes, self._overflow)

    def add_items(self, owners: Array, items: Array) -> None:
        """Adds 1 to the count of each item in the table of its owner (both uint32)."""
        self._device.launch(SOURCE_OF_TABLES, "add_items", owners.size, owners, items, owners.size, *self.arguments)

    def add_to(self, sums: Array, owners: Array, weights: Array) -> None:
        """Adds the tables of some owners (uint32) to sums by item, each weights[owner] times (both uint64)."""
        starts = self.slot_starts(owners)
        arguments = (owners, starts, owners.size, self.starts, self.items, self.counts, self.sizes, weights, sums)
        self._device.launch(SOURCE_OF_TABLES, "sum_tables", int(starts[-1]), *arguments)

    def slot_starts(self, owners: Array) -> Array:
        """Returns the running sum of the capacities of these owners' tables, beginning with 0 (uint64)."""
        xp = self._device.xp
        starts = xp.zeros(owners.size + 1, np.uint64)
        starts[1:] = xp.cumsum((self.starts[1:] - self.starts[:-1])[owners])
        return starts

    def check(self) -> None:
        """Raises AssertionError if a table got more items than the first pass computed."""
        assert not int(self._overflow[0]), "a local table is full"


@dataclass(frozen=True)
class PairCounts:
    """Counts (uint64) of distinct pairs, in order. The key of a pair is `first << second_bits | second` (uint64)."""

    keys: Array
    counts: Array
    second_bits: int

    @property
    def firsts(self) -> Array:
        """The first number of each pair."""
        return self.keys >> np.uint64(self.second_bits)

    @property
    def seconds(self) -> Array:
        """The second number of each pair."""
        return self.keys & np.uint64((1 << self.second_bits) - 1)


@dataclass(frozen=True)
class PairLayout:
    """The order of owner and item in a pair, and the number of bits of each."""

    owner_is_first: bool
    first_bits: int
    second_bits: int

    def shifts(self) -> tuple[np.uint32, np.uint32]:
        """Returns the shifts of owner and item in a key."""
        shifts = (self.second_bits, 0) if self.owner_is_first else (0, self.second_bits)
        return np.uint32(shifts[0]), np.uint32(shifts[1])


def add_up(
    tables: Tables, edges: tuple[Array, Array], single: tuple[Array, Array], layout: PairLayout, device: ArrayDevice
) -> PairCounts:
    """Adds up table entries and single items, and returns them as pairs in order.

    `edges` are (table to read, owner to count for); `single` are (owner, item), each counted once. All are uint32.
    """
    xp = device.xp
    sources = edges[0]
    sizes = tables.sizes[sources].astype(np.uint64)
    copy_starts = xp.cumsum(sizes)
    num_copies = int(copy_starts[-1]) if copy_starts.size else 0
    copy_starts -= sizes
    del sizes
    max_count = int(tables.counts.max()) if tables.counts.size else 1
    count_bits = max(max_count, 1).bit_length()
    is_packed = layout.first_bits + layout.second_bits + count_bits <= 64
    shifts = (*layout.shifts(), np.uint32(count_bits if is_packed else 0))
    size = num_copies + single[0].size
    keys = xp.empty(size, np.uint64)
    counts = None if is_packed else xp.empty(size, np.uint64)
    of_tables = (tables.starts, tables.items, tables.counts)
    arguments = (*edges, copy_starts, sources.size, num_copies, *of_tables, *shifts, keys, counts)
    device.launch(_SOURCE_OF_PAIRS, "copy_tables", num_copies, *arguments)
    rest = (keys[num_copies:], None if counts is None else counts[num_copies:])
    device.launch(_SOURCE_OF_PAIRS, "write_pairs", single[0].size, *single, single[0].size, *shifts, *rest)
    del copy_starts, rest, arguments
    return _add_equal(device, keys, counts, int(shifts[2]), layout.second_bits)


def _add_equal(device: ArrayDevice, keys: Array, counts: Array | None, count_bits: int, second_bits: int) -> PairCounts:
    xp = device.xp
    if counts is None:
        keys.sort()
    else:
        order = xp.argsort(keys)
        keys, counts = keys[order], counts[order]
        del order
    is_new = xp.empty(keys.size, np.uint32)
    device.launch(_SOURCE_OF_PAIRS, "find_new_pairs", keys.size, keys, keys.size, np.uint32(count_bits), is_new)
    pair_ends = xp.cumsum(is_new, dtype=np.uint64)
    del is_new
    num_pairs = int(pair_ends[-1]) if pair_ends.size else 0
    different, sums = xp.empty(num_pairs, np.uint64), xp.zeros(num_pairs, np.uint64)
    arguments = (keys, counts, pair_ends, keys.size, np.uint32(count_bits), different, sums)
    device.launch(_SOURCE_OF_PAIRS, "add_equal_pairs", keys.size, *arguments)
    return PairCounts(different, sums, second_bits)
