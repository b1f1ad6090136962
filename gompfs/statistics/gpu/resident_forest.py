"""A forest that stays in device memory, so that a question costs its traversal and its answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.statistics.gpu.forest import DeviceForest, Elements, Ends, FlatForest, find_ngrams, number_keys
from gompfs.statistics.gpu.traversal import BottomUp, TopDown, add_along

MAX_PHRASE = 5
"""The maximum number of words of a phrase that the device finds: head and tail buffers have one word less."""
_BYTES_OF_AN_ELEMENT = 8  # an edge, or a word and its node
Terms = tuple[tuple[Array, ...], Array]
"""Numbers, as halves of 64 bits with the highest first, which ascend; and how often each occurs (all uint64)."""


class ResidentForest:
    """A forest in device memory, with its edges and the words of its nodes. Use it inside of `with device:` only.

    The first question that needs edges sorted for one direction, or head and tail buffers, makes them. They stay if
    there is room for them.
    """

    def __init__(self, device: ArrayDevice, forest: _statistics.Forest, num_words: int, room: int) -> None:
        """Uploads a forest, whose words are below `num_words`. `room` is what may stay beside `bytes_of` this forest.

        Raises MemoryError.
        """
        self._device = device
        self.bytes_of_words = self.bytes_of(forest)
        """The bytes that always stay."""
        self._limit = self.bytes_of_words + room
        self._flat = FlatForest.upload(device, forest)
        self._files = forest.files.copy()
        self._order = np.argsort(self._files)
        self.words = DeviceForest(self._flat, room)
        """The whole forest; its terms are words."""
        self.words.use_words(num_words)
        self.part_sizes = list(zip(forest.part_files.tolist(), forest.part_elements.tolist(), strict=True))
        """By part of the text: the files that begin in it, and the elements of its nodes."""

    @staticmethod
    def bytes_of(forest: _statistics.Forest) -> int:
        """Returns the bytes of device memory that always stay for a forest."""
        return FlatForest.bytes_of(forest) + _BYTES_OF_AN_ELEMENT * int(forest.elements.size)

    @property
    def num_bytes(self) -> int:
        """The device memory that is in use between questions, in bytes."""
        return self._limit - (self.words.room or 0)

    @property
    def num_files(self) -> int:
        """The number of files. They are the first nodes."""
        return self._flat.num_files

    @property
    def num_symbols(self) -> int:
        """The number of elements of all nodes."""
        return self._flat.num_elements

    def node_of(self, file: int) -> int | None:
        """Returns the node of a file, by its number, or None if its text has no words or is not in this forest."""
        at = int(np.searchsorted(self._files, file, sorter=self._order))
        if at == self._order.size or self._files[self._order[at]] != file:
            return None
        return int(self._order[at])

    def only(self, begin: int, end: int) -> FlatForest:
        """Returns the forest of the files whose nodes are `begin` to `end` - 1."""
        if end - begin == self._flat.num_files:
            return self._flat
        return self._flat.only(TopDown(self.words).reach(begin, end))

    def words_in(self, file: int) -> Terms:
        """Returns the words of a file, given by its node."""
        top_down = TopDown(self.words)
        counts = top_down.of_terms(top_down.weights(file, file + 1))
        words = self._device.xp.flatnonzero(counts)
        return (words.astype(np.uint64),), counts[words]

    def ngrams_in(self, file: int, ngram_length: int, bits: int, inner_ranks: NDArray[np.uint32]) -> Terms:
        """Returns the n-grams of a file, given by its node, with keys as find_ngrams returns them.

        Only the nodes that the file uses are read. `inner_ranks` is on the host, and always the same.
        """
        device, xp = self._device, self._device.xp
        weights = TopDown(self.words).weights(file, file + 1)
        used = xp.flatnonzero(weights)
        ranks = self.words.kept_array("inner ranks", lambda: device.upload(inner_ranks)) if inner_ranks.size else None
        halves, nodes = find_ngrams(*self._with_ends(used, weights, ngram_length - 1), bits, ranks)
        numbers, keys = number_keys(device, halves)
        counts = xp.zeros(keys[0].size, np.uint64)
        add_along(device, nodes, numbers, weights[used], counts)
        return keys, counts

    def _with_ends(self, used: Array, weights: Array, capacity: int) -> tuple[Elements, Ends]:
        """Returns the elements of the nodes that a file uses, and the ends of rules: if there is room, of all rules."""
        flat, name = self._flat, f"ends of {capacity} words"
        if self.words.may_keep(name, Ends.bytes_of(flat.num_nodes, capacity)):
            return flat.elements_of(used), self.words.kept(name, lambda: flat.find_ends(capacity))
        part = flat.only(weights > 0)
        return part.all_elements(), part.find_ends(capacity)

    def count_phrase(self, ranks: Sequence[int]) -> Array:
        """Returns how often words in a row, given by their numbers, occur in each file, by node (uint64).

        There are 1 to MAX_PHRASE words.
        """
        device, flat, capacity = self._device, self._flat, MAX_PHRASE - 1
        values = device.xp.zeros(flat.num_nodes, np.uint64)
        ends = _no_ends(device)
        if len(ranks) > 1:
            ends = self.words.kept(f"ends of {capacity} words", lambda: flat.find_ends(capacity))
        phrase = device.upload(np.array(ranks, np.uint32))
        arguments = (flat.starts, flat.num_nodes, flat.elements, flat.num_elements, phrase, np.uint32(len(ranks)))
        device.launch("statistics/phrases", "count_phrase", flat.num_elements, *arguments, *ends.arguments, values)
        return BottomUp(self.words).add_up(values)

    def files_with(self, ranks: Sequence[int]) -> Terms:
        """Returns the numbers of the files in which words occur in a row. See count_phrase."""
        of_files = self.count_phrase(ranks)
        nodes = self._device.xp.flatnonzero(of_files)
        files = self._flat.files[nodes]
        order = self._device.xp.argsort(files)
        return (files[order].astype(np.uint64),), of_files[nodes][order]


def _no_ends(device: ArrayDevice) -> Ends:
    nothing = device.xp.empty(0, np.uint32)
    return Ends(MAX_PHRASE - 1, nothing, nothing, nothing)
