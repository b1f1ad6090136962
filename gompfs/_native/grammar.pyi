"""Native word grammars (native/grammar). Buffers are contiguous bytes-like objects; the GIL is released."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

SPLITTER: int
"""The symbol that ends a file in a root rule."""

class GrammarBuilder:
    """Builds one grammar section, or takes text without rules. No two of its methods may run at once."""

    def __init__(
        self, builder: int, word_characters: bytes, num_threads: int, elsewhere: bool = False
    ) -> None:
        """`builder` is 0 (repair), 1 (sequitur) or 2 (no rules). `word_characters` is a bitmap, empty for whitespace.

        With `elsewhere`, the caller builds the rules: see `take_texts` and `give_rules`.
        """

    def add_files(self, files: Sequence[tuple[int, Buffer]]) -> None:
        """Adds whole files, given as (inode number, content)."""

    def begin_file(self, ino: int) -> None:
        """Begins a file that comes in pieces."""

    def add_bytes(self, piece: Buffer) -> None:
        """Adds the next piece of the file."""

    def end_file(self) -> None:
        """Ends the file."""

    def take_texts(
        self, least: int, most: int, allocate: Callable[[int], memoryview], num_threads: int
    ) -> tuple[list[int], memoryview, NDArray[np.uint32], NDArray[np.uint32]] | None:
        """Takes up to `most` parts to be built elsewhere: their numbers, then the fields of PartsInText.

        The text is in memory that `allocate` returns for its size. Returns None if fewer than `least` parts wait.
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
        """Gives the words and rules of the parts with these numbers, as in PartsInRules.

        Raises ValueError if they are not valid.
        """

    def finish(self) -> None:
        """Ends the input and waits until all parts are built."""

    def next_piece(self) -> NDArray[np.uint8] | None:
        """Returns the next piece of the grammar section; None after the last."""

    def take(self) -> Grammar:
        """With no rules: returns the grammar of the text added since the last call."""

class Forest:
    """See native/statistics/forest.h. `starts` is uint64, the others are uint32; all are read-only."""

    files: NDArray[np.uint32]
    """By file node: the number of the file."""
    starts: NDArray[np.uint64]
    """By node: index of its first element; one more at the end."""
    elements: NDArray[np.uint32]
    """Words, or nodes with bit 31 set."""
    depths: NDArray[np.uint32]
    """By node: 0 for files, else 1 + the largest depth of the nodes that use it."""
    heights: NDArray[np.uint32]
    """By node: 0 without children, else 1 + the largest height of the children."""

class Corpus:
    """The grammars of all segments as one text, for n-grams of `n` words; `files` are pairs of inode and path.

    Raises ValueError if there are too many words for n-grams of that length.
    """

    bits: int
    """Bits of a word in the key of an n-gram."""
    num_words: int
    """Number of distinct words."""
    inner_ranks: NDArray[np.uint32]
    """By word: its rank in front of other words; empty if that is the word's number."""
    def __init__(self, grammars: Sequence[Grammar], files: Sequence[tuple[int, bytes]], n: int) -> None:
        """Keeps the grammars alive."""

    def find_ngram(self, words: list[bytes], num_threads: int) -> list[tuple[int, int]]:
        """Returns the files (indexes in `files`) that contain these n words in a row, with counts.

        Raises ValueError if there are not n words.
        """

    def forest(self, begin: int, end: int, num_threads: int) -> Forest:
        """Returns the forest of the files `begin` to `end` - 1, counted over the files of all parts of all grammars."""

class Postings:
    """How often n-grams occur in files; `limit` bytes at most: `in_memory` bytes, and the rest in `directory`."""

    def __init__(self, directory: str, in_memory: int, limit: int) -> None:
        """Creates no file before the memory is used up."""

    def gather(self, corpus: Corpus, per_file: bool, traversal: tuple[bool, int, int]) -> None:
        """Counts on the CPU; `traversal` is (sequential, direction, number of threads).

        Raises ValueError above the limit, OSError.
        """

    def gather_over_edges(self, corpus: Corpus, per_file: bool, num_threads: int) -> None:
        """Counts only the n-grams that span two parts, which a device does not count. Raises what gather raises."""

    def add(self, keys: NDArray[np.uint64], postings: NDArray[np.uint64]) -> None:
        """Adds a run: its distinct keys, ascending, as rows (low half, high half), and its postings.

        Postings are rows (index of the key | file << 32, count), sorted by key and file, each pair once. Files are
        numbered as in the corpus, or 0. The numbers are not checked. Raises what gather raises.
        """

class Grammar:
    """A checked grammar section, or the grammar of text that has no rules."""

    words_of_characters: bool
    """Whether words consist of characters of a bitmap instead of bytes other than whitespace."""
    builder: int
    """0 (repair), 1 (sequitur) or 2 (no rules)."""
    num_bytes: int
    """Size in memory."""
    num_words: int
    """Number of words in the dictionary."""
    num_parts: int
    """Number of parts."""
    def word(self, number: int) -> bytes:
        """Returns a word of the dictionary. Raises IndexError."""

    def part(
        self, index: int
    ) -> tuple[bool, int, NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]]:
        """Returns copies of a part's fields; raises IndexError.

        They are: whether its first file began in the part before, its number of words with repetitions, its inodes, the
        dictionary's numbers of its words, the starts of its rules, and its symbols.
        """

    def files(self, num_threads: int) -> list[tuple[bool, NDArray[np.uint64], NDArray[np.uint64]]]:
        """Returns for each part: whether its first file began in the part before, its inodes, and their word counts."""

    def drop_parts(self) -> None:
        """Frees everything except the dictionary."""

    def part_sizes(self) -> list[tuple[int, int]]:
        """Returns for each part its number of files and its number of symbols."""

    def forest(self, inos: NDArray[np.uint64] | None, begin: int, end: int, num_threads: int) -> Forest:
        """As Corpus.forest, but words are numbered as in the dictionary, and all files have the number 0."""

    def words_have_whitespace(self) -> bool:
        """Returns whether a word contains whitespace."""

    def has_short_rules(self) -> bool:
        """Returns whether a rule other than a root has fewer than two symbols."""

    def word_counts(self, inos: NDArray[np.uint64] | None, num_threads: int) -> NDArray[np.uint64]:
        """Returns how often each word occurs in these files; None for all files."""

def read_grammar(section: Buffer, num_threads: int) -> Grammar:
    """Reads and checks a grammar section. Raises ValueError, naming what is wrong."""

def grammar_of_tokens(
    starts: NDArray[np.uint64],
    content: NDArray[np.uint8],
    words_of_characters: bool,
    ranks: NDArray[np.uint32],
    batches: list[tuple[bool, NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]],
    num_threads: int,
) -> Grammar:
    """See Grammar.of_tokens. Raises ValueError if the numbers are not consistent."""

class CountedSection:
    """The words of a section, as it stores them, and their counts; raises what read_grammar raises."""

    def __init__(self, section: Buffer, inos: NDArray[np.uint64] | None, num_threads: int) -> None:
        """Counts the words of the files with these inodes; None for all files."""

    counts: NDArray[np.uint64]
    """By word number."""

class Report:
    """A text that is made in pieces."""

    size: int | None
    """Size of the text in bytes; None if it is not known before the text is made."""
    def pieces(self, first: int, count: int, num_threads: int) -> list[bytes]:
        """Returns up to `count` pieces from `first` on; fewer at the end. The first piece alone may be much faster."""

class TextCheck:
    """Compares files with a grammar, word by word. Without a grammar, files are expected to have no words."""

    def __init__(self, grammar: Grammar | None, word_characters: bytes) -> None:
        """Keeps the grammar alive."""

    def begin(self, pieces: Sequence[tuple[int, int]]) -> None:
        """Begins the next file; `pieces` are the numbers of the parts that contain it, and its indexes in them."""

    def add(self, text: Buffer) -> None:
        """Compares the next piece of the file."""

    def end(self) -> tuple[int, bytes | None, bytes | None] | None:
        """Returns the first difference: index of the word, the word of the text, and the word of the grammar.

        Returns None if there is no difference. A word is None if that side has ended.
        """

def word_count_report(
    sources: list[Grammar | CountedSection],
    counts: list[NDArray[np.uint64]],
    by_count: bool,
    top: int,
    num_threads: int,
) -> Report:
    """Returns lines of word, tab and count, with the counts of all sources added."""

def report(corpus: Corpus, task: int, top: int, postings: Postings, num_threads: int) -> Report:
    """Returns the lines of a task. Raises ValueError above the limit of the postings, OSError."""

def words_report(grammars: list[Grammar], ino: int, begin: int, end: int) -> Report:
    """Returns the words `begin` to `end` - 1 of a file, each on a line."""
