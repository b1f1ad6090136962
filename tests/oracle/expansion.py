"""Expansions of the symbols of a part, and how they are concatenated (docs/format.md).

A word expands to its bytes and a space. If a separator or the end of a file follows, the space is taken away again. So
a single space between two words needs no symbol.
"""

from __future__ import annotations

from oracle.constants import MAX_EXPANSION_SIZE
from oracle.sequences import PayloadError
from oracle.words import SPACE


class Expansions:
    """What each symbol of a part stands for, by symbol number. The pool is all expansions in a row."""

    def __init__(self, pool_size: int) -> None:
        self.contents: list[bytes] = []
        self.begins_with_separator: list[bool] = []
        self.ends_with_word: list[bool] = []
        self._bytes_left = pool_size

    def add_splitter(self) -> None:
        """Adds the end of a file, which stands for no bytes."""
        self._add(b"", begins_with_separator=True, ends_with_word=False)

    def add_word(self, word: bytes) -> None:
        """Adds a word."""
        self._add(word + SPACE, begins_with_separator=False, ends_with_word=True)

    def add_separator(self, separator: bytes) -> None:
        """Adds a separator."""
        self._add(separator, begins_with_separator=True, ends_with_word=False)

    def add_rule(self, symbols: list[int]) -> None:
        """Adds a rule of symbols that were added before."""
        content = bytearray()
        previous = None
        for symbol in symbols:
            self.take_space(content, previous, symbol)
            content += self.contents[symbol]
            self._check_size(len(content))  # here, so that a rule of many symbols cannot use much memory
            previous = symbol
        first, last = symbols[0], symbols[-1]
        self._add(
            bytes(content),
            begins_with_separator=self.begins_with_separator[first],
            ends_with_word=self.ends_with_word[last],
        )

    def take_space(self, output: bytearray, previous: int | None, symbol: int) -> None:
        """Removes the last byte of `output` if it is the space of a word and `symbol` begins with a separator.

        `previous` is the symbol that was appended to `output` before, or None if there is none.
        """
        if previous is not None and self.ends_with_word[previous] and self.begins_with_separator[symbol]:
            del output[-len(SPACE) :]

    def check_pool(self) -> None:
        """Raises PayloadError unless the expansions have together the size that the constructor got."""
        if self._bytes_left != 0:
            raise PayloadError("the expansions are shorter than the pool")

    def _add(self, content: bytes, *, begins_with_separator: bool, ends_with_word: bool) -> None:
        self._check_size(len(content))
        self._bytes_left -= len(content)
        self.contents.append(content)
        self.begins_with_separator.append(begins_with_separator)
        self.ends_with_word.append(ends_with_word)

    def _check_size(self, size: int) -> None:
        if size > MAX_EXPANSION_SIZE:
            raise PayloadError("the expansion of a symbol is too long")
        if size > self._bytes_left:
            raise PayloadError("the expansions are longer than the pool")
