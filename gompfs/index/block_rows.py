"""Reads the tables segment and section of an index: where blocks lie, and what they hold. All values are checked."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from gompfs._native.codec import are_possible_block_sizes
from gompfs._native.index import consecutive_offsets, uncompressed_sizes
from gompfs.codec.block import BLOCK_ALIGNMENT
from gompfs.index.schema import SECTION_COLUMNS, SEGMENT_COLUMNS
from gompfs.light_types import TYPE_CHECKING
from gompfs.model import BlockTable, PartKind, Parts, Section, Segment

if TYPE_CHECKING:
    from typing import Any

    Query = Callable[..., list[tuple[Any, ...]]]


class BlockRowError(ValueError):
    """A row of the tables is impossible. The message names the row."""


class BlockRows:
    """The rows of the tables segment and section. Methods raise BlockRowError."""

    def __init__(self, query: Query, data_end: int, block_size: int) -> None:
        """`query` runs SQL. All blocks must lie before `data_end`, an archive offset."""
        self._query = query
        self._data_end = data_end
        self._block_size = block_size

    def segments(self) -> list[Segment]:
        """Returns all segments in order."""
        segments: list[Segment] = []
        for number, first_block, *fields in self._query(f"SELECT {SEGMENT_COLUMNS} FROM segment ORDER BY number"):
            segments.append(self._segment(number, first_block, *fields))
        return segments

    def sections(self) -> list[Section]:
        """Returns all sections, by segment and kind."""
        rows = self._query(f"SELECT {SECTION_COLUMNS} FROM section ORDER BY segment, kind")
        return [self._section(*row) for row in rows]

    def _segment(
        self,
        number: int,
        first_block: int,
        archive_offset: int,
        compressed_sizes: bytes,
        codecs: bytes,
        part_kinds: bytes,
        part_sizes: bytes,
        heads_offset: int,
        head_sizes: bytes,
    ) -> Segment:
        name = f"segment {number}"
        sizes, of_heads = memoryview(part_sizes).cast("Q"), memoryview(head_sizes).cast("I")
        table = self._consecutive(name, archive_offset, compressed_sizes, sizes)
        if max(part_kinds, default=0) > max(PartKind):
            raise BlockRowError(f"{name} has a part of an unknown kind")
        head_offsets = self._offsets(name, "heads", heads_offset, head_sizes)
        return Segment(number, first_block, table, codecs, Parts(part_kinds, sizes, head_offsets, of_heads))

    def _section(self, segment: int, kind: str, size: int, offset: int, compressed_sizes: bytes) -> Section:
        name = f"section {kind} of segment {segment}"
        parts = memoryview(array("Q", [size] if size else []))
        return Section(segment, kind, self._consecutive(name, offset, compressed_sizes, parts))

    def _consecutive(
        self, name: str, archive_offset: int, compressed_sizes: bytes, part_sizes: memoryview[int]
    ) -> BlockTable:
        """Returns the positions of blocks that lie one after another."""
        sizes = memoryview(compressed_sizes).cast("I")
        offsets = self._offsets(name, "blocks", archive_offset, compressed_sizes)
        try:
            uncompressed = uncompressed_sizes(part_sizes, self._block_size, len(sizes))
        except ValueError:
            raise BlockRowError(f"{name} has not as many blocks as its parts need") from None
        if not are_possible_block_sizes(sizes):
            raise BlockRowError(f"{name} has blocks of impossible sizes")
        return BlockTable(offsets, sizes, memoryview(uncompressed).cast("I"), sum(part_sizes))

    def _offsets(self, name: str, what: str, archive_offset: int, sizes: bytes) -> memoryview[int]:
        if archive_offset % BLOCK_ALIGNMENT:
            raise BlockRowError(f"{name} has {what} at an impossible offset")
        try:
            return memoryview(consecutive_offsets(archive_offset, sizes, self._data_end)).cast("Q")
        except ValueError:
            raise BlockRowError(f"{name} has {what} outside the file") from None
