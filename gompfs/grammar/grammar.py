"""A grammar as it is read from an archive."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gompfs import _grammar
from gompfs.errors import ArchiveFormatError
from gompfs.model import GRAMMAR_BUILDERS

SPLITTER = _grammar.SPLITTER
NO_RULES = "none"
"""The kind of a grammar whose root alone holds all words; it is made for counting and not stored."""
KINDS = (*GRAMMAR_BUILDERS, NO_RULES)


@dataclass(frozen=True)
class GrammarPart:
    """The grammar of some files in a row (TADOC section 3); its rules form a DAG.

    `words` (uint32) leads from the part's word numbers to the dictionary. Rule r holds `symbols[rule_starts[r]
    : rule_starts[r + 1]]` (uint32): a word number, or len(words) + the number of a rule, always a higher one.
    Rule 0 is the root; it alone holds SPLITTER, behind each of the files whose numbers are `inos` (uint64).
    `continues` says that the first file began in the part before; `num_tokens` counts its words.
    """

    continues: bool
    num_tokens: int
    inos: NDArray[np.uint64]
    words: NDArray[np.uint32]
    rule_starts: NDArray[np.uint64]
    symbols: NDArray[np.uint32]

    @property
    def num_rules(self) -> int:
        """Rules, the root included."""
        return len(self.rule_starts) - 1


@dataclass(frozen=True)
class TokenizedFiles:
    """Files whose text was cut into words: those of file i are `words` (uint32) up to ends[i], behind the file before.

    `continues` says that the first file began in the files before. `inos` and `ends` are uint64.
    """

    continues: bool
    inos: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    words: NDArray[np.uint32]


class Grammar:
    """The dictionary of a segment's text and the parts of its grammar; immutable and checked as a whole."""

    def __init__(self, native: _grammar.Grammar) -> None:
        self.native = native

    @classmethod
    def from_bytes(cls, section: bytes | bytearray | memoryview) -> Grammar:
        """Read a grammar section; raises ArchiveFormatError for one that is damaged."""
        try:
            return cls(_grammar.read_grammar(section, len(os.sched_getaffinity(0))))
        except ValueError as error:
            raise _damaged(error) from None

    @classmethod
    def of_tokens(
        cls,
        dictionary: tuple[NDArray[np.uint64], NDArray[np.uint8]],
        word_rule: str,
        ranks: NDArray[np.uint32],
        batches: Iterable[TokenizedFiles] = (),
        num_threads: int = 0,
    ) -> Grammar:
        """The grammar without rules of files in a row. Word i of the dictionary is bytes[starts[i] : starts[i + 1]].

        The words of files are numbered in any way: `ranks` leads from there to the dictionary, which is in byte order.
        """
        files = [(batch.continues, batch.inos, batch.ends, batch.words) for batch in batches]
        num_threads = num_threads or len(os.sched_getaffinity(0))
        return cls(_grammar.grammar_of_tokens(*dictionary, word_rule == "letters", ranks, files, num_threads))

    @property
    def num_words(self) -> int:
        """Different words."""
        return self.native.num_words

    @property
    def builder(self) -> str:
        """The builder that made it, one of GRAMMAR_BUILDERS or NO_RULES."""
        return KINDS[self.native.builder]

    @property
    def num_bytes(self) -> int:
        """Its size in memory."""
        return self.native.num_bytes

    @property
    def word_rule(self) -> str:
        """What a word is, one of WORD_RULES."""
        return "letters" if self.native.words_of_characters else "whitespace"

    def word(self, number: int) -> bytes:
        """A word by its place in byte order; raises IndexError."""
        return self.native.word(number)

    def parts(self) -> Iterator[GrammarPart]:
        """The parts in order, as copies."""
        for index in range(self.native.num_parts):
            yield GrammarPart(*self.native.part(index))

    def files(self) -> list[tuple[bool, NDArray[np.uint64], NDArray[np.uint64]]]:
        """Of each part: whether its first file began in the part before, its inodes, how many words each has."""
        return self.native.files(len(os.sched_getaffinity(0)))

    @property
    def num_symbols(self) -> int:
        """Elements of all rules: words, rules and splitters."""
        return sum(num_symbols for _, num_symbols in self.native.part_sizes())

    def drop_parts(self) -> None:
        """Forget all but the dictionary."""
        self.native.drop_parts()

    def words_have_whitespace(self) -> bool:
        """Whether any word has whitespace in it, which no text gives."""
        return self.native.words_have_whitespace()

    def has_short_rules(self) -> bool:
        """Whether a rule other than the root of a part has fewer than two symbols, which no builder makes."""
        return self.native.has_short_rules()

    def inos(self) -> set[int]:
        """The inode numbers of all files that it holds."""
        return {int(ino) for part in self.parts() for ino in part.inos}

    def word_counts(self, inos: Collection[int] | None = None, num_threads: int = 0) -> NDArray[np.uint64]:
        """How often each word occurs, shape (num_words,), by top-down traversal; in these files, None for all."""
        return self.native.word_counts(ino_array(inos), num_threads or len(os.sched_getaffinity(0)))


class CountedWords(NamedTuple):
    """The words of a grammar, or of a section, and how often each occurs: `counts` (uint64) of shape (num_words,)."""

    source: Grammar | _grammar.CountedSection
    counts: NDArray[np.uint64]

    @classmethod
    def from_section(
        cls, section: memoryview | bytes, inos: Collection[int] | NDArray[np.uint64] | None = None
    ) -> CountedWords:
        """Count while reading, which needs less time and memory; the words stay as the section stores them.

        Raises ArchiveFormatError for a damaged section.
        """
        try:
            counted = _grammar.CountedSection(section, ino_array(inos), len(os.sched_getaffinity(0)))
        except ValueError as error:
            raise _damaged(error) from None
        return cls(counted, counted.counts)


def ino_array(inos: Collection[int] | NDArray[np.uint64] | None) -> NDArray[np.uint64] | None:
    """Inode numbers as the C++ core takes them; None for all files."""
    return inos if inos is None or isinstance(inos, np.ndarray) else np.fromiter(inos, np.uint64, len(inos))


def _damaged(error: ValueError) -> ArchiveFormatError:
    return ArchiveFormatError(f"the grammar section is damaged: {error}")
