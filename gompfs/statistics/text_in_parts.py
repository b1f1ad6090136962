"""The grammar of a segment whose text is stored in parts (codec gompresso-tadoc): its words, without a second copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.arrays import all_extents
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.codec.words import max_word_bytes
from gompfs.errors import CorruptBlockError
from gompfs.grammar import TextInParts
from gompfs.grammar.grammar import WORD_RULE_KINDS
from gompfs.grammar.word_characters import word_characters
from gompfs.model import WORD_SECTION, PartKind, Segment

if TYPE_CHECKING:
    from gompfs.archive import Archive



def text_in_parts(archive: Archive, segment: Segment) -> TextInParts:
    """Returns all text of a segment, with the files that the index lists.

    Raises ArchiveFormatError, CorruptIndexError or CorruptBlockError.
    """
    ranges = np.array(list(segment.part_ranges(archive.block_size)), np.int64).reshape(-1, 2)
    is_text = np.frombuffer(segment.parts.kinds, np.uint8) != PartKind.DATA
    parts = [
        (head, blocks, b"" if len(head) else _text(archive, segment, *ranges[number]))
        for number, (head, blocks) in enumerate(archive.stored.read_parts(segment))
        if is_text[number]
    ]
    extents = _extents_of_parts(all_extents(archive), ranges[is_text])
    rule = archive.meta["words"]
    return TextInParts(parts, extents, *_words(archive, segment), WORD_RULE_KINDS[rule], word_characters(rule))


def _extents_of_parts(extents: NDArray[np.int64], ranges: NDArray[np.int64]) -> tuple[NDArray[np.integer], ...]:
    """Returns part, offset, size, ino and whether the file began before, of the extents in some parts."""
    ino, file_offset, stream_offset, size = extents.T
    part = np.searchsorted(ranges[:, 0], stream_offset, "right") - 1
    is_inside = (part >= 0) & (stream_offset < ranges[part, 1]) if len(ranges) else np.zeros(len(ino), np.bool_)
    chosen = np.flatnonzero(is_inside)
    chosen = chosen[np.lexsort((ino[chosen], stream_offset[chosen]))]
    part = part[chosen]
    offset = stream_offset[chosen] - ranges[part, 0]
    continues = file_offset[chosen] > 0
    columns = part, offset, size[chosen], ino[chosen], continues
    return tuple(map(np.ndarray.astype, columns, ("<u4", "<u8", "<u8", "<u8", "u1")))


def _words(archive: Archive, segment: Segment) -> tuple[memoryview | bytes, int]:
    """Returns the section `words` of a segment, and how many bytes its words may have."""
    for section in archive.sections:
        if section.kind == WORD_SECTION and section.segment == segment.number:
            num_stored = section.places.compressed_size - BLOCK_HEADER_SIZE * len(section.places)
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
