"""Traverses a forest on a device, top-down or bottom-up, by topological levels.

The directions are those of G-TADOC (algorithms 1 and 2). Numbers and tables are passed along all edges that lead to one
level at once; then the next level follows. The results are pairs that are sorted and added up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gompfs.gpu.arrays import Array, ArrayDevice
from gompfs.gpu.forest import DeviceForest, Edges
from gompfs.gpu.tables import (
    BYTES_OF_A_PAIR,
    BYTES_OF_A_SLOT,
    SOURCE_OF_TABLES,
    PairCounts,
    PairLayout,
    Tables,
    add_up,
)

_SOURCE_OF_LEVELS = "statistics/levels"


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


class LevelFlow:
    """Edges of a forest, processed level by level: all edges that lead to the nodes of one level at once."""

    def __init__(self, forest: DeviceForest, sources: Array, targets: Array, levels_of_nodes: Array) -> None:
        """Sorts the edges (uint32 node numbers). The level of each target must be above the levels of its sources."""
        self._device = forest.device
        self._edges = Edges.of(forest.device, sources, targets, levels_of_nodes)

    def add_values(self, values: Array, limit: int) -> None:
        """Adds up numbers by node (uint64). An edge carries at most `limit`."""
        edges = self._edges
        for first, last, is_narrow in edges.levels.launches():
            begin, end = edges.levels.items(first, last)
            if is_narrow:
                arguments = (edges.sources, edges.targets, edges.levels.device_starts, first, last, values, limit)
                self._device.launch(_SOURCE_OF_LEVELS, "add_along_levels", end - begin, *arguments, one_cta=True)
            else:
                add_along(self._device, edges.sources[begin:end], edges.targets[begin:end], values, values, limit)

    def add_tables(self, tables: Tables) -> None:
        """Adds up tables by node."""
        edges = self._edges
        slot_starts = tables.slot_starts(edges.sources)
        at_levels = self._device.download(slot_starts[edges.levels.device_starts]).astype(np.int64)
        for first, last, is_narrow in edges.levels.launches(at_levels[1:] - at_levels[:-1]):
            num_slots = int(at_levels[last] - at_levels[first])
            along = (edges.sources, edges.targets, slot_starts)
            if is_narrow:
                arguments = (*along, edges.levels.device_starts, first, last, *tables.arguments)
                self._device.launch(SOURCE_OF_TABLES, "add_tables_of_levels", num_slots, *arguments, one_cta=True)
            else:
                arguments = (*along, *edges.levels.items(first, last), *tables.arguments)
                self._device.launch(SOURCE_OF_TABLES, "add_tables", num_slots, *arguments)


class TopDown:
    """Weights flow from the files to the rules that they use. Each rule gets a table of its weight in each file."""

    name = "top-down"

    def __init__(self, forest: DeviceForest) -> None:
        """Sorts the edges from parents to children."""
        self._forest = forest
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
        return Work.of(int(self._bounds.sum()), num_copies, num_results)

    def postings(self, file_bits: int) -> PairCounts:
        """Returns how often each term occurs in each file, as pairs (term, file). Call `work` first."""
        forest = self._forest
        layout = PairLayout(True, forest.num_terms.bit_length(), file_bits)
        nothing = forest.terms[:0]
        terms = (forest.term_nodes, forest.terms)
        return add_up(self._tables_of_nodes(), terms, (nothing, nothing), layout, forest.device)

    def _tables_of_nodes(self) -> Tables:
        """Returns how often each node occurs in each file."""
        forest, device = self._forest, self._forest.device
        tables = Tables(device, self._bounds)
        tables.add_items(device.xp.arange(forest.num_files, dtype=np.uint32), forest.files)
        self._flow.add_tables(tables)
        tables.check()
        return tables


class BottomUp:
    """Each rule gets a table of the terms in it and in the rules below.

    Each file adds up the tables of its elements.
    """

    name = "bottom-up"

    def __init__(self, forest: DeviceForest) -> None:
        """Sorts the edges from children to parents, for parents that are rules."""
        self._forest = forest
        self._children, parents = self._split_edges()
        self._flow = LevelFlow(forest, self._children, parents, forest.heights)
        self._split_terms()

    def _split_edges(self) -> tuple[Array, Array]:
        """Sets the edges of files: rules, files. Returns the edges between rules: children, parents."""
        forest = self._forest
        is_of_file = forest.parents < forest.num_files
        self._file_edges = forest.children[is_of_file], forest.parents[is_of_file]
        return forest.children[~is_of_file], forest.parents[~is_of_file]

    def _split_terms(self) -> None:
        """Separates the terms of files from those of rules."""
        forest = self._forest
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
        return Work.of(int(self._bounds.sum()), num_copies, num_results)

    def postings(self, file_bits: int) -> PairCounts:
        """Returns how often each term occurs in each file, as pairs (term, file). Call `work` first."""
        forest, device = self._forest, self._forest.device
        tables = Tables(device, self._bounds)
        tables.add_items(*self._rule_terms)
        self._flow.add_tables(tables)
        tables.check()
        sources, files = self._file_edges
        nodes, terms = self._file_terms
        layout = PairLayout(False, forest.num_terms.bit_length(), file_bits)
        return add_up(tables, (sources, forest.files[files]), (forest.files[nodes], terms), layout, device)


def add_along(
    device: ArrayDevice, sources: Array, targets: Array, values: Array, sums: Array, limit: int = 2**63
) -> None:
    """Adds min(values[source], limit) to sums[target] for each edge. Edges may be in any order."""
    arguments = (sources, targets, 0, sources.size, values, sums, limit)
    device.launch(_SOURCE_OF_LEVELS, "add_along_edges", sources.size, *arguments)
