"""Statistics on a device. Ranges of files that fit in device memory are traversed as forests, one after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gompfs._native import grammar as _grammar
from gompfs._native import statistics as _statistics
from gompfs._native.statistics import Direction
from gompfs.errors import StatsUnavailableError
from gompfs.gpu.arrays import ArrayDevice
from gompfs.gpu.forest import DeviceForest
from gompfs.gpu.tables import PairCounts
from gompfs.gpu.traversal import BottomUp, TopDown
from gompfs.grammar import CountedWords, Grammar
from gompfs.grammar.grammar import ino_array
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.threads import default_threads

_Result = TypeVar("_Result")
# Device memory in bytes per element of a forest while its edges and its words or n-grams are sorted.
_BYTES_OF_A_WORD = 200
_BYTES_OF_AN_NGRAM = 224
_MOST_SYMBOLS = 3 << 20  # symbols per range: the postings of a range are also in host memory before they are merged


def count_words(grammar: Grammar, traversal: Traversal, inos: Collection[int] | None = None) -> CountedWords:
    """Counts the words of a grammar on `traversal.device`, in the files `inos` (None: all)."""
    assert traversal.device is not None
    counter = DeviceCounter(traversal.device, traversal, traversal.times or PhaseTimes())
    counts = counter.word_counts(grammar.native, ino_array(inos))
    return CountedWords(grammar, counts)


class DeviceCounter:
    """Counts the terms of grammars on a device, in the requested direction or the cheaper one."""

    top_down: type[TopDown] = TopDown
    bottom_up: type[BottomUp] = BottomUp

    def __init__(self, device: ArrayDevice, traversal: Traversal, times: PhaseTimes) -> None:
        """Uses the settings of `traversal`. Its threads put rules into arrays.

        Adds the seconds of each phase to `times`.
        """
        self._device = device
        self._memory = device.memory
        self._direction = traversal.direction
        self._num_threads = traversal.num_threads or default_threads()
        self._times = times

    def word_counts(self, grammar: _grammar.Grammar, inos: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
        """Returns how often each word of the dictionary occurs in the files `inos` (None: all), as uint64."""

        def count(begin: int, end: int) -> NDArray[np.uint64]:
            with self._times.of("flatten"):
                forest = _statistics.forest_of_grammar(grammar, inos, begin, end, self._num_threads)
            on_device = self._upload(forest)
            with self._times.of("initialise", self._device):
                on_device.use_words(grammar.num_words)
                traversal = self.top_down(on_device)
            with self._times.of("traverse", self._device):
                counts = traversal.counts()
            with self._times.of("download"):
                return self._device.download(counts)

        total = np.zeros(grammar.num_words, np.uint64)
        with self._device:
            for counts in self._in_ranges(grammar.part_sizes(), _BYTES_OF_A_WORD, count):
                total += counts
        return total

    def gather(
        self,
        postings: _statistics.Postings,
        corpus: _statistics.Corpus,
        part_sizes: Sequence[tuple[int, int]],
        ngram_length: int,
        *,
        per_file: bool,
    ) -> None:
        """Counts the n-grams of `ngram_length` words, per file or in all files together. Adds them to `postings`."""

        def count(begin: int, end: int) -> None:
            with self._times.of("flatten"):
                forest = _statistics.forest_of_corpus(corpus, begin, end, self._num_threads)
            on_device = self._upload(forest)
            with self._times.of("initialise", self._device):
                if ngram_length == 1:
                    on_device.use_words(corpus.num_words)
                else:
                    on_device.use_ngrams(ngram_length, corpus.bits, corpus.inner_ranks)
            counted = self._count_postings(on_device) if per_file else self._count_all(on_device)
            with self._times.of("download"):
                keys, of_keys = (self._device.download(array) for array in _as_postings(on_device, counted))
                postings.add(keys, of_keys)

        bytes_of_an_element = _BYTES_OF_A_WORD if ngram_length == 1 else _BYTES_OF_AN_NGRAM
        with self._device:
            for _ in self._in_ranges(part_sizes, bytes_of_an_element, count):
                pass

    def _upload(self, forest: _statistics.Forest) -> DeviceForest:
        with self._times.of("upload", self._device):
            return DeviceForest(self._device, forest)

    def _count_all(self, forest: DeviceForest) -> PairCounts:
        """Returns the term counts of all files together, stored under file 0."""
        if self._direction is Direction.BOTTOM_UP:
            forest.files = self._device.xp.zeros_like(forest.files)
            return self._count_postings(forest)
        with self._times.of("initialise", self._device):
            traversal = self.top_down(forest)
        self._times.directions[traversal.name] += 1
        with self._times.of("traverse", self._device):
            counts = traversal.counts()
            terms = self._device.xp.flatnonzero(counts)
            return PairCounts(terms.astype(np.uint64), counts[terms], 0)

    def _count_postings(self, forest: DeviceForest) -> PairCounts:
        file_bits = int(forest.files.max()).bit_length() if forest.num_files else 1
        with self._times.of("initialise", self._device):
            traversal = self._choose(forest)
        self._times.directions[traversal.name] += 1
        with self._times.of("traverse", self._device):
            return traversal.postings(max(file_bits, 1))

    def _choose(self, forest: DeviceForest) -> TopDown | BottomUp:
        """Returns the requested direction, or the one for which a first pass estimates less work (G-TADOC section 4.2).

        Raises MemoryError if device memory is too small for it.
        """
        ways: list[TopDown | BottomUp] = []
        if self._direction is not Direction.BOTTOM_UP:
            ways.append(self.top_down(forest))
        if self._direction is not Direction.TOP_DOWN:
            ways.append(self.bottom_up(forest))
        memory = self._memory - forest.num_bytes
        choices = [(way, way.work()) for way in ways]
        way, work = min(choices, key=lambda choice: (choice[1].num_bytes > memory, choice[1].cost))
        if work.num_bytes > memory:
            raise MemoryError
        return way

    def _in_ranges(
        self, part_sizes: Sequence[tuple[int, int]], bytes_of_an_element: int, count: Callable[[int, int], _Result]
    ) -> Iterator[_Result]:
        """Calls `count` for ranges of files that should fit in device memory, and yields the results.

        A range that does not fit is split in two. Raises StatsUnavailableError if a single file does not fit.
        """
        pending = _cut(part_sizes, min(self._memory // bytes_of_an_element, _MOST_SYMBOLS))[::-1]
        while pending:
            begin, end = pending.pop()
            try:
                result = count(begin, end)
            except MemoryError:
                if end - begin == 1:
                    raise StatsUnavailableError(
                        f"one file needs more memory than is allowed on {self._device.name}: {self._memory >> 20} MiB"
                    ) from None
                middle = (begin + end) // 2
                pending += [(middle, end), (begin, middle)]
            else:
                yield result


def _cut(part_sizes: Sequence[tuple[int, int]], max_symbols: int) -> list[tuple[int, int]]:
    """Cuts the files of consecutive parts into ranges of whole parts.

    A range has at most `max_symbols` symbols, or is a single part.
    """
    ranges: list[tuple[int, int]] = []
    end = symbols = 0
    for num_files, num_symbols in part_sizes:
        if not ranges or symbols + num_symbols > max_symbols:
            ranges.append((end, end))
            symbols = 0
        end += num_files
        symbols += num_symbols
        ranges[-1] = (ranges[-1][0], end)
    return [(begin, end) for begin, end in ranges if begin != end]


def _as_postings(forest: DeviceForest, counted: PairCounts) -> tuple[object, object]:
    """Converts counts of pairs (term, file) to the arrays that `Postings.add` takes."""
    xp = forest.device.xp
    terms = counted.firsts
    is_new = xp.ones(terms.size, bool)
    is_new[1:] = terms[1:] != terms[:-1]
    used = terms[is_new]
    keys = xp.zeros((used.size, 2), np.uint64)
    if forest.keys:
        for column, half in enumerate(reversed(forest.keys)):
            keys[:, column] = half[used]
    else:
        keys[:, 0] = used
    postings = xp.empty((terms.size, 2), np.uint64)
    postings[:, 0] = xp.cumsum(is_new, dtype=np.uint64) - np.uint64(1) | counted.seconds << np.uint64(32)
    postings[:, 1] = counted.counts
    return keys, postings
