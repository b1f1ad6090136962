"""Reads the tables segment and section of an index: where blocks lie, and what they hold. All columns are checked."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Literal

from gompfs._native.codec import are_possible_block_sizes
from gompfs._native.index import consecutive_offsets, uncompressed_sizes
from gompfs.codec.block import BLOCK_ALIGNMENT
from gompfs.index.schema import SECTION_COLUMNS, SEGMENT_COLUMNS
from gompfs.model import MAX_OFFSET, BlockTable, PartKind, Parts, Section, Segment

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
        next_block = 0
        for number, first_block, *fields in self._query(f"SELECT {SEGMENT_COLUMNS} FROM segment ORDER BY number"):
            if number != len(segments) or first_block != next_block:
                raise BlockRowError(f"segment {number} contradicts itself")
            segments.append(self._segment(number, first_block, *fields))
            next_block += len(segments[-1].blocks)
        return segments

    def sections(self) -> list[Section]:
        """Returns all sections, by segment and kind."""
        rows = self._query(f"SELECT {SECTION_COLUMNS} FROM section ORDER BY segment, kind")
        if any(type(segment) is not int or type(kind) is not str for segment, kind, *_ in rows):
            raise BlockRowError("it has impossible sections")
        return [self._section(*row) for row in rows]

    def _segment(
        self,
        number: int,
        first_block: int,
        archive_offset: Any,
        compressed_sizes: Any,
        codecs: Any,
        part_kinds: Any,
        part_sizes: Any,
        heads_offset: Any,
        head_sizes: Any,
    ) -> Segment:
        name = f"segment {number}"
        sizes = _column(name, part_sizes, "Q")
        of_heads = _column(name, head_sizes, "I")
        table = self._consecutive(name, archive_offset, compressed_sizes, sizes)
        if any(type(column) is not bytes for column in (codecs, part_kinds)) or not (
            len(codecs) == len(table)
            and len(part_kinds) == len(of_heads) == len(sizes)
            and max(part_kinds, default=0) <= max(PartKind)
        ):
            raise BlockRowError(f"{name} contradicts itself")
        head_offsets = self._offsets(name, "heads", heads_offset, head_sizes)
        return Segment(number, first_block, table, codecs, Parts(part_kinds, sizes, head_offsets, of_heads))

    def _section(self, segment: int, kind: str, size: Any, offset: Any, compressed_sizes: Any) -> Section:
        name = f"section {kind} of segment {segment}"
        if type(size) is not int or size < 0:
            raise BlockRowError(f"{name} has an impossible size")
        parts = memoryview(array("Q", [size] if size else []))
        return Section(segment, kind, self._consecutive(name, offset, compressed_sizes, parts))

    def _consecutive(
        self, name: str, archive_offset: Any, compressed_sizes: Any, part_sizes: memoryview[int]
    ) -> BlockTable:
        """Returns the positions of blocks that lie one after another."""
        sizes = _column(name, compressed_sizes, "I")
        offsets = self._offsets(name, "blocks", archive_offset, compressed_sizes)
        try:
            uncompressed = uncompressed_sizes(part_sizes, self._block_size, len(sizes))
        except ValueError:
            raise BlockRowError(f"{name} has not as many blocks as its parts need") from None
        if not are_possible_block_sizes(sizes):
            raise BlockRowError(f"{name} has blocks of impossible sizes")
        return BlockTable(offsets, sizes, memoryview(uncompressed).cast("I"), sum(part_sizes))

    def _offsets(self, name: str, what: str, archive_offset: Any, sizes: bytes) -> memoryview[int]:
        if type(archive_offset) is not int or not 0 <= archive_offset <= MAX_OFFSET or archive_offset % BLOCK_ALIGNMENT:
            raise BlockRowError(f"{name} has {what} at an impossible offset")
        try:
            return memoryview(consecutive_offsets(archive_offset, sizes, self._data_end)).cast("Q")
        except ValueError:
            raise BlockRowError(f"{name} has {what} outside the file") from None


def _column(name: str, column: Any, code: Literal["I", "Q"]) -> memoryview[int]:
    """Returns an integer view of a packed column."""
    try:
        view: memoryview[int] = memoryview(column).cast(code)
        return view
    except TypeError:
        raise BlockRowError(f"{name} has a column without whole numbers") from None
