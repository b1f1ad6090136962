"""Passes numbers and tables along the edges of a forest: by topological levels, or in rounds with masks (G-TADOC)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gompfs.errors import StatsUnavailableError
from gompfs.gpu.arrays import Array, ArrayDevice
from gompfs.gpu.forest import DeviceForest, Edges
from gompfs.gpu.tables import SOURCE_OF_TABLES, Tables

_SOURCE_OF_LEVELS = "statistics/levels"
_MAX_ROUNDS = 1 << 16
_TIMES_AVERAGE = 16
"""Several threads share a node that has more than this many times the average number of edges (G-TADOC section 4.1)."""


class Flow(Protocol):
    """Edges of a forest. A node passes its values on along its edges once it has received all of its own."""

    def add_values(self, values: Array, limit: int) -> None:
        """Adds up numbers by node (uint64). An edge carries at most `limit`."""

    def add_tables(self, tables: Tables) -> None:
        """Adds up tables by node."""


class LevelFlow:
    """Works level by level: all edges that lead to the nodes of one level are processed at once."""

    def __init__(self, forest: DeviceForest, sources: Array, targets: Array, levels_of_nodes: Array) -> None:
        """Sorts the edges (uint32 node numbers). The level of each target must be above the levels of its sources."""
        self._device = forest.device
        self._edges = Edges.of(forest.device, sources, targets, levels_of_nodes)

    def add_values(self, values: Array, limit: int) -> None:
        """See Flow."""
        edges = self._edges
        for first, last, is_narrow in edges.levels.runs():
            begin, end = edges.levels.items(first, last)
            if is_narrow:
                arguments = (edges.sources, edges.targets, edges.levels.device_starts, first, last, values, limit)
                self._device.launch(_SOURCE_OF_LEVELS, "add_along_levels", end - begin, *arguments, one_cta=True)
            else:
                add_along(self._device, edges.sources[begin:end], edges.targets[begin:end], values, values, limit)

    def add_tables(self, tables: Tables) -> None:
        """See Flow."""
        edges = self._edges
        slot_starts = tables.slot_starts(edges.sources)
        at_levels = self._device.download(slot_starts[edges.levels.device_starts]).astype(np.int64)
        for first, last, is_narrow in edges.levels.runs(at_levels[1:] - at_levels[:-1]):
            num_slots = int(at_levels[last] - at_levels[first])
            along = (edges.sources, edges.targets, slot_starts)
            if is_narrow:
                arguments = (*along, edges.levels.device_starts, first, last, *tables.arguments)
                self._device.launch(SOURCE_OF_TABLES, "add_tables_of_levels", num_slots, *arguments, one_cta=True)
            else:
                arguments = (*along, *edges.levels.items(first, last), *tables.arguments, *tables.arguments)
                self._device.launch(SOURCE_OF_TABLES, "add_tables", num_slots, *arguments)


class RoundFlow:
    """Works in rounds: a node passes its values on in the round after its last predecessor did. A mask says when."""

    def __init__(self, forest: DeviceForest, sources: Array, targets: Array) -> None:
        """Takes edges (uint32 node numbers) that are sorted by source."""
        device, xp, num_nodes = forest.device, forest.device.xp, forest.num_nodes
        self._device = device
        self._targets = targets
        starts = xp.searchsorted(sources, xp.arange(num_nodes + 1, dtype=np.uint32)).astype(np.int64)
        self._starts = starts.astype(np.uint64)
        self._waits = xp.zeros(num_nodes, np.uint32)
        if targets.size:
            self._waits += xp.bincount(targets, minlength=num_nodes).astype(np.uint32)
        self._piece_size = _TIMES_AVERAGE * max(1, -(-targets.size // max(num_nodes, 1)))
        pieces = (starts[1:] - starts[:-1] + (self._piece_size - 1)) // self._piece_size
        self._piece_starts = xp.zeros(num_nodes + 1, np.uint64)
        self._piece_starts[1:] = xp.cumsum(pieces)
        self._num_pieces = int(self._piece_starts[-1])
        self._piece_nodes = xp.empty(self._num_pieces, np.uint32)
        arguments = (self._piece_starts, num_nodes, self._num_pieces, self._piece_nodes)
        device.launch(_SOURCE_OF_LEVELS, "name_nodes", self._num_pieces, *arguments)

    def add_values(self, values: Array, limit: int) -> None:
        """See Flow. Raises StatsUnavailableError if more than 65,536 rounds are needed."""
        self._run("pass_values", values, limit)

    def add_tables(self, tables: Tables) -> None:
        """See Flow. Raises StatsUnavailableError if more than 65,536 rounds are needed."""
        self._run("pass_tables", *tables.arguments)

    def _run(self, kernel: str, *arguments: object) -> None:
        xp = self._device.xp
        waits = self._waits.copy()
        masks = (waits == 0).astype(np.uint32)
        pieces = (self._piece_starts, self._piece_nodes, self._num_pieces, self._piece_size)
        for number in range(1, _MAX_ROUNDS + 1):
            has_next = xp.zeros(1, np.uint32)
            graph = (self._starts, self._targets, *pieces, waits, masks, np.uint32(number), has_next)
            self._device.launch(SOURCE_OF_TABLES, kernel, self._num_pieces, *graph, *arguments)
            if not int(has_next[0]):
                return
        raise StatsUnavailableError(f"the rules of the grammar are nested more than {_MAX_ROUNDS} levels deep")


def add_along(
    device: ArrayDevice, sources: Array, targets: Array, values: Array, sums: Array, limit: int = 2**63
) -> None:
    """Adds min(values[source], limit) to sums[target] for each edge. Edges may be in any order."""
    arguments = (sources, targets, 0, sources.size, values, sums, limit)
    device.launch(_SOURCE_OF_LEVELS, "add_along_edges", sources.size, *arguments)
