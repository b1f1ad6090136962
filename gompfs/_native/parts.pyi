"""Parts of text that are stored as grammars (native/parts)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from gompfs._native.grammar import WordRule
from gompfs._native.sources import Contents

class SymbolTable:
    """The symbols of a part, which its blocks refer to, or a dictionary, which is a pool without symbols.

    The arrays are views, which keep the symbols alive.
    """

    @property
    def is_dictionary(self) -> bool:
        """Whether this is a dictionary, for blocks of gompresso-bit-dictionary."""

    @property
    def number(self) -> int:
        """A number that no other symbols of this process have or had."""

    @property
    def expansions(self) -> NDArray[np.uint64]:
        """What the symbol of each rank stands for.

        Bits 0 to 31 are the offset in the pool, bits 32 to 61 the size. Bit 62 says whether it ends with a word, and
        bit 63 whether it begins with a separator.
        """

    @property
    def pool(self) -> NDArray[np.uint8]:
        """The bytes of all symbols, or of the dictionary."""

    @property
    def code(self) -> NDArray[np.uint64]:
        """The class code of ranks: for each value of the next bits of a stream, the codeword that they begin with.

        Bits 0 to 7 are the number of bits of the codeword (0 if the code is empty), and bits 24 to 31 the class.
        """

    def __len__(self) -> int:
        """Returns the number of symbols."""

class PartHeads:
    """The heads of an archive's parts, decoded when a block needs them. Any number of threads may use it."""

    def __init__(
        self,
        segments: Sequence[tuple[Buffer, Buffer, Buffer, Buffer, tuple[Buffer, Buffer, Buffer]]],
        file: int | Callable[[int, int], Buffer],
        capacity: int,
        num_threads: int,
        dictionary: tuple[Buffer, Buffer] | None = None,
    ) -> None:
        """Keeps up to `capacity` bytes of decoded heads. Up to `num_threads` threads read words, and several heads.

        Each segment has columns: the first block of each part and the end of the last (u64), archive_offset (u64) and
        size (u32) of each head, for each part 1 if it uses the dictionary, else 0 (u8), and archive_offset (u64),
        compressed_size (u32) and uncompressed_size (u32) of the blocks of its words. `dictionary` has the first two of
        these for the dictionary of the archive, if there is one. `file` is a descriptor, which is closed with this
        object, or a function that returns `size` bytes at an offset. Raises ValueError for columns of different
        lengths.
        """

    def load_words(self) -> None:
        """Reads the words that parts share, unless they were read. Raises OSError, and what `file` raises."""

    def open(self, blocks: Sequence[int]) -> tuple[list[SymbolTable | None], bytes]:
        """Returns the symbols of each block's part, and the BlockStatus of its head or of the dictionary.

        The symbols of a part that uses the dictionary are the dictionary. There are none for other parts without a
        head, nor if what a part needs is damaged. Raises OSError, and what `file` raises.
        """

    def words(
        self, segment: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint8]]:
        """Returns the global words of a segment, by its index in the list given to the constructor.

        The arrays are: where each word begins, and the end of the last; the words, each with a space after it; the
        same for separators. They are views, which keep this object alive. There are no words and separators if their
        section is damaged. Raises IndexError, OSError, and what `file` raises.
        """

class PartsBuilder:
    """Builds the parts of a segment from the text of files, on several threads. Its methods end on Ctrl-C."""

    def __init__(
        self,
        word_rule: WordRule,
        word_characters: bytes,
        block_size: int,
        part_size: int,
        num_threads: int,
        directory: str,
        max_shared_bytes: int = 0xFFFFFFFF,
    ) -> None:
        """Sizes are in bytes. `word_characters` is as for GrammarBuilder; `directory` is for a temporary file.

        The words that several parts share have at most `max_shared_bytes`, with a space each, and so do the separators.
        """

    @property
    def num_wrong(self) -> int:
        """The number of grammars and blocks that did not decode to their text, and were encoded in another way."""

    def add_files(self, files: Sequence[Buffer | Contents]) -> None:
        """Adds whole files, a Contents being several. Files are numbered from 0."""

    def add_bytes(self, piece: Buffer) -> None:
        """Adds a piece of a file."""

    def end_file(self) -> None:
        """Ends a file that came in pieces."""

    def finish(self) -> None:
        """Ends the input. After it, the functions below may be called. Raises OSError if the disk is full."""

    def extent_rows(self, inodes: list[tuple[int, int]], part_starts: list[int]) -> list[tuple[int, int, int, int]]:
        """Returns rows of the table extent for inodes, given as (inode number, number of a file).

        Part p begins at `part_starts[p]` of the stream. A file without bytes has no row. Call it after `finish`.
        """

    def part_sizes(self) -> list[int]:
        """Returns the size of the text of each part in bytes."""

    def word_section(self) -> bytes:
        """Returns the section `words`. Raises RuntimeError if a reader would read other words."""

    def next_parts(self) -> list[tuple[bytes, list[tuple[bytes, int, int]]]]:
        """Returns the head of each of the next parts, and its blocks with codecs and uncompressed sizes.

        Returns an empty list after the last part. A part without a head has b"".
        """

def check_word_section(section: Buffer, max_bytes: int) -> None:
    """Raises ValueError if a section `words` cannot be read, or if its words have more than `max_bytes` together."""
