"""Tells a remote file what will be read, so that it fetches at once what readers ask for one after another."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence

from gompfs.format import ArchiveFile
from gompfs.model import WORD_SECTION, BlockTable, Section, Segment

Range = tuple[int, int]  # archive_offset, size


class Announcements:
    """Announces blocks with their heads, or the words of all parts."""

    def __init__(
        self, file: ArchiveFile, block_size: int, segments: Sequence[Segment], sections: Sequence[Section]
    ) -> None:
        self._file = file
        self._segments = segments
        words = {section.segment: section.blocks for section in sections if section.kind == WORD_SECTION}
        self._words = {segment: [_range_of(blocks)] for segment, blocks in words.items() if len(blocks)}
        self._starts = {
            segment.number: [start // block_size for start, _ in segment.part_ranges(block_size)]
            for segment in segments
        }

    def blocks(self, segment: Segment, numbers: Sequence[int]) -> None:
        """Called before the blocks of a segment with the ascending indexes `numbers` are read."""
        parts, blocks = segment.parts, segment.blocks
        starts = self._starts[segment.number]
        used = dict.fromkeys(bisect_right(starts, segment.first_block + number) - 1 for number in numbers)
        heads = [(parts.head_offsets[part], parts.head_sizes[part]) for part in used]
        content = [(blocks.archive_offsets[number], blocks.compressed_sizes[number]) for number in numbers]
        words = self._words.get(segment.number, []) if any(size for _, size in heads) else []
        self._file.announce([*content, *heads, *words], are_all=False)

    def stream(self, wanted: bytes) -> None:
        """Called before the blocks of the stream are read that are not 0 in `wanted`."""
        ranges: list[Range] = []
        for segment in self._segments:
            blocks = segment.blocks
            of_segment = wanted[segment.first_block : segment.first_block + len(blocks)]
            columns = zip(blocks.archive_offsets, blocks.compressed_sizes, strict=True)
            ranges += itertools.compress(columns, of_segment)
        self._file.announce(ranges)

    def words(self) -> None:
        """Called before any text is read: all of it needs the words."""
        self._file.announce([words for of_segment in self._words.values() for words in of_segment])

    def text(self) -> None:
        """Called before the words and heads of all parts are read."""
        ranges: list[Range] = []
        for segment in self._segments:
            ranges += self._words.get(segment.number, [])
            ranges += zip(segment.parts.head_offsets, segment.parts.head_sizes, strict=True)
        self._file.announce(ranges)


def _range_of(blocks: BlockTable) -> Range:
    start = blocks.archive_offsets[0]
    return start, blocks.archive_offsets[-1] + blocks.compressed_sizes[-1] - start
