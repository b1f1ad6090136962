"""Native word grammars (native/grammar). Buffers are contiguous bytes-like objects; the GIL is released."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

SPLITTER: int
"""The symbol that ends a file in a root rule."""

class BuilderKind(Enum):
    """How the rules of a grammar are built."""

    REPAIR = 0
    SEQUITUR = 1
    NONE = 2
    """There are no rules: the root contains all words. No section stores such a grammar."""

class WordRule(Enum):
    """What a word is. The values are the indexes of the names in gompfs.model.WORD_RULES."""

    WHITESPACE = 0
    LETTERS = 1
    IDENTIFIERS = 2

class GrammarBuilder:
    """Builds one grammar section, or takes text without rules. No two of its methods may run at once."""

    def __init__(
        self,
        builder: BuilderKind,
        word_rule: WordRule,
        word_characters: bytes,
        num_threads: int,
        external_rules: bool = False,
    ) -> None:
        """`word_characters` is the bitmap of the characters of words for LETTERS, else empty: see word_characters().

        Raises ValueError if the bitmap is missing or superfluous. With `external_rules`, the caller builds the rules:
        see `take_texts` and `give_rules`.
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
        """Takes up to `most` parts, which the caller builds: their numbers, then the fields of PartsInText.

        The text is in memory that `allocate` returns for its size. Returns None if fewer than `least` parts wait.
        Raises ValueError if the memory has another size.
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

class Grammar:
    """A checked grammar section, or the grammar of text that has no rules."""

    word_rule: WordRule
    builder: BuilderKind
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

    def words_have_separators(self) -> bool:
        """Returns whether a word contains an ASCII character that separates words."""

    def has_short_rules(self) -> bool:
        """Returns whether a rule other than a root has fewer than two symbols."""

def read_grammar(section: Buffer, num_threads: int) -> Grammar:
    """Reads and checks a grammar section. Raises ValueError, naming what is wrong."""

def read_parts_grammar(
    parts: tuple[Any, ...],
    extents: Buffer,
    word_section: Buffer,
    max_word_bytes: int,
    word_rule: WordRule,
    word_characters: bytes,
    num_threads: int,
) -> Grammar:
    """Returns the grammar of the words of a segment whose text is stored in parts.

    `parts` are a descriptor, which is closed, or a function read(offset, size) -> bytes; the block size; columns by
    part: offset in the solid stream, size, archive offset of the head (u64), size of the head (u32; 0: no head), first
    block (u64), and the text of each part without a head; columns by block: archive offset (u64), stored size (u32).
    `extents` are all rows of the index: inode number, file offset, offset in the solid stream, size (u64). Raises
    ValueError, naming what is wrong, and what reading raises.
    """

def grammar_of_tokens(
    starts: NDArray[np.uint64],
    content: NDArray[np.uint8],
    word_rule: WordRule,
    ranks: NDArray[np.uint32],
    batches: list[tuple[bool, NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]],
    num_threads: int,
) -> Grammar:
    """See Grammar.of_tokens. Raises ValueError if the numbers are not consistent."""

class TextCheck:
    """Compares files with a grammar, word by word. Without a grammar, files are expected to have no words."""

    def __init__(self, grammar: Grammar | None, word_rule: WordRule, word_characters: bytes) -> None:
        """Keeps the grammar alive. See GrammarBuilder for `word_characters`."""

    def begin(self, pieces: Sequence[tuple[int, int]]) -> None:
        """Begins the next file; `pieces` are the numbers of the parts that contain it, and its indexes in them."""

    def add(self, text: Buffer) -> None:
        """Compares the next piece of the file."""

    def end(self) -> tuple[int, bytes | None, bytes | None] | None:
        """Returns the first difference: index of the word, the word of the text, and the word of the grammar.

        Returns None if there is no difference. A word is None if that side has ended.
        """
