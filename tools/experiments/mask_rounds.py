"""Traversal in rounds with masks and result tables, as in the paper on G-TADOC (algorithms 1 and 2), for comparison.

Zhang et al., "G-TADOC: Enabling Efficient GPU-Based Text Analytics without Decompression" (ICDE 2021). gompfs traverses
by levels instead, and sorts the results (gompfs/statistics/gpu/traversal.py). `report_in_rounds` gives the same text as
`gompfs.statistics.postings.postings_report`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import PostingsTask
from gompfs.errors import StatsUnavailableError
from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.statistics.gpu.device_counter import DeviceCounter, FlattenedText
from gompfs.statistics.gpu.forest import DeviceForest
from gompfs.statistics.gpu.local_tables import BYTES_OF_A_SLOT, PairCounts, PairLayout, Tables, add_up
from gompfs.statistics.gpu.traversal import BottomUp, TopDown, Work, add_along, split_edges
from gompfs.statistics.paths import files_in_order
from gompfs.statistics.report import PiecewiseReport
from gompfs.statistics.temporary_files import free_space, temporary_directory
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.text.grammar import Grammar

_SOURCE = str(Path(__file__).with_name("kernels") / "mask_rounds")
_MAX_ROUNDS = 1 << 16
_TIMES_AVERAGE = 16
"""Several threads share a node that has more than this many times the average number of edges (G-TADOC section 4.1)."""


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
        device.launch("statistics/levels", "name_nodes", self._num_pieces, *arguments)

    def add_values(self, values: Array, limit: int) -> None:
        """Adds up numbers by node (uint64). An edge carries at most `limit`.

        Raises StatsUnavailableError if more than 65,536 rounds are needed.
        """
        self._run("pass_values", values, limit)

    def add_tables(self, tables: Tables) -> None:
        """Adds up tables by node. Raises StatsUnavailableError if more than 65,536 rounds are needed."""
        self._run("pass_tables", *tables.arguments)

    def _run(self, kernel: str, *arguments: object) -> None:
        xp = self._device.xp
        waits = self._waits.copy()
        masks = (waits == 0).astype(np.uint32)
        pieces = (self._piece_starts, self._piece_nodes, self._num_pieces, self._piece_size)
        for number in range(1, _MAX_ROUNDS + 1):
            has_next = xp.zeros(1, np.uint32)
            graph = (self._starts, self._targets, *pieces, waits, masks, np.uint32(number), has_next)
            self._device.launch(_SOURCE, kernel, self._num_pieces, *graph, *arguments)
            if not int(has_next[0]):
                return
        raise StatsUnavailableError(f"the rules of the grammar are nested more than {_MAX_ROUNDS} levels deep")


class TopDownInRounds(TopDown):
    """See TopDown. The results are tables of the terms."""

    def __init__(self, forest: DeviceForest) -> None:
        """The edges of a forest are sorted by parent already."""
        self._forest = forest
        self._flow = RoundFlow(forest, forest.parents, forest.children)

    def work(self) -> Work:
        """See TopDown.work."""
        work = super().work()
        return _with_tables(work, int(self._bounds[self._forest.term_nodes].sum()))

    def postings(self, file_bits: int) -> PairCounts:
        """See TopDown.postings."""
        forest, device = self._forest, self._forest.device
        tables = self._tables_of_nodes()
        limit = np.uint64(forest.num_files)
        results = Tables(device, device.xp.minimum(self.of_terms(self._bounds), limit))
        _collect(device, tables, results, forest.term_nodes, forest.terms)
        results.check()
        layout = PairLayout(True, forest.num_terms.bit_length(), file_bits)
        every_term = device.xp.arange(forest.num_terms, dtype=np.uint32)
        nothing = forest.terms[:0]
        return add_up(results, (every_term, every_term), (nothing, nothing), layout, device)


class BottomUpInRounds(BottomUp):
    """See BottomUp. The results are tables of the files."""

    def __init__(self, forest: DeviceForest) -> None:
        """Sorts the edges from children to parents, for parents that are rules."""
        self._forest = forest
        self._file_edges, (self._children, parents) = split_edges(forest)
        order = forest.device.xp.argsort(self._children)
        self._flow = RoundFlow(forest, self._children[order], parents[order])

    def work(self) -> Work:
        """See BottomUp.work."""
        work = super().work()
        return _with_tables(work, int(self._bounds[self._file_edges[0]].sum()) + self._file_terms[0].size)

    def postings(self, file_bits: int) -> PairCounts:
        """See BottomUp.postings."""
        forest, device = self._forest, self._forest.device
        tables = Tables(device, self._bounds)
        tables.add_items(*self._rule_terms)
        self._flow.add_tables(tables)
        tables.check()
        results = self._tables_of_files(tables)
        every_file = device.xp.arange(forest.num_files, dtype=np.uint32)
        nothing = forest.terms[:0]
        layout = PairLayout(False, forest.num_terms.bit_length(), file_bits)
        return add_up(results, (every_file, forest.files), (nothing, nothing), layout, device)

    def _tables_of_files(self, tables: Tables) -> Tables:
        forest, xp = self._forest, self._forest.device.xp
        bounds = xp.zeros(forest.num_files, np.uint64)
        if self._file_terms[0].size:
            bounds += xp.bincount(self._file_terms[0], minlength=forest.num_files).astype(np.uint64)
        add_along(forest.device, *self._file_edges, self._bounds, bounds)
        results = Tables(forest.device, xp.minimum(bounds, np.uint64(forest.num_terms)))
        results.add_items(*self._file_terms)
        _collect(forest.device, tables, results, *self._file_edges)
        results.check()
        return results


class RoundCounter(DeviceCounter):
    """See DeviceCounter. It traverses in rounds."""

    top_down = TopDownInRounds
    bottom_up = BottomUpInRounds


def report_in_rounds(
    task: PostingsTask,
    grammars: Sequence[Grammar],
    paths: Mapping[int, bytes],
    ngram_length: int,
    traversal: Traversal,
) -> bytes:
    """Returns the text of a task, whose n-grams have `ngram_length` words, counted on `traversal.device`.

    Raises StatsUnavailableError if a grammar is nested too deeply for rounds.
    """
    assert traversal.device is not None
    directory = temporary_directory()
    postings = _statistics.Postings(directory, traversal.in_memory, free_space(directory) // 2)
    corpus = _statistics.Corpus([grammar.native for grammar in grammars], files_in_order(paths), ngram_length)
    num_threads = traversal.num_threads or len(os.sched_getaffinity(0))
    times = traversal.times or PhaseTimes()
    counter = RoundCounter(traversal.device, traversal, times)

    def flatten(begin: int, end: int) -> _statistics.Forest:
        return _statistics.forest_of_corpus(corpus, begin, end, False, num_threads)

    part_sizes = [size for grammar in grammars for size in grammar.native.part_sizes()]
    text = FlattenedText(traversal.device, part_sizes, flatten, times)
    per_file = task is not PostingsTask.SEQUENCE_COUNT
    counter.gather(postings, corpus, text, ngram_length, per_file=per_file)
    postings.gather_over_edges(corpus, per_file, num_threads)
    return PiecewiseReport(_statistics.task_report(corpus, task, 0, postings, num_threads), num_threads).read()


def _with_tables(work: Work, num_results: int) -> Work:
    """Returns the bounds of a traversal that keeps its results in tables."""
    return replace(work, num_bytes=work.num_bytes + BYTES_OF_A_SLOT * num_results)


def _collect(device: ArrayDevice, tables: Tables, results: Tables, sources: Array, targets: Array) -> None:
    """Adds the tables of `sources` to the results of `targets` (both uint32), in any order."""
    starts = tables.slot_starts(sources)
    arguments = (sources, targets, starts, sources.size, *tables.arguments, *results.arguments)
    device.launch(_SOURCE, "collect_tables", int(starts[-1]), *arguments)
