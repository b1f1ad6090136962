"""Heads of parts as an archive stores them, for engines that open heads themselves."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from gompfs.codec.block import BlockStatus, Buffer
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy is imported for types only
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from gompfs._native.text import SymbolTable

    Tokens: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint8]]
    """The words and separators of a section `words`, see PartHeads.words."""

# symbols that the C++ core has opened have positive numbers
_numbers = itertools.count(-1, -1)


class StoredWords:
    """The section `words` of a segment."""

    def __init__(self, read: Callable[[], Tokens]) -> None:
        """`read` returns the words and separators."""
        self.read = read
        self.number = next(_numbers)
        """A number that this process never gives to other words, heads or symbols."""


class StoredHead:
    """The head of a part, which has not been opened yet."""

    def __init__(
        self,
        read: Callable[[], Buffer],
        words: StoredWords,
        open_on_host: Callable[[], tuple[SymbolTable | None, BlockStatus]],
    ) -> None:
        """`read` returns the bytes of the head, not checked. `words` are those of its segment.

        `open_on_host` returns the symbols and the status of the head; there are none if it is damaged.
        """
        self.read = read
        self.words = words
        self.open_on_host = open_on_host
        self.number = next(_numbers)
        """A number that no other heads, words or symbols of this process have or had."""
