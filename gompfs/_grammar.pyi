"""Native word grammars (kernels/cpu/grammar). Buffers are contiguous bytes-like objects; the GIL is released."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

SPLITTER: int

class GrammarBuilder:
    """Builds one grammar section, or takes text without rules; no two of its methods may run at once."""

    def __init__(
        self, builder: int, word_characters: bytes, num_threads: int, elsewhere: bool = False
    ) -> None: ...
    def add_files(self, files: Sequence[tuple[int, Buffer]]) -> None: ...
    def begin_file(self, ino: int) -> None: ...
    def add_bytes(self, piece: Buffer) -> None: ...
    def end_file(self) -> None: ...
    def take_texts(
        self, least: int, most: int, allocate: Callable[[int], memoryview], num_threads: int
    ) -> tuple[list[int], memoryview, NDArray[np.uint32], NDArray[np.uint32]] | None:
        """Of parts that are to be built elsewhere: their numbers, then what PartsInText has.

        The text is in memory that `allocate` gives for its size.
        """

    def give_rules(
        self,
        numbers: Sequence[int],
        word_bytes: NDArray[np.uint8],
        word_ends: NDArray[np.uint32],
        part_words: NDArray[np.uint32],
        symbols: NDArray[np.uint32],
        rule_ends: NDArray[np.uint32],
        part_rules: NDArray[np.uint32],
    ) -> None:
        """What became of the parts with these numbers, as in PartsInRules; ValueError where it makes no sense."""

    def finish(self) -> None: ...
    def next_piece(self) -> NDArray[np.uint8] | None: ...
    def take(self) -> Grammar: ...

class Forest:
    """See kernels/cpu/grammar/forest.h. `starts` is uint64, the others uint32; all are read-only."""

    files: NDArray[np.uint32]
    starts: NDArray[np.uint64]
    elements: NDArray[np.uint32]
    depths: NDArray[np.uint32]
    heights: NDArray[np.uint32]

class Corpus:
    """The grammars of all segments as one text, for n-grams of `n` words; `files` are pairs of inode and path.

    Raises ValueError where there are too many words for n-grams of that length.
    """

    bits: int
    num_words: int
    inner_ranks: NDArray[np.uint32]
    def __init__(self, grammars: Sequence[Grammar], files: Sequence[tuple[int, bytes]], n: int) -> None: ...
    def find_ngram(self, words: list[bytes], num_threads: int) -> list[tuple[int, int]]:
        """The files (places in `files`) that have these n words in a row, with counts. Raises ValueError."""

    def forest(self, begin: int, end: int, num_threads: int) -> Forest:
        """The forest of the files from place `begin` to `end`, counted over the files of all parts of all grammars."""

class Postings:
    """How often n-grams occur in files; `limit` bytes at most, the first in memory, more in a file in `directory`."""

    def __init__(self, directory: str, in_memory: int, limit: int) -> None: ...
    def gather(self, corpus: Corpus, per_file: bool, traversal: tuple[bool, int, int]) -> None:
        """Count on the CPU; `traversal` is (sequential, direction, number of threads).

        Raises ValueError beyond the limit, OSError.
        """

    def gather_over_edges(self, corpus: Corpus, per_file: bool, num_threads: int) -> None:
        """Count the n-grams that reach over parts, which `add` was not told of. Raises what gather raises."""

    def add(self, keys: NDArray[np.uint64], postings: NDArray[np.uint64]) -> None:
        """Add a run: its different keys, ascending, as rows (low half, high half), and its postings.

        Postings are rows (place of the key | file << 32, count) in the order of key and file, each of both once; files
        are numbered as in the corpus, or 0. The numbers are trusted. Raises what gather raises.
        """

class Grammar:
    """A checked grammar section, or one of text that has no rules."""

    words_of_characters: bool
    builder: int
    num_bytes: int
    num_words: int
    num_parts: int
    def word(self, number: int) -> bytes: ...
    def part(
        self, index: int
    ) -> tuple[bool, int, NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]]: ...
    def files(self, num_threads: int) -> list[tuple[bool, NDArray[np.uint64], NDArray[np.uint64]]]:
        """Of each part: does its first file go on from the part before; its inodes, and how many words each has."""

    def drop_parts(self) -> None: ...
    def part_sizes(self) -> list[tuple[int, int]]:
        """Of each part: how many files and how many symbols it has."""

    def forest(self, inos: NDArray[np.uint64] | None, begin: int, end: int, num_threads: int) -> Forest:
        """See Corpus.forest; words are numbered by their places in the dictionary, and all files are number 0."""

    def words_have_whitespace(self) -> bool: ...
    def has_short_rules(self) -> bool:
        """Whether a rule other than a root has fewer than two symbols."""

    def word_counts(self, inos: NDArray[np.uint64] | None, num_threads: int) -> NDArray[np.uint64]:
        """How often each word occurs in these files, None for all."""

def read_grammar(section: Buffer, num_threads: int) -> Grammar:
    """Raises ValueError, naming what is wrong."""

def grammar_of_tokens(
    starts: NDArray[np.uint64],
    content: NDArray[np.uint8],
    words_of_characters: bool,
    ranks: NDArray[np.uint32],
    batches: list[tuple[bool, NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]],
    num_threads: int,
) -> Grammar:
    """See Grammar.of_tokens; raises ValueError where the numbers contradict each other."""

class CountedSection:
    """The words of a section, as it stores them, and their counts; raises what read_grammar raises."""

    def __init__(self, section: Buffer, inos: NDArray[np.uint64] | None, num_threads: int) -> None: ...
    counts: NDArray[np.uint64]

class Report:
    """A text in pieces; `size` in bytes, where it is known."""

    size: int | None
    def pieces(self, first: int, count: int, num_threads: int) -> list[bytes]:
        """Some of the pieces, or those there are of them; the first one alone may take much less time."""

class TextCheck:
    """Compares files with a grammar, word by word; without a grammar, they should have no words."""

    def __init__(self, grammar: Grammar | None, word_characters: bytes) -> None: ...
    def begin(self, pieces: Sequence[tuple[int, int]]) -> None:
        """The next file, which the grammar has in these pieces: numbers of parts, and places there."""

    def add(self, text: Buffer) -> None: ...
    def end(self) -> tuple[int, bytes | None, bytes | None] | None:
        """The first difference: number of the word, the word of the text, that of the grammar."""

def word_count_report(
    sources: list[Grammar | CountedSection],
    counts: list[NDArray[np.uint64]],
    by_count: bool,
    top: int,
    num_threads: int,
) -> Report:
    """Lines of word, tab and count, of all sources together."""

def report(corpus: Corpus, task: int, top: int, postings: Postings, num_threads: int) -> Report:
    """Lines of a task. Raises ValueError beyond the limit of the postings, OSError."""

def words_report(grammars: list[Grammar], ino: int, begin: int, end: int) -> Report:
    """Words of a file by number, each on a line."""

def cancel_all() -> None:
    """End all work of this module in all threads, now and later, by KeyboardInterrupt; for a process that ends."""
