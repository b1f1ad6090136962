"""Native statistics of grammars (native/statistics). The GIL is released."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from gompfs._native.grammar import Grammar, WordRule

class Direction(Enum):
    """The direction of traversal (TADOC section 4, G-TADOC section 4)."""

    AUTO = 0
    """Chosen for each part of a grammar, from its number of files and the sizes of its rules."""
    TOP_DOWN = 1
    """Weights flow from each file to the rules that it uses."""
    BOTTOM_UP = 2
    """Each rule gets a table of the terms in it and in the rules below; files read the tables of their elements.

    If the tables of a part could exceed 64 MiB, the CPU goes top-down for that part.
    """

class PostingsTask(Enum):
    """A statistic of n-grams and files."""

    INVERTED_INDEX = 0
    """The files that contain each word (TADOC section 4)."""
    TERM_VECTOR = 1
    """The words of each file with their counts (TADOC section 4)."""
    SEQUENCE_COUNT = 2
    """How often each n-gram occurs (TADOC section 4, G-TADOC section 4.3)."""
    RANKED_INVERTED_INDEX = 3
    """The files that contain each n-gram, by count (TADOC section 4, G-TADOC section 4.3)."""
    TFIDF = 4
    """The words that are typical of each file. Not a task of TADOC."""

class LineMerge(Enum):
    """What becomes of lines with the same key, which is the text before the first tab."""

    ADD_COUNTS = 0
    """Lines of a term and its count: the counts are added."""
    JOIN_PATHS = 1
    """Lines of a term and paths: the paths are sorted."""
    JOIN_RANKED_PATHS = 2
    """Lines of a term and fields `count path`: sorted by descending count, then by path."""
    JOIN_FILES = 3
    """Lines that begin with a path: the texts have no path in common."""

def merge_lines(texts: Sequence[bytes], how: LineMerge, top: int) -> bytes:
    """Returns one text of the lines of several texts, each of which is sorted by key, with one line for each key.

    `top` above 0 limits the ranked paths of a line. Raises ValueError for texts that are not so, or if a sum exceeds 64
    bits.
    """

def sort_lines(text: bytes) -> bytes:
    """Returns lines of a term and its count sorted by term. Raises ValueError."""

def sort_lines_by_count(text: bytes, top: int) -> bytes:
    """Returns lines of a term and its count, given by term, sorted by descending count, then by term.

    `top` above 0 limits the lines. Raises ValueError.
    """

class FieldType(Enum):
    """The type of a field of a line."""

    WORD = 0
    NGRAM = 1
    PATH = 2
    COUNT = 3
    SCORE = 4

class LineFormat:
    """The fields of the lines of a statistic: see native/statistics/line_fields.h."""

    def __init__(
        self,
        fields: list[tuple[str, FieldType]],
        items: str = "",
        value: tuple[str, FieldType] | None = None,
        weight: tuple[str, FieldType] | None = None,
    ) -> None:
        """`value` and `weight` are those of each item, and `items` is what all items together are called."""

def json_lines(texts: Sequence[bytes], lines: LineFormat, num_threads: int) -> list[bytes]:
    """Returns JSON Lines for the lines of each text: see native/statistics/json_lines.h. Raises ValueError."""

class TableColumn:
    """The values of a column, in the layout of Arrow: see native/statistics/line_table.h. All arrays are read-only."""

    offsets: NDArray[np.int32]
    texts: NDArray[np.int8]
    odd_values: NDArray[np.int32]
    """Indexes of the texts that are not UTF-8."""
    odd_offsets: NDArray[np.int32]
    odd_bytes: NDArray[np.int8]
    counts: NDArray[np.uint64]
    scores: NDArray[np.float64]

class TableBatch:
    """Consecutive rows of a table: one for each item of a line, or, without items, one for each line."""

    num_lines: int
    line_of_row: NDArray[np.int32]
    no_items: NDArray[np.int32]
    """The rows of lines without items, in which these are missing."""
    def field(self, index: int) -> TableColumn:
        """Returns the values of a field, by line."""

    def item(self, index: int) -> TableColumn:
        """Returns the values of items, by row: 0 for the value, 1 for the weight."""

def table_batches(texts: Sequence[bytes], lines: LineFormat, num_threads: int) -> list[TableBatch]:
    """Returns the rows of all texts in batches of about 8 MiB. Raises ValueError for a text without the format."""

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
    part_files: NDArray[np.uint64]
    """By part: its file nodes, without one that began in the part before."""
    part_elements: NDArray[np.uint64]
    """By part: its elements."""

def forest_of_corpus(corpus: Corpus, begin: int, end: int, join_files: bool, num_threads: int) -> Forest:
    """Returns the forest of the files `begin` to `end` - 1, counted over the files of all parts of all grammars.

    With `join_files`, a file that continues in the next part has one node, so that all of its n-grams are there.
    """

def forest_of_grammar(
    grammar: Grammar, inos: NDArray[np.uint64] | None, begin: int, end: int, num_threads: int
) -> Forest:
    """As forest_of_corpus, but words are numbered as in the dictionary, and all files have the number 0."""

class Corpus:
    """The grammars of all segments as one text, for n-grams of `ngram_length` words.

    `files` are pairs of inode and path. Raises ValueError if there are too many words for n-grams of that length.
    """

    bits: int
    """Bits of a word in the key of an n-gram."""
    num_words: int
    """Number of distinct words."""
    inner_ranks: NDArray[np.uint32]
    """By word: its rank in front of other words; empty if that is the word's number."""
    def __init__(self, grammars: Sequence[Grammar], files: Sequence[tuple[int, bytes]], ngram_length: int) -> None:
        """Keeps the grammars alive."""

    def with_files(self, files: Sequence[tuple[int, bytes]], ngram_length: int) -> Corpus:
        """Returns the same words with other files, and n-grams of another length. Raises ValueError likewise.

        Shares the words. The parts of the grammars may have been dropped.
        """

    def word(self, rank: int) -> bytes:
        """Returns a word by its number. Raises IndexError."""

    def rank_of(self, word: bytes) -> int | None:
        """Returns the number of a word, or None if no grammar has it."""

    def ranks_of(self, grammar: int) -> NDArray[np.uint32]:
        """Returns the numbers of the words of a grammar, given by its index, in the order of its dictionary."""

    def word_sizes(self) -> NDArray[np.uint32]:
        """Returns the size of each word in bytes, by its number."""

    def items(self, ranks: NDArray[np.uint64], counts: NDArray[np.uint64]) -> bytes:
        """Returns items of a term vector: tab, count, space and word, given by its number. Raises ValueError."""

    def file_lines(self, files: NDArray[np.uint64], counts: NDArray[np.uint64]) -> bytes:
        """Returns lines of a path, tab and count, for files given by their numbers. Raises ValueError."""

class Postings:
    """How often n-grams occur in files; `limit` bytes at most: `in_memory` bytes, and the rest in `directory`."""

    def __init__(self, directory: str, in_memory: int, limit: int) -> None:
        """Creates no file before the memory is used up."""

    def gather(self, corpus: Corpus, per_file: bool, direction: Direction, num_threads: int) -> None:
        """Counts on the CPU. Raises ValueError above the limit, OSError."""

    def gather_sequentially(self, corpus: Corpus, per_file: bool) -> None:
        """Counts as the TADOC papers do: on one thread, top-down, in hash tables. Raises what gather raises."""

    def gather_over_edges(self, corpus: Corpus, per_file: bool, num_threads: int) -> None:
        """Counts only the n-grams that span two parts, which a device does not count. Raises what gather raises."""

    def add(self, keys: NDArray[np.uint64], postings: NDArray[np.uint64], num_threads: int) -> None:
        """Adds runs, one for each thread: distinct keys, ascending, as rows (low half, high half), and postings.

        Postings are rows (index of the key | file << 32, count), sorted by key and file, each pair once. Files are
        numbered as in the corpus, or 0. The numbers are not checked. Raises what gather raises.
        """

class NgramSet:
    """The n-grams of documents: `length` words each, 1 to 255."""

    def __init__(self, length: int, word_rule: WordRule, word_characters: bytes) -> None:
        """The word rule says what the words of a text are. Raises ValueError for an invalid length."""

    def add_text(self, text: bytes) -> None:
        """Adds a document. Raises ValueError if all documents have 2^31 words or more."""

    def add_words(self, words: list[bytes]) -> None:
        """Adds a document that consists of these words."""

    def num_ngrams(self, document: int) -> int:
        """Returns the number of different n-grams of a document. Only after an Overlap was made."""

class Overlap:
    """How often the n-grams of a set occur in files. See native/statistics/overlap.h."""

    def __init__(self, ngrams: NgramSet, inos: Buffer, directory: str, in_memory: int, limit: int) -> None:
        """Searches the files `inos` (uint64). No document can be added to the set any more.

        Uses `limit` bytes at most for what it finds: `in_memory` bytes, and the rest in a file in `directory`.
        """

    def search_grammar(self, grammar: Grammar, num_threads: int) -> None:
        """Searches a grammar. Calls are in the order of the text. Raises ValueError above the limit, OSError."""

    def search_parts(
        self,
        parts: tuple[Any, ...],
        extents: Buffer,
        word_section: Buffer,
        max_word_bytes: int,
        word_rule: WordRule,
        word_characters: bytes,
        num_threads: int,
    ) -> None:
        """Searches text that is stored in parts. Raises what search_grammar raises, and ValueError for damage.

        See gompfs._native.grammar.read_parts_grammar for the first arguments.
        """

    def finish(self, max_files: int) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
        """Returns for each document: how many of its n-grams occur, how often, and the files with most of them.

        A file is given as its index in `inos`, the number of different n-grams of the document that it has, and how
        often it has them. Files are sorted by descending numbers, then by index; each document has up to `max_files`.
        Nothing can be searched after it.
        """

class CountedSection:
    """The words of a section, as it stores them, and their counts; raises what read_grammar raises."""

    def __init__(self, section: Buffer, inos: NDArray[np.uint64] | None, num_threads: int) -> None:
        """Counts the words of the files with these inodes; None for all files."""

    word_rule: WordRule
    counts: NDArray[np.uint64]
    """By word number."""

def word_counts(grammar: Grammar, inos: NDArray[np.uint64] | None, num_threads: int) -> NDArray[np.uint64]:
    """Returns how often each word of the dictionary occurs in the files with these inodes; None for all files."""

class Report:
    """A text that is made in pieces."""

    size: int | None
    """Size of the text in bytes; None if it is not known before the text is made."""
    def pieces(self, first: int, count: int, num_threads: int) -> list[bytes]:
        """Returns up to `count` pieces from `first` on; fewer at the end. The first piece alone may be much faster."""

def word_count_report(
    sources: list[Grammar | CountedSection],
    counts: list[NDArray[np.uint64]],
    by_count: bool,
    top: int,
    num_threads: int,
) -> Report:
    """Returns lines of word, tab and count, with the counts of all sources added.

    Raises ValueError if a source does not have a count for each word, or if the sums could exceed 62 bits.
    """

def parts_word_count_report(
    parts: tuple[Any, ...],
    extents: Buffer,
    word_section: Buffer,
    max_word_bytes: int,
    word_rule: WordRule,
    word_characters: bytes,
    inos: NDArray[np.uint64] | None,
    by_count: bool,
    top: int,
    num_threads: int,
) -> Report:
    """Returns lines of word, tab and count, of text that is stored in parts.

    See gompfs._native.grammar.read_parts_grammar for the first arguments. Only the files `inos` are counted, or all.
    Raises ValueError, naming what is wrong.
    """

def check_words_of_parts(
    parts: tuple[Any, ...],
    extents: Buffer,
    word_section: Buffer,
    max_word_bytes: int,
    word_rule: WordRule,
    word_characters: bytes,
    num_threads: int,
) -> None:
    """Compares the words that are stored in parts with the words of their text, and with each other.

    See gompfs._native.grammar.read_parts_grammar for the arguments. Raises ValueError, naming what is wrong.
    """

def task_report(corpus: Corpus, task: PostingsTask, top: int, postings: Postings, num_threads: int) -> Report:
    """Returns the lines of a task. Raises ValueError above the limit of the postings, OSError."""

def row_lines(
    corpus: Corpus,
    task: PostingsTask,
    top: int,
    files_of_words: NDArray[np.uint32],
    num_files: int,
    sources: list[tuple[Any, ...]],
    num_threads: int,
) -> list[bytes]:
    """Returns the lines of rows that are in order already, piece by piece. See native/statistics/row_lines.h.

    A source is (pairs, counts, bits of the second number, cuts, halves of keys), arrays of uint64: piece i has the rows
    cuts[i] to cuts[i + 1] - 1 of each source. `files_of_words` and `num_files` are needed for tf-idf. Raises ValueError
    if numbers of rows are not those of words and files of the corpus. The numbers in keys are not checked.
    """

def words_report(grammars: list[Grammar], ino: int, begin: int, end: int) -> Report:
    """Returns the words `begin` to `end` - 1 of a file, each on a line."""
