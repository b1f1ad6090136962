"""The text of a segment that is stored in parts (codec gompresso-tadoc), as the C++ core takes it for statistics.

This module does not need NumPy, which takes as long to import as a tenth of the words of a large archive to count.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gompfs._native import statistics as _statistics
from gompfs._native.text import WordRule, read_segment_grammar
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.codec.words import max_word_bytes
from gompfs.errors import ArchiveFormatError, CorruptBlockError
from gompfs.model import TEXT_KINDS, WORD_RULES, WORD_SECTION, Segment
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.text.grammar import Grammar


_EXTENT_FIELDS = 4
_Arguments: TypeAlias = tuple[tuple[Any, ...], "array[int]", memoryview | bytes, int, WordRule, bytes]


class TextInParts(NamedTuple):
    """The text of a segment: the positions of its parts, all extents of the index, and the section `words`."""

    open_file: Callable[[], int | Callable[[int, int], bytes]]
    """Returns what the C++ core reads the archive with."""
    block_size: int
    columns_of_parts: tuple[array[int], ...]
    """Columns by part: offset in the solid stream, size, archive offset and size of the head, first block."""
    texts: Sequence[bytes]
    """The texts of parts without a head, and b"" for all others."""
    columns_of_blocks: tuple[memoryview[int], ...]
    """Columns by block: archive offset, stored size."""
    extents: array[int]
    """Inode number, file offset, stream offset and size of each."""
    words: memoryview | bytes
    max_word_bytes: int
    word_rule: str

    def arguments(self) -> _Arguments:
        """Returns the first arguments of read_segment_grammar in gompfs._native.text, for one call."""
        rule, characters = WordRule[self.word_rule.upper()], b""
        if self.word_rule == "letters":
            from gompfs.text.word_characters import word_characters

            characters = word_characters(self.word_rule)
        columns = (*self.columns_of_parts, self.texts, *self.columns_of_blocks)
        parts = (self.open_file(), self.block_size, *columns)
        return parts, self.extents, self.words, self.max_word_bytes, rule, characters

    def of_file(self, ino: int) -> TextInParts:
        """Returns the text of one file."""
        rows = self.extents
        starts = (start for start in range(0, len(rows), _EXTENT_FIELDS) if rows[start] == ino)
        numbers = (number for start in starts for number in rows[start : start + _EXTENT_FIELDS])
        return self._replace(extents=array(rows.typecode, numbers))

    def grammar(self) -> Grammar:
        """Returns the grammar of the text. Raises ArchiveFormatError if it is damaged."""
        from gompfs.text.grammar import Grammar

        try:
            num_threads = default_threads()
            return Grammar(read_segment_grammar(*self.arguments(), num_threads))
        except ValueError as error:
            raise self.damaged(error) from None

    def check(self) -> None:
        """Compare the words that are stored with the words of the text. Raises ArchiveFormatError."""
        try:
            _statistics.check_words_of_parts(*self.arguments(), default_threads())
        except ValueError as error:
            raise ArchiveFormatError(str(error)) from None

    @staticmethod
    def damaged(error: ValueError) -> ArchiveFormatError:
        """Returns the error for text in which the C++ core found damage, with its message."""
        return ArchiveFormatError(f"the text of the archive has no statistics: {error}")


def text_in_parts(archive: Archive, segment: Segment) -> TextInParts:
    """Returns all text of a segment, with the files that the index lists.

    Raises ArchiveFormatError, CorruptIndexError or CorruptBlockError.
    """
    archive.announce_text()
    parts, block_size = segment.parts, archive.block_size
    word_rule = archive.meta.get("words", "")
    if word_rule not in WORD_RULES:
        raise ArchiveFormatError(f"the text of the archive has no statistics: unknown word rule {word_rule!r}")
    ranges = list(segment.part_ranges(block_size))
    numbers = [number for number, kind in enumerate(parts.kinds) if kind in TEXT_KINDS]
    columns = (
        array("Q", [ranges[number][0] for number in numbers]),
        array("Q", [parts.sizes[number] for number in numbers]),
        array("Q", [parts.head_offsets[number] for number in numbers]),
        array("I", [parts.head_sizes[number] for number in numbers]),
        array("Q", [ranges[number][0] // block_size - segment.first_block for number in numbers]),
    )
    return TextInParts(
        archive.stored.open_for_native,
        block_size,
        columns,
        [b"" if parts.head_sizes[number] else _text(archive, segment, *ranges[number]) for number in numbers],
        (segment.blocks.archive_offsets, segment.blocks.compressed_sizes),
        archive.index.all_extents(),
        *_words(archive, segment),
        word_rule,
    )


def _words(archive: Archive, segment: Segment) -> tuple[memoryview | bytes, int]:
    """Returns the section `words` of a segment, and how many bytes its words may have."""
    for section in archive.sections:
        if section.kind == WORD_SECTION and section.segment == segment.number:
            num_stored = section.blocks.compressed_size - BLOCK_HEADER_SIZE * len(section.blocks)
            return archive.read_section(section), max_word_bytes(num_stored)
    return b"", 0


def _text(archive: Archive, segment: Segment, begin: int, end: int) -> bytes:
    """Returns the text of a part without a head."""
    first, last = begin // archive.block_size, -(-end // archive.block_size)
    blocks = archive.stored.decode_segment(segment, range(first - segment.first_block, last - segment.first_block))
    for number, block in enumerate(blocks, first):
        if block.status is not BlockStatus.OK:
            raise CorruptBlockError(block.status.reason, archive=archive.path, block=number)
    return b"".join(block.content for block in blocks)
