"""The words of an archive in device memory, for many questions: the forest of all files, and tables of words and files.

A question is then answered without reading the archive, by a traversal of the forest. The words themselves and the
paths stay in host memory, where the lines are made.

Several devices have the forests of different files: runs of whole parts, of about the same size. If a file continues in
the next part, the run ends before that file. A rule belongs to one part, so few rules are on two devices. A question
about all files goes to all devices at once, and one about a file to the device that has it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs.errors import StatsUnavailableError
from gompfs.gpu.device.arrays import Array
from gompfs.gpu.device.spread import cut_evenly, run_together
from gompfs.statistics.content import text_outside_parts
from gompfs.statistics.content_words import content_grammars
from gompfs.statistics.gpu.device_counter import DeviceCounter, with_words
from gompfs.statistics.gpu.device_rows import DeviceRows, settle_all
from gompfs.statistics.gpu.forest import DeviceForest
from gompfs.statistics.gpu.resident_forest import ResidentForest
from gompfs.statistics.grammar_cache import load_grammars, segments_with_grammars
from gompfs.statistics.paths import escape_path, files_in_order
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gompfs.archive import Archive
    from gompfs.gpu.device.arrays import ArrayDevice
    from gompfs.statistics.query import StatsQuery
    from gompfs.text.grammar import Grammar

_Result = TypeVar("_Result")

_ALL_FILES = 1 << 62


class ResidentShare:
    """The words that are on one device."""

    def __init__(
        self, device: ArrayDevice, forest: _statistics.Forest, num_words: int, room: int, times: PhaseTimes
    ) -> None:
        """Uploads a forest, whose words are below `num_words`. At most `room` bytes stay on the device.

        Raises StatsUnavailableError if they are too few, and MemoryError.
        """
        self.device = device
        self._room = room
        self._held: WeakSet[DeviceRows] = WeakSet()
        needed = ResidentForest.bytes_of(forest)
        if needed > room:
            raise StatsUnavailableError(
                f"its words need {needed >> 20} MiB of GPU memory, and {room >> 20} MiB may be used for them"
            )
        with device:
            device.reserve(room)
            try:
                with times.of("upload", device):
                    self.forest = ResidentForest(device, forest, num_words, room - needed)
            except MemoryError:
                device.reserve(-room)
                raise

    def kept(self, name: str, make: Callable[[], NDArray[Any]]) -> Array:
        """Returns a copy on the device of the array that `make` returns, and keeps it if there is room.

        `make` must always return the same array. Call this inside of `with device:`.
        """
        return self.forest.words.kept_array(name, lambda: self.device.upload(make()))

    def memory(self) -> int:
        """Returns the bytes of device memory that a question may use; the free part of resident memory counts too.

        If answers that are still read take more than a quarter of it, moves them to temporary files.
        """
        memory = self.device.memory + (self.forest.words.room or 0)
        held = sum(rows.num_bytes for rows in self._held)
        if held <= memory // 4:
            return memory - held
        settle_all(list(self._held))
        return memory

    def hold(self, rows: Sequence[DeviceRows]) -> Sequence[DeviceRows]:
        """Returns rows of an answer, which may use this memory until they are dropped or `release` is called."""
        self._held.update(rows)
        return rows

    def release(self) -> None:
        """Frees the device memory. Answers that are still read go to temporary files."""
        settle_all(list(self._held))
        with self.device:
            del self.forest
            self.device.reserve(-self._room)


class ResidentText:
    """See above. Made by `load`. One thread may ask at a time; it holds `lock`, and checks `is_released`."""

    def __init__(
        self,
        archive: Archive,
        devices: Sequence[ArrayDevice],
        grammars: Sequence[Grammar],
        files: Sequence[tuple[int, bytes]],
        room: int,
        times: PhaseTimes,
    ) -> None:
        """Uploads the forest of `files`, pairs of inode number and path as Corpus takes them, and frees the parts.

        At most `room` bytes stay on each device. Raises StatsUnavailableError if they are too few, and MemoryError.
        """
        self.lock = threading.Lock()
        self.is_released = False
        self.times = times
        self.room = room
        self.device_names = ", ".join(device.name for device in devices)
        self._archive = archive
        self._files = files
        self._numbers = {ino: number for number, (ino, _) in enumerate(files)}
        self._grammars = grammars
        self._num_threads = default_threads()
        with times.of("flatten"):
            words = _statistics.Corpus([grammar.native for grammar in grammars], files, 1)
            forests = [
                _statistics.forest_of_corpus(words, begin, end, True, self._num_threads)
                for begin, end in self._file_ranges(words, len(devices))
            ]
        self._corpora = {1: words}
        self._frequencies: tuple[NDArray[np.uint32], int] | None = None
        numbers = np.concatenate([forest.files for forest in forests])
        if np.unique(numbers).size != numbers.size:
            raise StatsUnavailableError("it has a file in several pieces")
        self.shares: list[ResidentShare] = []
        """The words on each device."""
        try:
            for device, forest in zip(devices, forests, strict=True):
                self.shares.append(ResidentShare(device, forest, words.num_words, room, times))
        except BaseException:
            self._release_shares()
            raise
        for grammar in grammars:
            grammar.drop_parts()

    def _file_ranges(self, words: _statistics.Corpus, count: int) -> list[tuple[int, int]]:
        """Returns the files of each device, counted over the files of all parts. No file is on two devices."""
        if count == 1:
            return [(0, _ALL_FILES)]
        of_parts = [size for grammar in self._grammars for size in grammar.native.part_sizes()]
        sizes = np.array(of_parts, np.int64).reshape(-1, 2)
        firsts = np.concatenate([[0], np.cumsum(sizes[:, 0])]).tolist()  # by part: its first file

        def is_continued(file: int) -> bool:
            """Returns whether a file, counted like this, continues the one before: the last one of another part."""
            both = words, file - 1, file + 1
            joined, apart = (_statistics.forest_of_corpus(*both, join, self._num_threads) for join in (True, False))
            return joined.files.size != apart.files.size

        cuts = [0]
        for run in cut_evenly(sizes[:, 1], count)[1:]:
            cut = firsts[run.start]
            while cut > cuts[-1] and is_continued(cut):
                cut -= 1
            cuts.append(max(cut, cuts[-1]))
        return list(zip(cuts, [*cuts[1:], _ALL_FILES], strict=True))

    @classmethod
    def load(cls, archive: Archive, devices: Sequence[ArrayDevice], room: int, times: PhaseTimes) -> ResidentText:
        """Reads all grammars of an archive, and puts the forest of its files on devices.

        Raises StatsUnavailableError if the archive has a segment without a grammar, or a forest does not fit into
        `room` bytes of its device, MemoryError, and the errors of reading.
        """
        if len(segments_with_grammars(archive)) != len(archive.segments):
            raise StatsUnavailableError("it has text without a grammar")
        grammars = load_grammars(archive)
        grammars += content_grammars(text_outside_parts(archive, archive.inode_numbers()))
        counted = archive.inode_numbers() & set().union(*(grammar.inos() for grammar in grammars))
        files = files_in_order({ino: path for ino, path in archive.paths().items() if ino in counted})
        return cls(archive, devices, grammars, files, room, times)

    def release(self) -> None:
        """Frees the device memory, once no question uses it. Nothing can be asked afterwards."""
        with self.lock:
            if not self.is_released:
                self.is_released = True
                self._release_shares()

    def _release_shares(self) -> None:
        while self.shares:
            self.shares.pop().release()

    @property
    def num_bytes(self) -> int:
        """The device memory that is in use between questions, in bytes, on all devices."""
        return sum(share.forest.num_bytes for share in self.shares)

    def describe(self) -> str:
        """Says how many words are where, as text for users."""
        num_symbols = sum(share.forest.num_symbols for share in self.shares)
        num_files = sum(share.forest.num_files for share in self.shares)
        room = self.room * len(self.shares)
        return (
            f"{num_symbols} symbols of {num_files} files stay on {self.device_names}, "
            f"in {self.num_bytes >> 20} of {room >> 20} MiB"
        )

    @property
    def num_words(self) -> int:
        """The number of different words."""
        return self._corpora[1].num_words

    def ranks_of(self, words: Sequence[bytes]) -> list[int] | None:
        """Returns the numbers of words, or None if the archive has not all of them."""
        ranks = [self._corpora[1].rank_of(word) for word in words]
        return None if None in ranks else [rank for rank in ranks if rank is not None]

    def count(self, count: Callable[[DeviceCounter, ResidentPart], _Result]) -> list[_Result]:
        """Returns what `count` returns for all files, by device. One file is on one device."""
        how = Traversal(num_threads=self._num_threads)
        parts = [ResidentPart(share, self.times) for share in self.shares]
        counters = [DeviceCounter(part.device, how, self.times, part.share.memory()) for part in parts]
        return run_together([partial(count, *each) for each in zip(counters, parts, strict=True)])

    def path_of(self, ino: int) -> bytes:
        """Returns the path of a file in statistics of all files, as a field of a line. Its text must have words."""
        return self._files[self._numbers[ino]][1]

    def find_file(self, ino: int) -> tuple[ResidentShare, int] | None:
        """Returns where a file is, and its node there, or None if its text has no words."""
        number = self._numbers.get(ino)
        if number is None:
            return None
        nodes = ((share, share.forest.node_of(number)) for share in self.shares)
        return next(((share, node) for share, node in nodes if node is not None), None)

    def corpus(self, ngram_length: int) -> _statistics.Corpus:
        """Returns the words with all files, for n-grams of a length. Raises ValueError."""
        if ngram_length not in self._corpora:
            self._corpora[ngram_length] = self._corpora[1].with_files(self._files, ngram_length)
        return self._corpora[ngram_length]

    def corpus_of(self, query: StatsQuery, ngram_length: int) -> _statistics.Corpus:
        """Returns the same with the only file of a query, whose number is then 0. Raises ValueError."""
        assert query.ino is not None
        return self.corpus(ngram_length).with_files([(query.ino, self.path_for(query))], ngram_length)

    def path_sizes(self) -> NDArray[np.uint32]:
        """Returns the size of the path of each file in bytes, by its number."""
        return np.array([len(path) for _, path in self._files], np.uint32)

    def path_for(self, query: StatsQuery) -> bytes:
        """Returns the path to print for the only file of a query, as a field of a line."""
        assert query.ino is not None
        return escape_path(self._archive.path_of(query.ino) if query.path is None else query.path)

    def frequencies(self) -> tuple[NDArray[np.uint32], int]:
        """Returns in how many files each word is (uint32), and how many files have words. Computed once."""
        if self._frequencies is None:
            counted = self.count(lambda counter, part: counter.files_of_words(part, self.num_words))
            self._frequencies = add_arrays(files for files, _ in counted), sum(num_files for _, num_files in counted)
        return self._frequencies


def add_arrays(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Returns the sum of arrays of one shape, of which there is at least one."""
    return reduce(np.add, arrays)


class ResidentPart:
    """See DeviceText: the files of a ResidentShare."""

    def __init__(self, share: ResidentShare, times: PhaseTimes) -> None:
        self.part_sizes: Sequence[tuple[int, int]] = share.forest.part_sizes
        self.device = share.device
        self.share = share
        self._times = times

    def forest(self, begin: int, end: int) -> DeviceForest:
        """See DeviceText."""
        with self._times.of("initialise", self.device):
            return DeviceForest(self.share.forest.only(begin, end))

    def words(self, begin: int, end: int, num_words: int) -> DeviceForest:
        """See DeviceText."""
        if end - begin == self.share.forest.num_files:
            return self.share.forest.words
        return with_words(self.forest(begin, end), num_words, self._times)
