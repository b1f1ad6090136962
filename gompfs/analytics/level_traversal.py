"""Both directions of traversal over topological levels (G-TADOC section 4.2, with lists for hash tables)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gompfs.analytics.device_forest import DeviceForest, Edges
from gompfs.analytics.lists import Counted, Lists, add_along, add_equal
from gompfs.engine.array_device import Array

_SOURCE = "grammar/levels"
_BYTES_OF_AN_ENTRY = 12
_BYTES_OF_A_COPY = 64  # pairs and counts, sorted into others


@dataclass(frozen=True)
class Work:
    """What a direction takes, at most: entries of lists, copies of them between rules, and copies into the result."""

    num_entries: int
    num_copies: int
    num_results: int

    @property
    def cost(self) -> int:
        """For comparing directions."""
        return self.num_copies + self.num_results

    @property
    def num_bytes(self) -> int:
        """Memory."""
        return _BYTES_OF_AN_ENTRY * self.num_entries + _BYTES_OF_A_COPY * max(self.num_copies, self.num_results)


class TopDown:
    """Weights flow from the files to the rules that they use."""

    def __init__(self, forest: DeviceForest) -> None:
        """Put the edges in order."""
        self._forest = forest
        self._edges = forest.edges_down()

    def weights(self) -> Array:
        """How often each node occurs in all files together (uint64)."""
        return self._flow(limit=2**63)

    def _flow(self, limit: int) -> Array:
        forest = self._forest
        weights = forest.device.xp.zeros(forest.num_nodes, np.uint64)
        weights[: forest.num_files] = 1
        add_along(forest.device, self._edges, weights, limit)
        return weights

    def counts(self) -> Array:
        """How often each term occurs in all files together (uint64)."""
        forest = self._forest
        counts = forest.device.xp.zeros(forest.num_terms, np.uint64)
        weights = self.weights()
        size = forest.terms.size
        arguments = (forest.term_nodes, forest.terms, 0, size, weights, counts, 2**63)
        forest.device.launch(_SOURCE, "add_along_edges", size, *arguments)
        return counts

    def work(self) -> Work:
        """A first pass: a rule is in no more files than it has occurrences."""
        xp, forest = self._forest.device.xp, self._forest
        bounds = xp.minimum(self._flow(limit=forest.num_files), np.uint64(forest.num_files))
        sums = (bounds.sum(), bounds[forest.parents].sum(), bounds[forest.term_nodes].sum())
        return Work(*map(int, sums))

    def postings(self, work: Work, file_bits: int) -> Counted:
        """How often each term is in each file, as pairs (term, file)."""
        forest, xp = self._forest, self._forest.device.xp
        lists = Lists(forest.device, forest.num_nodes, work.num_entries, file_bits)
        nodes = xp.arange(forest.num_files, dtype=np.int64)
        ones = xp.ones(forest.num_files, np.uint64)
        lists.add(Counted(nodes << file_bits | forest.files, ones, file_bits))
        levels = self._edges.levels.starts.tolist()
        for begin, end in pairwise(levels):
            lists.add(lists.merge(self._edges.sources[begin:end], self._edges.targets[begin:end]))
        keys, counts = lists.copies(forest.term_nodes, forest.terms)
        return add_equal(forest.device, keys, counts, forest.num_terms.bit_length() + file_bits, file_bits)


class BottomUp:
    """Every rule gets a list of the terms that are in it and below, its local table; files add these up."""

    def __init__(self, forest: DeviceForest) -> None:
        """Put the edges and the rules' own terms in order."""
        self._forest = forest
        self._edges = forest.edges_up()
        self._term_bits = forest.num_terms.bit_length()
        is_of_rule = forest.term_nodes >= forest.num_files
        nodes, terms = forest.term_nodes[is_of_rule], forest.terms[is_of_rule]
        # Terms take part where their rule does: by its height, as edges do; those without children first.
        self._terms = Edges.of(forest.device, terms, nodes, forest.heights)
        self._num_levels = max(self._edges.levels.starts.size, self._terms.levels.starts.size) - 1
        is_of_file = ~is_of_rule
        self._file_terms = forest.term_nodes[is_of_file], forest.terms[is_of_file]
        is_of_file = forest.parents < forest.num_files
        self._file_edges = forest.children[is_of_file], forest.parents[is_of_file]

    def work(self) -> Work:
        """A first pass: a rule has no more different terms than it and its children have."""
        forest, xp = self._forest, self._forest.device.xp
        bounds = xp.zeros(forest.num_nodes, np.uint64)
        size = self._terms.targets.size
        if size:
            bounds += xp.bincount(self._terms.targets, minlength=forest.num_nodes).astype(np.uint64)
        add_along(forest.device, self._edges, bounds, forest.num_terms)
        bounds = xp.minimum(bounds, np.uint64(forest.num_terms))
        num_copies = int(bounds[self._edges.sources].sum()) + size
        num_results = int(bounds[self._file_edges[0]].sum()) + int(self._file_terms[0].size)
        return Work(int(bounds.sum()), num_copies, num_results)

    def postings(self, work: Work, file_bits: int) -> Counted:
        """How often each term is in each file, as pairs (term, file)."""
        forest, xp, bits = self._forest, self._forest.device.xp, self._term_bits
        lists = Lists(forest.device, forest.num_nodes, work.num_entries, bits)
        for level in range(self._num_levels):
            sources, targets = _of_level(self._edges, level)
            terms, nodes = _of_level(self._terms, level)
            own = nodes.astype(np.int64) << bits | terms
            lists.add(lists.merge(sources, targets, (own, xp.ones(own.size, np.uint64))))
        keys, counts = lists.copies(*self._file_edges)
        nodes, terms = self._file_terms
        keys = xp.concatenate([keys, nodes.astype(np.int64) << bits | terms])
        counts = xp.concatenate([counts, xp.ones(nodes.size, np.uint64)])
        files = forest.files[keys >> bits]
        keys &= (1 << bits) - 1
        keys = keys << file_bits | files
        return add_equal(forest.device, keys, counts, bits + file_bits, file_bits)


def _of_level(edges: Edges, level: int) -> tuple[Array, Array]:
    starts = edges.levels.starts
    begin, end = (int(starts[min(place, starts.size - 1)]) for place in (level, level + 1))
    return edges.sources[begin:end], edges.targets[begin:end]
