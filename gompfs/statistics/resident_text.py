"""The words of an archive in device memory, for many questions: the forest of all files, and tables of words and files.

A question is then answered without reading the archive: by a traversal of the forest, or of the part of it that one
file uses. The words themselves and the paths stay in host memory, where the lines are made.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs.errors import StatsUnavailableError
from gompfs.gpu.forest import DeviceForest, FlatForest
from gompfs.gpu.resident_forest import ResidentForest
from gompfs.statistics.device_postings import DeviceCounter, with_words
from gompfs.statistics.grammar_cache import load_grammars, segments_with_grammars
from gompfs.statistics.paths import escape_path, files_in_order
from gompfs.statistics.query import EVERYTHING
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gompfs.archive import Archive
    from gompfs.gpu.arrays import ArrayDevice
    from gompfs.grammar import Grammar
    from gompfs.statistics.query import StatsQuery

_ALL_FILES = 1 << 62


class ResidentText:
    """See above. Made by `load`. One thread may ask at a time; it holds `lock`, and checks `is_released`."""

    def __init__(
        self,
        archive: Archive,
        device: ArrayDevice,
        grammars: Sequence[Grammar],
        files: Sequence[tuple[int, bytes]],
        room: int,
        times: PhaseTimes,
    ) -> None:
        """Uploads the forest of `files`, pairs of inode number and path as Corpus takes them, and frees the parts.

        At most `room` bytes stay on the device. Raises StatsUnavailableError if they are too few, and MemoryError.
        """
        self.lock = threading.Lock()
        self.is_released = False
        self.device = device
        self.times = times
        self.room = room
        self._archive = archive
        self._files = files
        self._numbers = {ino: number for number, (ino, _) in enumerate(files)}
        self._grammars = grammars
        self._num_threads = default_threads()
        with times.of("flatten"):
            words = _statistics.Corpus([grammar.native for grammar in grammars], files, 1)
            forest = _statistics.forest_of_corpus(words, 0, _ALL_FILES, True, self._num_threads)
        self._corpora = {1: words}
        self._frequencies: tuple[NDArray[np.uint32], int] | None = None
        needed = ResidentForest.bytes_of(forest)
        if needed > room:
            raise StatsUnavailableError(
                f"its words need {needed >> 20} MiB of GPU memory, and {room >> 20} MiB may be used for them"
            )
        if np.unique(forest.files).size != forest.files.size:
            raise StatsUnavailableError("it has a file in several pieces")
        with device:
            device.reserve(room)
            try:
                with times.of("upload", device):
                    self.forest = ResidentForest(device, forest, words.num_words, room - needed)
            except MemoryError:
                device.reserve(-room)
                raise
        for grammar in grammars:
            grammar.drop_parts()

    @classmethod
    def load(cls, archive: Archive, device: ArrayDevice, room: int, times: PhaseTimes) -> ResidentText:
        """Reads all grammars of an archive, and puts the forest of its files on a device.

        Raises StatsUnavailableError if the archive has text without a grammar, or the forest does not fit into `room`
        bytes, MemoryError, and the errors of reading.
        """
        if len(segments_with_grammars(archive)) != len(archive.segments):
            raise StatsUnavailableError("it has text without a grammar")
        grammars = load_grammars(archive)
        counted = archive.inode_numbers() & set().union(*(grammar.inos() for grammar in grammars))
        files = files_in_order({ino: path for ino, path in archive.paths().items() if ino in counted})
        return cls(archive, device, grammars, files, room, times)

    def release(self) -> None:
        """Frees the device memory, once no question uses it. Nothing can be asked afterwards."""
        with self.lock, self.device:
            if self.is_released:
                return
            self.is_released = True
            del self.forest
            self.device.reserve(-self.room)

    @property
    def num_words(self) -> int:
        """The number of different words."""
        return self._corpora[1].num_words

    def word(self, rank: int) -> bytes:
        """Returns a word by its number."""
        return self._corpora[1].word(rank)

    def ranks_of(self, words: Sequence[bytes]) -> list[int] | None:
        """Returns the numbers of words, or None if the archive has not all of them."""
        ranks = [self._corpora[1].rank_of(word) for word in words]
        return None if None in ranks else [rank for rank in ranks if rank is not None]

    def path_of(self, file: int) -> bytes:
        """Returns the path of a file, by its number, as a field of a line."""
        return self._files[file][1]

    def part(self, query: StatsQuery) -> ResidentPart:
        """Returns the files that a query counts."""
        if query.ino is None:
            return ResidentPart(self, np.arange(self.forest.num_files), self.forest.part_sizes)
        return self._of_file(query.ino)

    def _of_file(self, ino: int) -> ResidentPart:
        number = self._numbers.get(ino)
        nodes = np.zeros(0, np.int64) if number is None else self.forest.nodes_of(number)
        return ResidentPart(self, nodes, [(1, 1)] * nodes.size, is_one_file=True)

    def number_of(self, ino: int) -> int | None:
        """Returns the number of a file, or None if its text has no words."""
        return self._numbers.get(ino)

    def corpus(self, query: StatsQuery, ngram_length: int) -> _statistics.Corpus:
        """Returns the words, with the files that a query counts, for n-grams of a length. Raises ValueError."""
        if ngram_length not in self._corpora:
            self._corpora[ngram_length] = self._corpora[1].with_files(self._files, ngram_length)
        corpus = self._corpora[ngram_length]
        return corpus if query.ino is None else corpus.with_files([(query.ino, self.path_for(query))], ngram_length)

    def path_for(self, query: StatsQuery) -> bytes:
        """Returns the path to print for the only file of a query, as a field of a line."""
        assert query.ino is not None
        return escape_path(self._archive.path_of(query.ino) if query.path is None else query.path)

    def counter(self, times: PhaseTimes | None = None) -> DeviceCounter:
        """Returns a counter for questions."""
        return DeviceCounter(self.device, Traversal(num_threads=self._num_threads), times or self.times)

    def grammars_with_counts(self, counts: NDArray[np.uint64]) -> list[tuple[Grammar, NDArray[np.uint64]]]:
        """Returns the grammars, each with the counts of its words. A word of several grammars counts in the first."""
        if len(self._grammars) == 1:
            return [(self._grammars[0], counts)]
        left = counts.copy()
        shared = []
        for index, grammar in enumerate(self._grammars):
            ranks = self._corpora[1].ranks_of(index)
            shared.append((grammar, left[ranks]))
            left[ranks] = 0
        return shared

    def frequencies(self) -> tuple[NDArray[np.uint32], int]:
        """Returns in how many files each word is (uint32), and how many files have words. Computed once."""
        if self._frequencies is None:
            self._frequencies = self.counter().files_of_words(self.part(EVERYTHING), self.num_words)
        return self._frequencies


class ResidentPart:
    """See DeviceText: some files of a ResidentText."""

    def __init__(
        self,
        text: ResidentText,
        nodes: NDArray[np.int64],
        part_sizes: Sequence[tuple[int, int]],
        *,
        is_one_file: bool = False,
    ) -> None:
        """The files are given by their nodes. With `is_one_file`, its number becomes 0."""
        self.part_sizes = part_sizes
        self._text = text
        self._nodes = nodes
        self._is_one_file = is_one_file

    @property
    def is_resident(self) -> bool:
        """See DeviceText."""
        return True

    def forest(self, begin: int, end: int) -> DeviceForest:
        """See DeviceText."""
        return DeviceForest(self._select(begin, end))

    def words(self, begin: int, end: int, num_words: int) -> DeviceForest:
        """See DeviceText."""
        if end - begin == self._text.forest.num_files and not self._is_one_file:
            return self._text.forest.words
        return with_words(self.forest(begin, end), num_words, self._text.times)

    def _select(self, begin: int, end: int) -> FlatForest:
        with self._text.times.of("initialise", self._text.device):
            flat = self._text.forest.only(self._nodes[begin:end])
            if not self._is_one_file:
                return flat
            return flat.with_files(flat.device.xp.zeros(flat.num_files, np.uint32))
