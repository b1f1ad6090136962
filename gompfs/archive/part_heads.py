"""Opens the heads of an archive's parts, for blocks of the codec gompresso-tadoc, and the archive's dictionary."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from gompfs._native.text import PartHeads
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.codec.constants import MAX_HEAD_PAYLOAD
from gompfs.codec.stored_head import StoredHead, StoredWords
from gompfs.format import ArchiveFile, for_native
from gompfs.light_types import TYPE_CHECKING
from gompfs.model import WORD_SECTION, PartKind, Section, Segment, is_dictionary

if TYPE_CHECKING:
    from gompfs._native.text import SymbolTable
    from gompfs.codec.block import Buffer

BlockRanges = tuple["memoryview[int]", "memoryview[int]"]
_IS_DICTIONARY = bytes(kind == PartKind.DICTIONARY for kind in range(256))
_NO_BLOCKS: memoryview[int] = memoryview(b"")
_MAX_CAPACITY = 32 << 20  # bytes of decoded heads: about 140 parts


def open_part_heads(
    file: ArchiveFile,
    num_threads: int,
    segments: Sequence[Segment],
    sections: Sequence[Section],
    block_size: int,
    capacity: int = _MAX_CAPACITY,
) -> PartHeads:
    """Returns the heads of all segments, which `num_threads` threads read.

    They and the dictionary are read from `file` when they are needed. At most `capacity` bytes of decoded heads are
    kept, and never more than 32 MiB.
    """
    capacity = min(capacity, _MAX_CAPACITY)
    words = {section.segment: section for section in sections if section.kind == WORD_SECTION}
    dictionary = next((section for section in sections if is_dictionary(section)), None)
    columns = []
    for segment in segments:
        parts = segment.parts
        if not parts.need_symbols:
            continue
        num_blocks = (-(-size // block_size) for size in parts.sizes)
        starts = array("Q", accumulate(num_blocks, initial=segment.first_block))
        uses_dictionary = parts.kinds.translate(_IS_DICTIONARY)
        section = words.get(segment.number)
        of_words = (*_block_ranges(section), section.blocks.uncompressed_sizes if section else _NO_BLOCKS)
        columns.append((starts, parts.head_offsets, parts.head_sizes, uses_dictionary, of_words))

    file_or_none = for_native(file) if columns else -1
    return PartHeads(columns, file_or_none, capacity, num_threads, _block_ranges(dictionary))


def _block_ranges(section: Section | None) -> BlockRanges:
    """Returns the columns of archive_offset and compressed_size of a section's blocks."""
    return (section.blocks.archive_offsets, section.blocks.compressed_sizes) if section else (_NO_BLOCKS, _NO_BLOCKS)


class StoredHeads:
    """The heads of one segment, for an engine that opens them itself, and the dictionary. Thread-safe."""

    def __init__(
        self,
        segment: Segment,
        block_size: int,
        read: Callable[[int, int], Buffer],
        heads: Callable[[], PartHeads],
        index: int,
    ) -> None:
        """`read` is given a size and an archive offset. `heads` returns the heads of all segments.

        `index` is the number of segments before this one whose parts need symbols.
        """
        self._first_blocks = [segment.first_block]  # of each part, and the end of the last
        for size in segment.parts.sizes:
            self._first_blocks.append(self._first_blocks[-1] + -(-size // block_size))
        self._kinds = segment.parts.kinds
        self._offsets, self._sizes = segment.parts.head_offsets, segment.parts.head_sizes
        self._read = read
        self._heads = heads
        self._words = StoredWords(lambda: heads().words(index))
        self._opened: dict[int, StoredHead] = {}  # by the number of the part

    def find(self, blocks: Sequence[int]) -> tuple[list[SymbolTable | StoredHead | None], list[BlockStatus]]:
        """Returns the symbols of the part of each block of the stream, and a status for each.

        The symbols are the head of the part, or the dictionary if the part uses it. They are None for other parts, and
        if the dictionary is damaged, which the status says.
        """
        found = [self._symbols(bisect_right(self._first_blocks, block) - 1) for block in blocks]
        return [symbols for symbols, _ in found], [status for _, status in found]

    def _symbols(self, part: int) -> tuple[SymbolTable | StoredHead | None, BlockStatus]:
        if self._kinds[part] == PartKind.DICTIONARY:
            return self._open_on_host(part)
        if not self._sizes[part]:
            return None, BlockStatus.OK
        head = self._opened.get(part) or self._opened.setdefault(
            part, StoredHead(lambda: self._read_head(part), self._words, lambda: self._open_on_host(part))
        )
        return head, BlockStatus.OK

    def _read_head(self, part: int) -> Buffer:
        """Returns the bytes of a head; none if it is larger than heads are."""
        size = self._sizes[part]
        return self._read(size, self._offsets[part]) if size <= BLOCK_HEADER_SIZE + MAX_HEAD_PAYLOAD else b""

    def _open_on_host(self, part: int) -> tuple[SymbolTable | None, BlockStatus]:
        (symbols,), (status,) = self._heads().open([self._first_blocks[part]])
        return symbols, BlockStatus(status)
