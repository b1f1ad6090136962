"""The words of text in memory, as a grammar."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs._native import text as _text
from gompfs.threads import default_threads

SPLITTER = _text.SPLITTER


@dataclass(frozen=True)
class GrammarPart:
    """The grammar of some consecutive files (TADOC section 3). Its rules form a DAG.

    `words` (uint32) maps the word numbers of the part to words of the dictionary. Rule r is `symbols[rule_starts[r] :
    rule_starts[r + 1]]` (uint32). A symbol is a word number, or len(words) + the number of a rule, which is always
    higher than the number of the rule that uses it.

    Rule 0 is the root. Only the root contains SPLITTER, once after each file. `inos` (uint64) holds the inode numbers
    of these files. `continues` says that the first file began in the part before. `num_tokens` is the number of words
    in the text of the part.
    """

    continues: bool
    num_tokens: int
    inos: NDArray[np.uint64]
    words: NDArray[np.uint32]
    rule_starts: NDArray[np.uint64]
    symbols: NDArray[np.uint32]

    @property
    def num_rules(self) -> int:
        """The number of rules, including the root."""
        return len(self.rule_starts) - 1


class Grammar:
    """The dictionary of some text and the parts of its grammar."""

    def __init__(self, native: _text.Grammar) -> None:
        self.native = native

    @property
    def num_words(self) -> int:
        """The number of distinct words."""
        return self.native.num_words

    @property
    def num_bytes(self) -> int:
        """The size in memory, in bytes."""
        return self.native.num_bytes

    @property
    def word_rule(self) -> str:
        """The rule that says what a word is: one of WORD_RULES."""
        return self.native.word_rule.name.lower()

    def word(self, number: int) -> bytes:
        """Returns word `number` of the dictionary, which is in byte order. Raises IndexError."""
        return self.native.word(number)

    def parts(self) -> Iterator[GrammarPart]:
        """Yields copies of the parts, in order."""
        for index in range(self.native.num_parts):
            yield GrammarPart(*self.native.part(index))

    @property
    def num_symbols(self) -> int:
        """The number of elements in all rules: words, rules and splitters."""
        return sum(num_symbols for _, num_symbols in self.native.part_sizes())

    def drop_parts(self) -> None:
        """Frees everything except the dictionary."""
        self.native.drop_parts()

    def inos(self) -> set[int]:
        """Returns the inode numbers of all files in the grammar."""
        return set(self.native.inos().tolist())

    def word_counts(self, inos: Collection[int] | None = None, num_threads: int = 0) -> NDArray[np.uint64]:
        """Returns how often each word occurs in these files (None: all), as uint64 of shape (num_words,).

        Uses top-down traversal (TADOC section 4).
        """
        return _statistics.word_counts(self.native, ino_array(inos), num_threads or default_threads())


class CountedWords(NamedTuple):
    """A grammar, and how often each of its words occurs: `counts` (uint64) by word number."""

    grammar: Grammar
    counts: NDArray[np.uint64]


def ino_array(inos: Collection[int] | NDArray[np.uint64] | None) -> NDArray[np.uint64] | None:
    """Returns inode numbers as the C++ core takes them (uint64); None stands for all files."""
    return inos if inos is None or isinstance(inos, np.ndarray) else np.fromiter(inos, np.uint64, len(inos))
