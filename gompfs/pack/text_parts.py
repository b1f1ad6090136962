"""The text of a segment, which is stored as grammars of parts (codec gompresso-tadoc; docs/format.md).

Which words several parts share is known only after the last file. So parts are written at the end of a segment, after
all other blocks, and the extents of text files are not known before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gompfs._native.text import PartsBuilder
from gompfs.codec import DEFAULT_PART_SIZE, MAX_PART_SIZE, Codec, EncodedBlock
from gompfs.codec.block import parse_block_header
from gompfs.model import PartKind
from gompfs.text.word_characters import WORD_RULE_KINDS, word_characters
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from gompfs._native.sources import Contents

_BATCH_BYTES = 1 << 20
_INODES_AT_ONCE = 1 << 14


class TextParts:
    """Collects text files, and cuts their text into parts. Parts are built in the background, in bounded memory."""

    def __init__(
        self, words: str, block_size: int, part_size: int | None, num_threads: int, directory: str, level: int
    ) -> None:
        """`words` is the word rule. A temporary file in `directory` takes about a third of the text's size.
        `level` is that of the bytes of words, and of text that is smaller without a grammar.

        With `part_size`, parts have at most that many bytes. Otherwise text that repeats makes them larger.
        """
        threads = num_threads or default_threads()
        rule = WORD_RULE_KINDS[words], word_characters(words)
        self._native = PartsBuilder(
            *rule,
            block_size,
            part_size or DEFAULT_PART_SIZE,
            threads,
            directory,
            max_part_size=part_size or MAX_PART_SIZE,
            level=level,
        )
        self._block_size = block_size
        self._batch: list[bytes | memoryview | Contents] = []
        self._batch_size = 0
        self.num_files = 0
        self._part_sizes: list[int] = []

    @property
    def size(self) -> int:
        """The size of all text in bytes; complete after `finish`."""
        return sum(self._part_sizes)

    def add_file(self, content: bytes | memoryview) -> int:
        """Add a whole file. Returns its number."""
        self._append(content, len(content))
        return self._take_number()

    def add_contents(self, contents: Contents) -> None:
        """Add several files. The first gets the number `num_files`."""
        self._append(contents, contents.size)
        self.num_files += len(contents)

    def _append(self, content: bytes | memoryview | Contents, size: int) -> None:
        self._batch.append(content)
        self._batch_size += size
        if self._batch_size >= _BATCH_BYTES:
            self._flush()

    def add_bytes(self, piece: bytes | memoryview) -> None:
        """Add a piece of a file that `end_file` ends."""
        self._flush()
        self._native.add_bytes(piece)

    def end_file(self) -> int:
        """End a file that came in pieces. Returns its number."""
        self._flush()
        self._native.end_file()
        return self._take_number()

    def finish(self) -> None:
        """End the input. The other methods may be called then."""
        self._flush()
        self._native.finish()
        self._part_sizes = self._native.part_sizes()

    def add_inodes(self, inodes: Sequence[tuple[int, int]]) -> None:
        """Say which inodes have the text of files, given as (inode number, number of a file)."""
        self._native.add_inodes(inodes)

    def extent_rows(self, start: int) -> Iterator[list[tuple[int, int, int, int]]]:
        """Yields lists of rows of the table extent for all inodes. The first part begins at `start` of the stream."""
        starts = [start]
        for size in self._part_sizes:
            starts.append(starts[-1] + -(-size // self._block_size) * self._block_size)
        num_inodes = self._native.num_inodes
        for first in range(0, num_inodes, _INODES_AT_ONCE):
            yield self._native.extent_rows(first, min(first + _INODES_AT_ONCE, num_inodes), starts)

    def encoded(self) -> Iterator[tuple[PartKind, int, EncodedBlock | None, list[EncodedBlock]]]:
        """Yields kind, size in bytes, head if there is one, and blocks of each part, in order.

        The next parts are encoded while the caller writes.
        """
        sizes = iter(self._part_sizes)
        while parts := self._native.next_parts():
            for head, blocks in parts:
                kind = PartKind.GRAMMAR if head else PartKind.TEXT
                encoded = [EncodedBlock(block, Codec(codec), size) for block, codec, size in blocks]
                yield kind, next(sizes), _encoded(head) if head else None, encoded

    @property
    def num_wrong(self) -> int:
        """The number of grammars and blocks that did not decode to their text, and were encoded in another way."""
        return self._native.num_wrong

    def word_section(self) -> bytes:
        """Returns the words and separators that several parts use, as the section `words`."""
        return self._native.word_section()

    def _take_number(self) -> int:
        self.num_files += 1
        return self.num_files - 1

    def _flush(self) -> None:
        if self._batch:
            self._native.add_files(self._batch)
            self._batch = []
            self._batch_size = 0


def _encoded(block: bytes) -> EncodedBlock:
    header = parse_block_header(block)
    return EncodedBlock(block, header.codec, header.uncompressed_size)
