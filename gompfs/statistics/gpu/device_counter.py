"""Statistics on a device. Ranges of files that fit in device memory are traversed as forests, one after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import Direction
from gompfs.errors import StatsUnavailableError
from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.statistics.gpu.device_rows import DeviceRows, Totals, add_totals, settle_all
from gompfs.statistics.gpu.forest import DeviceForest, FlatForest
from gompfs.statistics.gpu.local_tables import PairCounts
from gompfs.statistics.gpu.traversal import BottomUp, TopDown
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.text.grammar import CountedWords, Grammar, ino_array
from gompfs.threads import default_threads

_Result = TypeVar("_Result")
# Device memory in bytes per element of a forest while its edges and its words or n-grams are sorted.
_BYTES_OF_A_WORD = 200
_BYTES_OF_AN_NGRAM = 224
_LEAST_BYTES_OF_AN_NGRAM = 112  # that a range may need; it is halved if it needs more
_MOST_SYMBOLS = 3 << 20  # symbols per range: the postings of a range are also in host memory before they are merged


def count_words(grammar: Grammar, traversal: Traversal, inos: Collection[int] | None = None) -> CountedWords:
    """Counts the words of a grammar on `traversal.device`, in the files `inos` (None: all)."""
    assert traversal.device is not None
    times = traversal.times or PhaseTimes()
    native, of_files = grammar.native, ino_array(inos)
    num_threads = traversal.num_threads or default_threads()

    def flatten(begin: int, end: int) -> _statistics.Forest:
        return _statistics.forest_of_grammar(native, of_files, begin, end, num_threads)

    text = FlattenedText(traversal.device, native.part_sizes(), flatten, times)
    return CountedWords(grammar, DeviceCounter(traversal.device, traversal, times).word_counts(text, grammar.num_words))


class DeviceText(Protocol):
    """The text that is counted on a device."""

    @property
    def part_sizes(self) -> Sequence[tuple[int, int]]:
        """By part of the text: its number of files, and of elements of nodes or symbols."""

    def forest(self, begin: int, end: int) -> DeviceForest:
        """Returns the files `begin` to `end` - 1, counted over the parts, without terms. Raises MemoryError."""

    def words(self, begin: int, end: int, num_words: int) -> DeviceForest:
        """Returns the same with words as its terms. Raises MemoryError."""


class FlattenedText:
    """See DeviceText. Each forest is made on the host, and uploaded."""

    def __init__(
        self,
        device: ArrayDevice,
        part_sizes: Sequence[tuple[int, int]],
        flatten: Callable[[int, int], _statistics.Forest],
        times: PhaseTimes,
    ) -> None:
        """`flatten` makes the forest of a range of files."""
        self.part_sizes = part_sizes
        self._device = device
        self._flatten = flatten
        self._times = times

    def forest(self, begin: int, end: int) -> DeviceForest:
        """See DeviceText.forest."""
        with self._times.of("flatten"):
            forest = self._flatten(begin, end)
        with self._times.of("upload", self._device):
            return DeviceForest(FlatForest.upload(self._device, forest))

    def words(self, begin: int, end: int, num_words: int) -> DeviceForest:
        """See DeviceText.words."""
        return with_words(self.forest(begin, end), num_words, self._times)


def with_words(forest: DeviceForest, num_words: int, times: PhaseTimes) -> DeviceForest:
    """Returns a forest with words, which are below `num_words`, as its terms."""
    with times.of("initialise", forest.device):
        forest.use_words(num_words)
    return forest


class DeviceCounter:
    """Counts the terms of grammars on a device, in the requested direction or the cheaper one."""

    top_down: type[TopDown] = TopDown
    bottom_up: type[BottomUp] = BottomUp

    def __init__(self, device: ArrayDevice, traversal: Traversal, times: PhaseTimes, memory: int = 0) -> None:
        """Uses the settings of `traversal`, and `memory` bytes of the device (0: as much as it has for a computation).

        The threads of `traversal` store the counts. Adds the seconds of each phase to `times`.
        """
        self._device = device
        self._memory = memory or device.memory
        self._direction = traversal.direction
        self._num_threads = traversal.num_threads or default_threads()
        self._times = times

    def word_counts(self, text: DeviceText, num_words: int) -> NDArray[np.uint64]:
        """Returns how often each word occurs in all files of a text, as uint64; words are below `num_words`."""

        def count(begin: int, end: int) -> NDArray[np.uint64]:
            counts = self._count_all(text.words(begin, end, num_words))
            with self._times.of("download"):
                return self._device.download(counts)

        total: NDArray[np.uint64] | None = None
        with self._device:
            for counts in self._in_ranges(text.part_sizes, self._symbols_of(_BYTES_OF_A_WORD), count):
                total = counts if total is None else np.add(total, counts, out=total)
        return np.zeros(num_words, np.uint64) if total is None else total

    def files_of_words(self, text: DeviceText, num_words: int) -> tuple[NDArray[np.uint32], int]:
        """Returns in how many files each word is (uint32), and how many files have words. No file is in two parts."""

        def count(begin: int, end: int) -> tuple[NDArray[np.uint32], int]:
            xp = self._device.xp
            counted = self._count_postings(text.words(begin, end, num_words))
            files = xp.bincount(counted.firsts.astype(np.int64), minlength=num_words) if counted.keys.size else None
            num_files = int(xp.unique(counted.seconds).size)
            with self._times.of("download"):
                found = np.zeros(num_words) if files is None else self._device.download(files)
            return found.astype(np.uint32), num_files

        total, num_files = np.zeros(num_words, np.uint32), 0
        with self._device:
            for files, more in self._in_few_ranges(text.part_sizes, 1, count):
                total += files
                num_files += more
        return total, num_files

    def gather(
        self,
        postings: _statistics.Postings,
        corpus: _statistics.Corpus,
        text: DeviceText,
        ngram_length: int,
        *,
        per_file: bool,
    ) -> None:
        """Counts the n-grams of `ngram_length` words, per file or in all files together. Adds them to `postings`."""

        def count(begin: int, end: int) -> None:
            forest = self._with_terms(text, begin, end, corpus, ngram_length)
            counted = self._count_postings(forest) if per_file else self._count_together(forest)
            with self._times.of("download"):
                keys, of_keys = (self._device.download(array) for array in _as_postings(forest, counted))
            with self._times.of("emit"):
                postings.add(keys, of_keys, self._num_threads)

        bytes_of_an_element = _BYTES_OF_A_WORD if ngram_length == 1 else _BYTES_OF_AN_NGRAM
        with self._device:
            for _ in self._in_ranges(text.part_sizes, self._symbols_of(bytes_of_an_element), count):
                pass

    def rows(
        self, corpus: _statistics.Corpus, text: DeviceText, ngram_length: int, *, by_file: bool
    ) -> list[DeviceRows]:
        """Counts n-grams in each file. Returns rows (n-gram, file, count) for each range of files.

        With `by_file`, n-grams are words, and rows are (file, word, count). No file is in two parts.
        """

        def count(begin: int, end: int) -> DeviceRows:
            if self._memory < memory - memory // 4:
                self._memory = memory
                settle_all(found)
            forest = self._with_terms(text, begin, end, corpus, ngram_length)
            counted, keys = self._count_postings(forest), forest.keys
            term_bits = forest.num_terms.bit_length()
            del forest
            if by_file:
                with self._times.of("traverse", self._device):
                    counted = _by_second(counted, term_bits)
            return DeviceRows(self._device, counted, keys)

        found: list[DeviceRows] = []
        memory = self._memory
        with self._device:
            for rows in self._in_few_ranges(text.part_sizes, ngram_length, count):
                found.append(rows)
                self._memory = memory - sum(rows.num_bytes for rows in found)
        return found

    def totals(self, corpus: _statistics.Corpus, text: DeviceText, ngram_length: int) -> Totals | None:
        """Counts n-grams in all files together. Returns None if there are no files.

        Raises MemoryError if there are too many for the device.
        """

        def count(begin: int, end: int) -> Totals:
            forest = self._with_terms(text, begin, end, corpus, ngram_length)
            counted, keys = self._count_together(forest), forest.keys
            del forest
            return Totals(tuple(half[counted.keys] for half in keys) or (counted.keys,), counted.counts)

        found: list[Totals] = []
        with self._device:
            for totals in self._in_few_ranges(text.part_sizes, ngram_length, count):
                self._memory -= totals.num_bytes
                found.append(totals)
            with self._times.of("traverse", self._device):
                return add_totals(self._device, found) if found else None

    def _with_terms(
        self, text: DeviceText, begin: int, end: int, corpus: _statistics.Corpus, ngram_length: int
    ) -> DeviceForest:
        """Returns the files `begin` to `end` - 1 with n-grams as their terms."""
        if ngram_length == 1:
            return text.words(begin, end, corpus.num_words)
        forest = text.forest(begin, end)
        with self._times.of("initialise", self._device):
            forest.use_ngrams(ngram_length, corpus.bits, corpus.inner_ranks)
        return forest

    def _count_together(self, forest: DeviceForest) -> PairCounts:
        """Returns the term counts of all files together, stored under file 0."""
        counts = self._count_all(forest)
        terms = self._device.xp.flatnonzero(counts)
        return PairCounts(terms.astype(np.uint64), counts[terms], 0)

    def _count_all(self, forest: DeviceForest) -> Array:
        """Returns the count of each term in all files together (uint64)."""
        with self._times.of("initialise", self._device):
            traversal = self._choose_for_counts(forest)
        self._times.count_direction(traversal.name)
        with self._times.of("traverse", self._device):
            return traversal.counts()

    def _choose_for_counts(self, forest: DeviceForest) -> TopDown | BottomUp:
        """Returns the requested direction, or top-down if none was requested.

        Top-down, one number passes along each edge; bottom-up, a table of at least one entry does, which is never less
        work. Raises MemoryError if bottom-up needs more device memory than there is.
        """
        if self._direction is not Direction.BOTTOM_UP:
            return self.top_down(forest)
        way = self.bottom_up(forest)
        if way.work().num_bytes > self._memory - forest.num_bytes:
            raise MemoryError
        return way

    def _count_postings(self, forest: DeviceForest) -> PairCounts:
        file_bits = int(forest.files.max()).bit_length() if forest.num_files else 1
        with self._times.of("initialise", self._device):
            traversal = self._choose(forest)
        self._times.count_direction(traversal.name)
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

    def _symbols_of(self, bytes_of_a_symbol: int) -> int:
        return min(self._memory // bytes_of_a_symbol, _MOST_SYMBOLS)

    def _in_few_ranges(
        self, part_sizes: Sequence[tuple[int, int]], ngram_length: int, count: Callable[[int, int], _Result]
    ) -> Iterator[_Result]:
        """Like _in_ranges, for results that stay on the device: begins with larger ranges, for words with one."""
        if ngram_length == 1:
            part_sizes = [_together(part_sizes)]
        limit = self._memory // _LEAST_BYTES_OF_AN_NGRAM
        return self._in_ranges(part_sizes, limit, count)

    def _in_ranges(
        self, part_sizes: Sequence[tuple[int, int]], max_symbols: int, count: Callable[[int, int], _Result]
    ) -> Iterator[_Result]:
        """Calls `count` for ranges of files that should fit in device memory, and yields the results.

        A range that does not fit is split in two. Raises StatsUnavailableError if a single file does not fit.
        """
        pending = _cut(part_sizes, max_symbols)[::-1]
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


def _together(part_sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(num_files for num_files, _ in part_sizes), sum(num_symbols for _, num_symbols in part_sizes)


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


def _by_second(counted: PairCounts, first_bits: int) -> PairCounts:
    """Returns the same pairs with their numbers exchanged, in order; first numbers have `first_bits` bits."""
    keys = counted.seconds << np.uint64(first_bits) | counted.firsts
    order = keys.argsort()
    return PairCounts(keys[order], counted.counts[order], first_bits)


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
