"""The two directions of traversal on a device (G-TADOC, algorithms 1 and 2), in rounds or over levels.

In rounds, results are collected in tables, as in the paper. Over levels, results are sorted without tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gompfs.gpu.arrays import Array
from gompfs.gpu.flows import Flow, LevelFlow, RoundFlow, add_along
from gompfs.gpu.forest import DeviceForest
from gompfs.gpu.tables import BYTES_OF_A_PAIR, BYTES_OF_A_SLOT, PairCounts, PairLayout, Tables, add_up


@dataclass(frozen=True)
class Work:
    """Upper bounds from the first pass, used to choose a direction.

    `cost` is the number of entries to copy, `num_bytes` the device memory.
    """

    cost: int
    num_bytes: int

    @classmethod
    def of(cls, num_slots: int, num_copies: int, num_results: int) -> Work:
        """Computes the bounds from the number of table slots, of entries copied between tables, and of result entries.
        """
        return cls(num_copies + num_results, BYTES_OF_A_SLOT * num_slots + BYTES_OF_A_PAIR * num_results)


class TopDown:
    """Weights flow from the files to the rules that they use. Each rule gets a table of its weight in each file."""

    name = "top-down"

    def __init__(self, forest: DeviceForest, *, in_rounds: bool) -> None:
        """Sorts the edges from parents to children."""
        self._forest = forest
        self._in_rounds = in_rounds
        self._flow: Flow
        if in_rounds:
            self._flow = RoundFlow(forest, forest.parents, forest.children)
        else:
            self._flow = LevelFlow(forest, forest.parents, forest.children, forest.depths)

    def counts(self) -> Array:
        """Returns how often each term occurs in all files together (uint64)."""
        return self._of_terms(self._weights(2**63))

    def _weights(self, limit: int) -> Array:
        forest = self._forest
        weights = forest.device.xp.zeros(forest.num_nodes, np.uint64)
        weights[: forest.num_files] = 1
        self._flow.add_values(weights, limit)
        return weights

    def _of_terms(self, values: Array) -> Array:
        forest = self._forest
        sums = forest.device.xp.zeros(forest.num_terms, np.uint64)
        add_along(forest.device, forest.term_nodes, forest.terms, values, sums)
        return sums

    def work(self) -> Work:
        """The first pass. Uses that a rule is in at most as many files as it has occurrences."""
        forest, xp = self._forest, self._forest.device.xp
        limit = np.uint64(forest.num_files)
        self._bounds = xp.minimum(self._weights(forest.num_files), limit)
        num_copies = int(self._bounds[forest.parents].sum())
        num_results = int(self._bounds[forest.term_nodes].sum())
        num_slots = int(self._bounds.sum()) + (num_results if self._in_rounds else 0)
        return Work.of(num_slots, num_copies, num_results)

    def postings(self, file_bits: int) -> PairCounts:
        """Returns how often each term occurs in each file, as pairs (term, file). Call `work` first."""
        forest, device = self._forest, self._forest.device
        tables = Tables(device, self._bounds)
        tables.add_items(device.xp.arange(forest.num_files, dtype=np.uint32), forest.files)
        self._flow.add_tables(tables)
        tables.check()
        edges = (forest.term_nodes, forest.terms)
        if self._in_rounds:
            limit = np.uint64(forest.num_files)
            results = Tables(device, device.xp.minimum(self._of_terms(self._bounds), limit))
            tables.add_to(results, *edges)
            results.check()
            tables = results
            every_term = device.xp.arange(forest.num_terms, dtype=np.uint32)
            edges = (every_term, every_term)
        layout = PairLayout(True, forest.num_terms.bit_length(), file_bits)
        nothing = forest.terms[:0]
        return add_up(tables, edges, (nothing, nothing), layout, device)


class BottomUp:
    """Each rule gets a table of the terms in it and in the rules below.

    Each file adds up the tables of its elements.
    """

    name = "bottom-up"

    def __init__(self, forest: DeviceForest, *, in_rounds: bool) -> None:
        """Sorts the edges from children to parents, for parents that are rules."""
        self._forest = forest
        self._in_rounds = in_rounds
        xp = forest.device.xp
        is_of_file = forest.parents < forest.num_files
        self._file_edges = forest.children[is_of_file], forest.parents[is_of_file]
        children, parents = forest.children[~is_of_file], forest.parents[~is_of_file]
        self._children = children
        self._flow: Flow
        if in_rounds:
            order = xp.argsort(children)
            self._flow = RoundFlow(forest, children[order], parents[order])
        else:
            self._flow = LevelFlow(forest, children, parents, forest.heights)
        is_of_file = forest.term_nodes < forest.num_files
        self._file_terms = forest.term_nodes[is_of_file], forest.terms[is_of_file]
        self._rule_terms = forest.term_nodes[~is_of_file], forest.terms[~is_of_file]

    def work(self) -> Work:
        """The first pass. Uses that a rule has at most as many distinct terms as itself and its children together."""
        forest, xp = self._forest, self._forest.device.xp
        bounds = xp.zeros(forest.num_nodes, np.uint64)
        if self._rule_terms[0].size:
            bounds += xp.bincount(self._rule_terms[0], minlength=forest.num_nodes).astype(np.uint64)
        self._flow.add_values(bounds, forest.num_terms)
        self._bounds = xp.minimum(bounds, np.uint64(forest.num_terms))
        num_copies = int(self._bounds[self._children].sum())
        num_results = int(self._bounds[self._file_edges[0]].sum()) + self._file_terms[0].size
        num_slots = int(self._bounds.sum()) + (num_results if self._in_rounds else 0)
        return Work.of(num_slots, num_copies, num_results)

    def postings(self, file_bits: int) -> PairCounts:
        """Returns how often each term occurs in each file, as pairs (term, file). Call `work` first."""
        forest, device = self._forest, self._forest.device
        tables = Tables(device, self._bounds)
        tables.add_items(*self._rule_terms)
        self._flow.add_tables(tables)
        tables.check()
        sources, files = self._file_edges
        nodes, terms = self._file_terms
        if self._in_rounds:
            tables = self._tables_of_files(tables)
            sources = files = device.xp.arange(forest.num_files, dtype=np.uint32)
            nodes, terms = nodes[:0], terms[:0]
        layout = PairLayout(False, forest.num_terms.bit_length(), file_bits)
        return add_up(tables, (sources, forest.files[files]), (forest.files[nodes], terms), layout, device)

    def _tables_of_files(self, tables: Tables) -> Tables:
        forest, xp = self._forest, self._forest.device.xp
        bounds = xp.zeros(forest.num_files, np.uint64)
        if self._file_terms[0].size:
            bounds += xp.bincount(self._file_terms[0], minlength=forest.num_files).astype(np.uint64)
        add_along(forest.device, *self._file_edges, self._bounds, bounds)
        results = Tables(forest.device, xp.minimum(bounds, np.uint64(forest.num_terms)))
        results.add_items(*self._file_terms)
        tables.add_to(results, *self._file_edges)
        results.check()
        return results
