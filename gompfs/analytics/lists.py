"""Lists of (item, count) for each node of a forest, made level by level: the traversal that this hardware likes.

Top-down, a rule's list is the files that it is in, with its weight in each; bottom-up, it is the terms that are in and
below it. Either is put together from the lists of the nodes of the levels before, by a sort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gompfs.analytics.device_forest import Edges
from gompfs.engine.array_device import Array, ArrayDevice

_SOURCE = "grammar/levels"
_BITS_OF_A_KEY = 63


@dataclass(frozen=True)
class Counted:
    """Counts (uint64) of pairs, each pair once and in order: a key is `first << item_bits | second` (int64)."""

    keys: Array
    counts: Array
    item_bits: int

    @property
    def firsts(self) -> Array:
        """The pairs' first numbers."""
        return self.keys >> self.item_bits

    @property
    def seconds(self) -> Array:
        """The pairs' second numbers."""
        return self.keys & ((1 << self.item_bits) - 1)


def add_equal(device: ArrayDevice, keys: Array, counts: Array, key_bits: int, item_bits: int) -> Counted:
    """Sort pairs and add up the counts of equal ones; keys are below 2**key_bits."""
    xp = device.xp
    if not keys.size:
        return Counted(keys, counts, item_bits)
    count_bits = int(counts.max()).bit_length()
    if key_bits + count_bits <= _BITS_OF_A_KEY:  # in one number, so that nothing has to follow the keys
        keys = keys << count_bits
        keys |= counts.view(np.int64)
        keys.sort()
        counts = (keys & ((1 << count_bits) - 1)).view(np.uint64)
        keys >>= count_bits
    else:
        order = xp.argsort(keys)
        keys, counts = keys[order], counts[order]
        del order
    is_new = xp.empty(keys.size, bool)
    is_new[0] = True
    is_new[1:] = keys[1:] != keys[:-1]
    firsts = xp.flatnonzero(is_new)
    sums = xp.cumsum(counts)
    ends = xp.empty_like(firsts)
    ends[:-1] = firsts[1:] - 1
    ends[-1] = keys.size - 1
    sums = sums[ends]
    sums[1:] -= sums[:-1].copy()
    return Counted(keys[firsts], sums, item_bits)


class Lists:
    """The lists of all nodes in one pool, whose size a first pass gives (see `bound_lists`)."""

    def __init__(self, device: ArrayDevice, num_nodes: int, capacity: int, item_bits: int) -> None:
        """Room for `capacity` entries, of items below 2**item_bits; the lists are empty."""
        xp = device.xp
        self._device = device
        self._item_bits = item_bits
        self._node_bits = num_nodes.bit_length()
        self.starts = xp.zeros(num_nodes, np.uint64)
        self.sizes = xp.zeros(num_nodes, np.uint64)
        self.items = xp.empty(capacity, np.uint32)
        self.counts = xp.empty(capacity, np.uint64)
        self._used = 0

    def copies(self, sources: Array, targets: Array) -> tuple[Array, Array]:
        """The lists of `sources`, one after another, as pairs (target, item), and their counts."""
        xp = self._device.xp
        places = xp.cumsum(self.sizes[sources])
        total = int(places[-1]) if places.size else 0
        places -= self.sizes[sources]
        keys, counts = xp.empty(total, np.int64), xp.empty(total, np.uint64)
        lists = (self.starts, self.items, self.counts)
        arguments = (sources, targets, places, sources.size, total, *lists, np.uint32(self._item_bits), keys, counts)
        self._device.launch(_SOURCE, "copy_lists", total, *arguments)
        return keys, counts

    def add(self, pairs: Counted) -> None:
        """Give the nodes `pairs.firsts`, which have none yet, their lists."""
        xp = self._device.xp
        size = pairs.keys.size
        if not size:
            return
        end = self._used + size
        self.items[self._used : end] = pairs.seconds
        self.counts[self._used : end] = pairs.counts
        nodes = pairs.firsts
        is_new = xp.empty(size, bool)
        is_new[0] = True
        is_new[1:] = nodes[1:] != nodes[:-1]
        firsts = xp.flatnonzero(is_new)
        nodes = nodes[firsts]
        self.starts[nodes] = (firsts + self._used).astype(np.uint64)
        sizes = xp.empty_like(firsts)
        sizes[:-1] = firsts[1:] - firsts[:-1]
        sizes[-1] = size - firsts[-1]
        self.sizes[nodes] = sizes.astype(np.uint64)
        self._used = end

    def merge(self, sources: Array, targets: Array, more: tuple[Array, Array] | None = None) -> Counted:
        """What the lists of `sources` add up to in each target, with further pairs and counts."""
        xp = self._device.xp
        keys, counts = self.copies(sources, targets)
        if more is not None:
            keys, counts = xp.concatenate([keys, more[0]]), xp.concatenate([counts, more[1]])
        return add_equal(self._device, keys, counts, self._node_bits + self._item_bits, self._item_bits)


def add_along(device: ArrayDevice, edges: Edges, values: Array, limit: int) -> None:
    """Let `values` (uint64, by node) flow along the edges, level by level; no edge carries more than `limit`."""
    levels = edges.levels
    for first, last, is_narrow in levels.runs():
        begin, end = int(levels.starts[first]), int(levels.starts[last])
        if is_narrow:
            arguments = (edges.sources, edges.targets, levels.device_starts, first, last, values, limit)
            device.launch(_SOURCE, "add_along_levels", end - begin, *arguments, one_cta=True)
        else:
            arguments = (edges.sources, edges.targets, begin, end, values, values, limit)
            device.launch(_SOURCE, "add_along_edges", end - begin, *arguments)
