"""Traverses a forest on a device, top-down or bottom-up, by topological levels.

The directions are those of G-TADOC (algorithms 1 and 2). Numbers and tables are passed along all edges that lead to one
level at once; then the next level follows. The results are pairs that are sorted and added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.statistics.gpu.forest import DeviceForest, Edges
from gompfs.statistics.gpu.local_tables import (
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
        """Computes the bounds from the numbers of table slots, entries copied between tables, and result entries."""
        return cls(num_copies + num_results, BYTES_OF_A_SLOT * num_slots + BYTES_OF_A_PAIR * num_results)


class LevelFlow:
    """Edges of a forest, processed level by level: all edges that lead to the nodes of one level at once."""

    def __init__(self, forest: DeviceForest, sources: Array, targets: Array, levels_of_nodes: Array) -> None:
        """Sorts the edges (uint32 node numbers). The level of each target must be above the levels of its sources."""
        self._device = forest.device
        self._edges = Edges.of(forest.device, sources, targets, levels_of_nodes)

    @property
    def sources(self) -> Array:
        """The nodes that edges come from, in any order."""
        return self._edges.sources

    @property
    def num_bytes(self) -> int:
        """The device memory in bytes."""
        return self._edges.num_bytes

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
        self._flow = forest.kept(self.name, lambda: LevelFlow(forest, forest.parents, forest.children, forest.depths))

    def counts(self) -> Array:
        """Returns how often each term occurs in all files together (uint64)."""
        return self.of_terms(self.weights(0, self._forest.num_files))

    def reach(self, begin: int, end: int) -> Array:
        """Returns which nodes the files `begin` to `end` - 1 use (bool)."""
        return self.weights(begin, end, 1) > 0

    def weights(self, begin: int, end: int, limit: int = 2**63) -> Array:
        """Returns how often each node occurs in the files `begin` to `end` - 1 (uint64). A file occurs in itself.

        An edge carries at most `limit`.
        """
        weights = self._forest.device.xp.zeros(self._forest.num_nodes, np.uint64)
        weights[begin:end] = 1
        self._flow.add_values(weights, limit)
        return weights

    def of_terms(self, values: Array) -> Array:
        """Returns the sum of the values of the nodes that have a term, for each term (both uint64)."""
        forest = self._forest
        sums = forest.device.xp.zeros(forest.num_terms, np.uint64)
        add_along(forest.device, forest.term_nodes, forest.terms, values, sums)
        return sums

    def work(self) -> Work:
        """The first pass. Uses that a rule is in at most as many files as it has occurrences."""
        forest, xp = self._forest, self._forest.device.xp
        limit = np.uint64(forest.num_files)
        self._bounds = xp.minimum(self.weights(0, forest.num_files, forest.num_files), limit)
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
        edges = forest.kept(self.name, lambda: _EdgesOfRules(forest))
        self._flow, self._file_edges = edges.flow, edges.of_files
        self._children = self._flow.sources

    def add_up(self, values: Array) -> Array:
        """Adds numbers of nodes (uint64) to those of all nodes that use them. Returns those of the files."""
        self._flow.add_values(values, 2**63)
        add_along(self._forest.device, *self._file_edges, values, values)
        return values[: self._forest.num_files]

    def counts(self) -> Array:
        """Returns how often each term occurs in all files together (uint64). Call `work` first.

        The tables of the rules that files use are added up, each as often as files use its rule (G-TADOC, algorithm 2).
        """
        forest, xp = self._forest, self._forest.device.xp
        sums = xp.zeros(forest.num_terms, np.uint64)
        tables = self._tables_of_rules()
        rules = self._file_edges[0]
        weights = xp.bincount(rules, minlength=forest.num_nodes).astype(np.uint64) if rules.size else None
        if weights is not None:
            tables.add_to(sums, xp.flatnonzero(weights).astype(np.uint32), weights)
        terms = self._file_terms[1]
        if terms.size:
            sums += xp.bincount(terms, minlength=forest.num_terms).astype(np.uint64)
        return sums

    @cached_property
    def _file_terms(self) -> tuple[Array, Array]:
        """The terms of files: nodes, terms."""
        return self._terms_of(self._forest.term_nodes < self._forest.num_files)

    @cached_property
    def _rule_terms(self) -> tuple[Array, Array]:
        """The terms of rules: nodes, terms."""
        return self._terms_of(self._forest.term_nodes >= self._forest.num_files)

    def _terms_of(self, chosen: Array) -> tuple[Array, Array]:
        return self._forest.term_nodes[chosen], self._forest.terms[chosen]

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
        forest = self._forest
        tables = self._tables_of_rules()
        sources, files = self._file_edges
        nodes, terms = self._file_terms
        layout = PairLayout(False, forest.num_terms.bit_length(), file_bits)
        return add_up(tables, (sources, forest.files[files]), (forest.files[nodes], terms), layout, forest.device)

    def _tables_of_rules(self) -> Tables:
        """Returns how often each term occurs in each rule and the rules below."""
        tables = Tables(self._forest.device, self._bounds)
        tables.add_items(*self._rule_terms)
        self._flow.add_tables(tables)
        tables.check()
        return tables


class _EdgesOfRules:
    """The edges of a forest from children to parents: between rules, sorted by level, and from rules to files."""

    def __init__(self, forest: DeviceForest) -> None:
        self.of_files, of_rules = split_edges(forest)
        self.flow = LevelFlow(forest, *of_rules, forest.heights)

    @property
    def num_bytes(self) -> int:
        """The device memory in bytes."""
        return self.flow.num_bytes + sum(int(array.nbytes) for array in self.of_files)


def split_edges(forest: DeviceForest) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Returns the edges from rules to files, and the edges between rules, each as (children, parents)."""
    is_of_file = forest.parents < forest.num_files
    chosen = (is_of_file, ~is_of_file)
    of_files, of_rules = ((forest.children[which], forest.parents[which]) for which in chosen)
    return of_files, of_rules


def add_along(
    device: ArrayDevice, sources: Array, targets: Array, values: Array, sums: Array, limit: int = 2**63
) -> None:
    """Adds min(values[source], limit) to sums[target] for each edge. Edges may be in any order."""
    arguments = (sources, targets, 0, sources.size, values, sums, limit)
    device.launch(_SOURCE_OF_LEVELS, "add_along_edges", sources.size, *arguments)
