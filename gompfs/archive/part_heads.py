"""Opens the heads of an archive's parts, for blocks of the codec gompresso-tadoc.

The reference engine has its own decoder of heads. All others use that of the C++ core.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gompfs._native.parts import PartHeads
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.codec.constants import MAX_HEAD_PAYLOAD
from gompfs.codec.stored_head import StoredHead, StoredWords
from gompfs.engine import Engine
from gompfs.format import ArchiveFile, for_native
from gompfs.model import WORD_SECTION, Section, Segment

if TYPE_CHECKING:
    from gompfs._native.parts import SymbolTable
    from gompfs.codec.block import Buffer
    from gompfs.codec.reference_heads import ReferencePartHeads

    AnyPartHeads: TypeAlias = PartHeads | ReferencePartHeads

_CAPACITY = 32 << 20  # bytes of decoded heads: about 140 parts of 512 KiB


def open_part_heads(
    file: ArchiveFile, engine: Engine, segments: Sequence[Segment], sections: Sequence[Section], block_size: int
) -> AnyPartHeads:
    """Returns the heads of all segments, for blocks that `engine` decodes.

    They are read from `file` when they are needed.
    """
    words = {section.segment: section.places for section in sections if section.kind == WORD_SECTION}
    columns = []
    for segment in segments:
        parts = segment.parts
        if not any(parts.head_sizes):
            continue
        starts = array("Q", [segment.first_block])
        for size in parts.sizes:
            starts.append(starts[-1] + -(-size // block_size))
        places = words.get(segment.number)
        of_words = (places.archive_offsets, places.compressed_sizes) if places else (b"", b"")
        columns.append((starts, parts.head_offsets, parts.head_sizes, *of_words))

    def read(offset: int, size: int) -> bytes | memoryview:
        return file.read(size, offset)

    if engine.name == "reference":
        from gompfs.codec.reference_heads import ReferencePartHeads, SegmentHeads

        return ReferencePartHeads([SegmentHeads(*each) for each in columns], read, _CAPACITY)
    return PartHeads(columns, for_native(file) if columns else -1, _CAPACITY, engine.num_threads)


class StoredHeads:
    """The heads of one segment, for an engine that opens them itself. Thread-safe."""

    def __init__(
        self,
        segment: Segment,
        block_size: int,
        read: Callable[[int, int], Buffer],
        heads: Callable[[], PartHeads],
        index: int,
    ) -> None:
        """`read` is given a size and an archive offset. `heads` returns the heads of all segments.

        `index` is the number of segments with heads before this one.
        """
        self._first_blocks = [segment.first_block]  # of each part, and the end of the last
        for size in segment.parts.sizes:
            self._first_blocks.append(self._first_blocks[-1] + -(-size // block_size))
        self._offsets, self._sizes = segment.parts.head_offsets, segment.parts.head_sizes
        self._read = read
        self._heads = heads
        self._words = StoredWords(lambda: heads().words(index))
        self._opened: dict[int, StoredHead] = {}  # by the number of the part

    def find(self, blocks: Sequence[int]) -> list[StoredHead | None]:
        """Returns the head of the part of each block of the stream, or None for a part without a head."""
        return [self._head(bisect_right(self._first_blocks, block) - 1) for block in blocks]

    def _head(self, part: int) -> StoredHead | None:
        if not self._sizes[part]:
            return None
        head = self._opened.get(part)
        return head or self._opened.setdefault(
            part, StoredHead(lambda: self._read_head(part), self._words, lambda: self._open_on_host(part))
        )

    def _read_head(self, part: int) -> Buffer:
        """Returns the bytes of a head; none if it is larger than heads are."""
        size = self._sizes[part]
        return self._read(size, self._offsets[part]) if size <= BLOCK_HEADER_SIZE + MAX_HEAD_PAYLOAD else b""

    def _open_on_host(self, part: int) -> tuple[SymbolTable | None, BlockStatus]:
        (symbols,), (status,) = self._heads().open([self._first_blocks[part]])
        return symbols, BlockStatus(status)
