"""A forest that stays in device memory, so that a question costs its traversal and its answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs.gpu.arrays import ArrayDevice
from gompfs.gpu.forest import DeviceForest, Ends, FlatForest
from gompfs.gpu.traversal import BottomUp, TopDown

MAX_PHRASE = 5
"""The maximum number of words of a phrase that the device finds: head and tail buffers have one word less."""
_BYTES_OF_AN_ELEMENT = 8  # an edge, or a word and its node


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

    def nodes_of(self, file: int) -> NDArray[np.int64]:
        """Returns the nodes of a file, by its number. There is none if its text has no words."""
        return np.flatnonzero(self._files == file)

    def only(self, nodes: NDArray[np.int64]) -> FlatForest:
        """Returns the forest of some files, given by their nodes, in the order of the nodes."""
        if nodes.size == self._flat.num_files:
            return self._flat
        return self._flat.only(TopDown(self.words).reach(self._device.upload(nodes)))

    def count_phrase(self, ranks: Sequence[int]) -> dict[int, int]:
        """Returns how often words in a row, given by their numbers, occur in each file that has them, by file number.

        There are 1 to MAX_PHRASE words.
        """
        device, xp, flat = self._device, self._device.xp, self._flat
        values = xp.zeros(flat.num_nodes, np.uint64)
        ends = self.words.kept("ends", lambda: flat.find_ends(MAX_PHRASE - 1)) if len(ranks) > 1 else _no_ends(device)
        phrase = device.upload(np.array(ranks, np.uint32))
        arguments = (flat.starts, flat.num_nodes, flat.elements, flat.num_elements, phrase, np.uint32(len(ranks)))
        device.launch("statistics/phrases", "count_phrase", flat.num_elements, *arguments, *ends.arguments, values)
        of_files = BottomUp(self.words).add_up(values)
        nodes = xp.flatnonzero(of_files)
        counts: dict[int, int] = {}
        for node, count in zip(device.download(nodes).tolist(), device.download(of_files[nodes]).tolist(), strict=True):
            file = int(self._files[node])
            counts[file] = counts.get(file, 0) + count
        return counts


def _no_ends(device: ArrayDevice) -> Ends:
    nothing = device.xp.empty(0, np.uint32)
    return Ends(MAX_PHRASE - 1, nothing, nothing, nothing)
