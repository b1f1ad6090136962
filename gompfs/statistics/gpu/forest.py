"""A forest of rules in device memory, and the terms of its nodes: words or n-grams (G-TADOC section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs.gpu.device.arrays import Array, ArrayDevice

SOURCE_OF_NGRAMS = "statistics/ngrams"
_NODE = 1 << 31
_BYTES_OF_AN_ITEM = 24  # bytes per edge or term: two numbers, and a second copy of both sorted for a direction
_MAX_NARROW = 4096
"""A level with at most this many edges, nodes or table slots is narrow.

One CTA processes consecutive narrow levels in a single launch.
"""


@dataclass(frozen=True)
class Levels:
    """Items sorted by level. The items of level i are starts[i] up to, but not including, starts[i + 1].

    `starts` (int64) is on the host; `device_starts` (uint64) is a copy on the device.
    """

    starts: NDArray[np.int64]
    device_starts: Array

    @classmethod
    def of(cls, device: ArrayDevice, ordered_levels: Array, num_levels: int) -> Levels:
        """Makes the levels of items that are sorted by level; `ordered_levels` is the level of each item."""
        xp = device.xp
        starts = xp.searchsorted(ordered_levels, xp.arange(num_levels + 1, dtype=ordered_levels.dtype))
        return cls(device.download(starts).astype(np.int64), starts.astype(np.uint64))

    def items(self, first: int, last: int) -> tuple[int, int]:
        """Returns where the items of the levels from `first` up to `last`, exclusive, begin and end."""
        return int(self.starts[first]), int(self.starts[last])

    def launches(self, costs: NDArray[np.int64] | None = None) -> list[tuple[int, int, bool]]:
        """Groups levels into launches. Returns (first, last, is_narrow) per launch, `last` being exclusive.

        If is_narrow, one CTA processes the levels one after another; otherwise there is one level. `costs` is the work
        per level, by default its number of items.
        """
        is_narrow = (np.diff(self.starts) if costs is None else costs) <= _MAX_NARROW
        launches = []
        first = 0
        for last in [*(np.flatnonzero(is_narrow[1:] != is_narrow[:-1]) + 1).tolist(), is_narrow.size]:
            if first < last and is_narrow[first]:
                launches.append((first, last, True))
            else:
                launches += [(level, level + 1, False) for level in range(first, last)]
            first = last
        return launches


@dataclass(frozen=True)
class Edges:
    """Edges (pairs of uint32 node numbers), sorted by the level of their targets."""

    sources: Array
    targets: Array
    levels: Levels

    @property
    def num_bytes(self) -> int:
        """The device memory in bytes."""
        return int(self.sources.nbytes + self.targets.nbytes + self.levels.device_starts.nbytes)

    @classmethod
    def of(cls, device: ArrayDevice, sources: Array, targets: Array, levels_of_nodes: Array) -> Edges:
        """Sorts the edges from `sources` to `targets`.

        The level of each target must be above the level of its source.
        """
        levels = levels_of_nodes[targets]
        order = device.xp.argsort(levels)
        num_levels = int(levels.max()) + 1 if levels.size else 0
        return cls(sources[order], targets[order], Levels.of(device, levels[order], num_levels))


class FlatForest:
    """The nodes of a forest in device memory, and their elements: words, or nodes with bit 31 set.

    Files are the first nodes, rules follow. `files` has the number of each file. The elements of node i are
    elements[starts[i] : starts[i + 1]]. `depths` and `heights` order the nodes: a node that uses another one has less
    depth and more height. `starts` is uint64, the others are uint32.
    """

    def __init__(
        self, device: ArrayDevice, files: Array, starts: Array, elements: Array, depths: Array, heights: Array
    ) -> None:
        self.device = device
        self.files, self.starts, self.elements = files, starts, elements
        self.depths, self.heights = depths, heights
        self.num_files = int(files.size)
        self.num_nodes = int(depths.size)
        self.num_elements = int(elements.size)

    @classmethod
    def upload(cls, device: ArrayDevice, forest: _statistics.Forest) -> FlatForest:
        """Returns a copy in device memory."""
        arrays = (forest.files, forest.starts, forest.elements, forest.depths, forest.heights)
        return cls(device, *(device.upload(array) for array in arrays))

    @staticmethod
    def bytes_of(forest: _statistics.Forest) -> int:
        """Returns the device memory that the copy of a forest takes."""
        arrays = (forest.files, forest.starts, forest.elements, forest.depths, forest.heights)
        return sum(array.nbytes for array in arrays)

    def all_elements(self) -> Elements:
        """Returns the elements of all nodes."""
        nodes = _name_nodes(self.device, self.starts, self.num_elements)
        return Elements(self.device, self.starts, self.elements, nodes)

    def elements_of(self, nodes: Array) -> Elements:
        """Returns the elements of some nodes, which ascend."""
        device, xp = self.device, self.device.xp
        begins = self.starts[nodes]
        starts = xp.zeros(nodes.size + 1, np.uint64)
        starts[1:] = xp.cumsum(self.starts[nodes + 1] - begins, dtype=np.uint64)
        total = int(starts[-1])
        of_elements = _name_nodes(device, starts, total)
        shifts = begins.astype(np.int64) - starts[:-1].astype(np.int64)
        elements = self.elements[xp.arange(total, dtype=np.int64) + shifts[of_elements]]
        return Elements(device, starts, elements, of_elements)

    def only(self, is_kept: Array) -> FlatForest:
        """Returns the forest of some nodes. Nodes that a kept node uses must be kept too.

        `is_kept` (bool) says which. Levels may remain without nodes.
        """
        xp = self.device.xp
        kept = xp.flatnonzero(is_kept)
        chosen = self.elements_of(kept)
        numbers = xp.cumsum(is_kept, dtype=np.uint32) - np.uint32(1)
        is_child = chosen.elements >= _NODE
        children = xp.where(is_child, chosen.elements & np.uint32(_NODE - 1), np.uint32(0))
        elements = xp.where(is_child, numbers[children] | np.uint32(_NODE), chosen.elements)
        files = self.files[kept[kept < self.num_files]]
        return FlatForest(self.device, files, chosen.starts, elements, self.depths[kept], self.heights[kept])

    def find_ends(self, capacity: int) -> Ends:
        """Returns the head and tail buffers of the rules, `capacity` words each. See G-TADOC section 4.3."""
        device, xp = self.device, self.device.xp
        heights = self.heights[self.num_files :]
        order = xp.argsort(heights)
        num_levels = int(heights.max()) + 1 if heights.size else 0
        levels = Levels.of(device, heights[order], num_levels)
        nodes = (order + self.num_files).astype(np.uint32)
        heads, tails = (xp.empty(self.num_nodes * capacity, np.uint32) for _ in range(2))
        ends = Ends(capacity, heads, tails, xp.zeros(self.num_nodes, np.uint32))
        rules = (self.starts, self.elements, nodes)
        for first, last, is_narrow in levels.launches():
            begin, end = levels.items(first, last)
            if is_narrow:
                arguments = (*rules, levels.device_starts, first, last, *ends.arguments)
                device.launch(SOURCE_OF_NGRAMS, "find_ends_of_levels", end - begin, *arguments, one_cta=True)
            else:
                device.launch(SOURCE_OF_NGRAMS, "find_ends", end - begin, *rules, begin, end, *ends.arguments)
        return ends


@dataclass(frozen=True)
class Elements:
    """The elements of nodes that were chosen from a forest, one node after another.

    The elements of the chosen node i begin at starts[i] (uint64). `nodes` (uint32) is the chosen node of each element.
    An element that is a node has its number in the whole forest.
    """

    device: ArrayDevice
    starts: Array
    elements: Array
    nodes: Array


@dataclass(frozen=True)
class Ends:
    """The first and last words of the rules of a forest, `capacity` words for each; `sizes` says how many there are."""

    capacity: int
    heads: Array
    tails: Array
    sizes: Array

    @staticmethod
    def bytes_of(num_nodes: int, capacity: int) -> int:
        """Returns the device memory that these buffers take for a forest."""
        return num_nodes * (2 * capacity + 1) * 4

    @property
    def arguments(self) -> tuple[object, ...]:
        """Capacity and buffers in the order in which kernels take them."""
        return (np.uint32(self.capacity), self.heads, self.tails, self.sizes)

    @property
    def num_bytes(self) -> int:
        """The device memory in bytes."""
        return int(self.heads.nbytes + self.tails.nbytes + self.sizes.nbytes)


class _Sized(Protocol):
    @property
    def num_bytes(self) -> int: ...


_Kept = TypeVar("_Kept", bound=_Sized)


class DeviceForest:
    """A forest with its terms. A term is a word of the text, or an n-gram numbered in the order of the n-gram keys.

    Files are the first nodes, rules follow. `parents` and `children` (uint32) are the edges. `term_nodes` and `terms`
    (uint32) have an entry for each occurrence of a term in a node. Terms are below `num_terms`.
    """

    def __init__(self, flat: FlatForest, room: int | None = None) -> None:
        """There are no terms until `use_words` or `use_ngrams` is called.

        For a forest that stays on the device, `room` is how many bytes that are made of it may stay too.
        """
        self.device = flat.device
        self.num_files, self.num_nodes = flat.num_files, flat.num_nodes
        self.files, self.depths, self.heights = flat.files, flat.depths, flat.heights
        self.keys: tuple[Array, ...] = ()
        self.num_terms = 0
        self.room = room
        self._flat: FlatForest | None = flat
        self._kept: dict[str, _Sized] = {}

    @property
    def num_bytes(self) -> int:
        """The device memory in bytes, including edges and terms sorted for one direction; 0 for a resident forest."""
        if self.room is not None:
            return 0
        return 16 * self.num_nodes + _BYTES_OF_AN_ITEM * int(self.parents.size + self.terms.size)

    def may_keep(self, name: str, num_bytes: int) -> bool:
        """Returns whether something of this name and size is kept, or would be."""
        return name in self._kept or self.room is None or num_bytes <= self.room

    def kept_array(self, name: str, make: Callable[[], Array]) -> Array:
        """Like `kept`, for an array."""
        return self.kept(name, lambda: _KeptArray(make())).array

    def kept(self, name: str, make: Callable[[], _Kept]) -> _Kept:
        """Returns what `make` returns, and keeps it under this name for the next call if there is room for it."""
        if name in self._kept:
            return cast("_Kept", self._kept[name])
        made = make()
        if self.room is None:
            self._kept[name] = made
        elif made.num_bytes <= self.room:
            self.room -= made.num_bytes
            self._kept[name] = made
        return made

    def use_words(self, num_words: int) -> None:
        """Makes words the terms; their numbers are below `num_words`."""
        found = self._find_edges()
        is_word = found.elements < _NODE
        self.term_nodes = found.nodes[is_word]
        self.terms = found.elements[is_word]
        self.num_terms = num_words

    def use_ngrams(self, ngram_length: int, bits: int, inner_ranks: NDArray[np.uint32]) -> None:
        """Makes n-grams of `ngram_length` words the terms. Sets `keys` to their keys, as find_ngrams returns them.

        The host has `inner_ranks`, which are empty if words keep their numbers.
        """
        flat, chosen = self._flat, self._find_edges()
        assert flat is not None
        ranks = self.device.upload(inner_ranks) if inner_ranks.size else None
        halves, self.term_nodes = find_ngrams(chosen, flat.find_ends(ngram_length - 1), bits, ranks)
        del flat, chosen
        self.terms, self.keys = number_keys(self.device, halves)
        self.num_terms = self.keys[0].size

    def _find_edges(self) -> Elements:
        """Sets parents and children, and drops the elements. Returns them once more."""
        flat, self._flat = self._flat, None
        assert flat is not None, "the forest has its terms"
        found = flat.all_elements()
        is_child = found.elements >= _NODE
        self.parents = found.nodes[is_child]
        self.children = found.elements[is_child] & np.uint32(_NODE - 1)
        return found


@dataclass(frozen=True)
class _KeptArray:
    array: Array

    @property
    def num_bytes(self) -> int:
        return int(self.array.nbytes)


def _name_nodes(device: ArrayDevice, starts: Array, num_elements: int) -> Array:
    """Returns the node of each element (uint32), for nodes whose elements begin at `starts`."""
    nodes = device.xp.empty(num_elements, np.uint32)
    arguments = (starts, starts.size - 1, num_elements, nodes)
    device.launch("statistics/levels", "name_nodes", num_elements, *arguments)
    return nodes


def find_ngrams(chosen: Elements, ends: Ends, bits: int, inner_ranks: Array | None) -> tuple[tuple[Array, ...], Array]:
    """Returns the keys of the n-grams of some nodes, and the chosen node of each n-gram (uint32).

    `ends` are the ends of the whole forest; an n-gram has one word more than an end can have. The keys are
    concatenations of word numbers, each of `bits` bits, as halves: (high, low) or (low,), each uint64. `inner_ranks`
    renumbers the words that precede others in an n-gram; without it, they keep their numbers.
    """
    device, xp, num_elements = chosen.device, chosen.device.xp, int(chosen.elements.size)
    counts = xp.empty(num_elements, np.uint32)
    elements = (chosen.starts, chosen.elements, chosen.nodes, num_elements, *ends.arguments)
    device.launch(SOURCE_OF_NGRAMS, "count_ngrams", num_elements, *elements, counts)
    ngram_starts = xp.cumsum(counts, dtype=np.uint64)
    total = int(ngram_starts[-1]) if ngram_starts.size else 0
    ngram_starts -= counts
    del counts
    high, low = xp.empty(total, np.uint64), xp.empty(total, np.uint64)
    nodes = xp.empty(total, np.uint32)
    arguments = (*elements, np.uint32(bits), inner_ranks, ngram_starts, high, low, nodes)
    device.launch(SOURCE_OF_NGRAMS, "write_ngrams", num_elements, *arguments)
    return (low,) if (ends.capacity + 1) * bits <= 64 else (high, low), nodes


def number_keys(device: ArrayDevice, halves: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
    """Returns the rank of each key among the distinct keys (uint32), and the distinct keys in order.

    `halves` are the 64-bit parts of the keys, highest first.
    """
    xp = device.xp
    if not halves[0].size:
        return xp.empty(0, np.uint32), halves
    order = xp.argsort(halves[-1])
    for half in halves[-2::-1]:
        order = order[xp.argsort(half[order], kind="stable")]
    ordered = [half[order] for half in halves]
    is_new = xp.zeros(order.size, bool)
    is_new[:1] = True
    for half in ordered:
        is_new[1:] |= half[1:] != half[:-1]
    numbers = xp.empty(order.size, np.uint32)
    numbers[order] = xp.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
    return numbers, tuple(half[is_new] for half in ordered)
