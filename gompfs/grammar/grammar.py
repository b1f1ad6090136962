"""A grammar read from an archive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gompfs._native import grammar as _grammar
from gompfs._native import statistics as _statistics
from gompfs.errors import ArchiveFormatError
from gompfs.threads import default_threads

SPLITTER = _grammar.SPLITTER
NO_RULES = "none"
"""The builder name of a grammar without rules: the root holds all words. It serves for counting and is never stored."""
BUILDER_KINDS = {kind.name.lower(): kind for kind in _grammar.BuilderKind}
"""The builders by name: GRAMMAR_BUILDERS, and NO_RULES."""
WORD_RULE_KINDS = {rule.name.lower(): rule for rule in _grammar.WordRule}
"""The word rules by name: WORD_RULES."""


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


@dataclass(frozen=True)
class TokenizedFiles:
    """Files whose text was cut into words: the words of file i are words[ends[i - 1] : ends[i]] (uint32).

    `continues` says that the first file began in the files before. `inos` and `ends` are uint64.
    """

    continues: bool
    inos: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    words: NDArray[np.uint32]


class Grammar:
    """The dictionary of a segment's text and the parts of its grammar. It is immutable, and checked when it is read."""

    def __init__(self, native: _grammar.Grammar) -> None:
        self.native = native

    @classmethod
    def from_bytes(cls, section: bytes | bytearray | memoryview) -> Grammar:
        """Reads a grammar section. Raises ArchiveFormatError if it is damaged."""
        try:
            native = _grammar.read_grammar(section, default_threads())
        except ValueError as error:
            raise _damaged(error) from None
        return cls(native)

    @classmethod
    def of_tokens(
        cls,
        dictionary: tuple[NDArray[np.uint64], NDArray[np.uint8]],
        word_rule: str,
        ranks: NDArray[np.uint32],
        batches: Iterable[TokenizedFiles] = (),
        num_threads: int = 0,
    ) -> Grammar:
        """Returns the grammar without rules of consecutive files.

        `dictionary` is (starts, bytes), in byte order: word i is bytes[starts[i] : starts[i + 1]]. The words in
        `batches` may be numbered in any order; `ranks` maps their numbers to words of the dictionary.
        """
        files = [(batch.continues, batch.inos, batch.ends, batch.words) for batch in batches]
        num_threads = num_threads or default_threads()
        return cls(_grammar.grammar_of_tokens(*dictionary, WORD_RULE_KINDS[word_rule], ranks, files, num_threads))

    @property
    def num_words(self) -> int:
        """The number of distinct words."""
        return self.native.num_words

    @property
    def builder(self) -> str:
        """The builder of this grammar: one of GRAMMAR_BUILDERS, or NO_RULES."""
        return self.native.builder.name.lower()

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

    def files(self) -> list[tuple[bool, NDArray[np.uint64], NDArray[np.uint64]]]:
        """Returns for each part: whether its first file began in the part before, its inodes, and their word counts."""
        return self.native.files(default_threads())

    @property
    def num_symbols(self) -> int:
        """The number of elements in all rules: words, rules and splitters."""
        return sum(num_symbols for _, num_symbols in self.native.part_sizes())

    def drop_parts(self) -> None:
        """Frees everything except the dictionary."""
        self.native.drop_parts()

    def words_have_separators(self) -> bool:
        """Returns whether any word contains an ASCII character that separates words. No text produces such a word."""
        return self.native.words_have_separators()

    def has_short_rules(self) -> bool:
        """Returns whether any rule other than the root of a part has fewer than two symbols.

        No builder makes such a rule.
        """
        return self.native.has_short_rules()

    def inos(self) -> set[int]:
        """Returns the inode numbers of all files in the grammar."""
        return {int(ino) for part in self.parts() for ino in part.inos}

    def word_counts(self, inos: Collection[int] | None = None, num_threads: int = 0) -> NDArray[np.uint64]:
        """Returns how often each word occurs in these files (None: all), as uint64 of shape (num_words,).

        Uses top-down traversal (TADOC section 4).
        """
        return _statistics.word_counts(self.native, ino_array(inos), num_threads or default_threads())


class CountedWords(NamedTuple):
    """The words of a grammar or of a grammar section, and how often each occurs: `counts` (uint64) by word number."""

    source: Grammar | _statistics.CountedSection
    counts: NDArray[np.uint64]

    @classmethod
    def from_section(
        cls,
        section: memoryview | bytes,
        inos: Collection[int] | NDArray[np.uint64] | None = None,
    ) -> CountedWords:
        """Counts the words while reading a section, which takes less time and memory than building a Grammar.

        The words stay as the section stores them. Raises ArchiveFormatError if the section is damaged.
        """
        try:
            counted = _statistics.CountedSection(section, ino_array(inos), default_threads())
        except ValueError as error:
            raise _damaged(error) from None
        return cls(counted, counted.counts)


def ino_array(inos: Collection[int] | NDArray[np.uint64] | None) -> NDArray[np.uint64] | None:
    """Returns inode numbers as the C++ core takes them (uint64); None stands for all files."""
    return inos if inos is None or isinstance(inos, np.ndarray) else np.fromiter(inos, np.uint64, len(inos))


def _damaged(error: ValueError) -> ArchiveFormatError:
    return ArchiveFormatError(f"the grammar section is damaged: {error}")
