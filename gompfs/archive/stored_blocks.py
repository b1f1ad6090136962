"""The compressed blocks of an archive: reads them from its file, and has the engine decode them.

Readers of files go through BlockService, which caches decoded blocks. Sections, statistics and `verify` read each block
once and come here directly.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import add

from gompfs._native.codec import BufferPool
from gompfs.archive.part_heads import StoredHeads
from gompfs.codec import BLOCK_HEADER_SIZE, MAX_EXPANSION, BlockStatus, parse_block_header
from gompfs.engine import Engine
from gompfs.errors import CorruptBlockError, CorruptIndexError
from gompfs.format import ArchiveFile, for_native
from gompfs.light_types import TYPE_CHECKING, NamedTuple
from gompfs.model import BlockTable, PartKind, Section, Segment

if TYPE_CHECKING:
    from gompfs._native.text import PartHeads
    from gompfs.archive.announcements import Announcements
    from gompfs.engine.base import ArchiveDecoder, PartSymbols

_SECTION_BATCH = 256  # blocks of a section that are decoded in one call
_LARGE_RUN = 1 << 20  # larger reads go to pooled buffers: touching fresh memory takes as long as reading
_SECTION_READERS = 4


class Block(NamedTuple):
    """The content of a block, or a status that says why it could not be decoded."""

    content: memoryview
    status: BlockStatus


class StoredBlocks:
    """Reads and decodes blocks, without a cache. Thread-safe."""

    def __init__(
        self,
        file: ArchiveFile,
        engine: Engine,
        block_size: int,
        segments: Sequence[Segment],
        archive: str,
        *,
        verify: bool,
        heads: PartHeads,
        announcements: Announcements | None = None,
    ) -> None:
        """Read the blocks of `segments`, which form the stream, and of sections from `file`.

        `heads` opens the heads of parts. `archive` is the path for error messages. `verify` also compares decoded bytes
        with their checksums. `announcements` are for a file that is remote.
        """
        self.heads = heads
        self.announcements = announcements
        self._file = file
        self._engine = engine
        self.block_size = block_size
        self.segments = segments
        self._archive = archive
        self._verify = verify
        self._decoders: dict[bool, ArchiveDecoder] = {}  # by whether they verify
        self._runs = BufferPool()  # buffers for large reads of the file

    def decode_stream(self, numbers: Sequence[int]) -> list[Block]:
        """Decode blocks of the stream by ascending numbers. A damaged block is returned with its status."""
        decoded: list[Block] = []
        for segment, of_segment in self._parts_of_segments(numbers):
            decoded += self.decode_segment(segment, of_segment)
        return decoded

    def decode_segment(self, segment: Segment, numbers: Sequence[int], *, verify: bool = False) -> list[Block]:
        """Decode the blocks of a segment that have the ascending indexes `numbers`. A damaged block has its status."""
        if self.announcements is not None and numbers:
            self.announcements.blocks(segment, numbers)
        of_stream = [segment.first_block + number for number in numbers]
        sizes = _sizes(segment.blocks, numbers)
        if not self._engine.decodes_on_cpu(len(numbers) * self.block_size):
            contents, statuses = self._decode_on_device(of_stream, sizes, verify=verify)
            return [Block(*each) for each in zip(contents, map(BlockStatus, statuses), strict=True)]
        symbols, of_heads = self.heads.open(of_stream) if segment.parts.need_symbols else (None, bytes(len(numbers)))
        blocks = self.decode_table(segment.blocks, numbers, verify=verify, symbols=symbols)
        # A block is damaged if the head of its part is, or the dictionary that it needs.
        return [
            Block(memoryview(bytes(len(block.content))), BlockStatus(status)) if status else block
            for block, status in zip(blocks, of_heads, strict=True)
        ]

    def _decode_on_device(
        self, numbers: Sequence[int], sizes: Sequence[int], *, verify: bool = False
    ) -> tuple[list[memoryview], list[int]]:
        """Returns the contents of blocks of the stream, which have `sizes`, and their statuses."""
        verify = verify or self._verify
        decoder = self._decoders.get(verify)
        if decoder is None:  # there is one for each archive, which knows what is in the memory of the device
            decoder = self._decoders.setdefault(verify, self._engine.archive_decoder(self, verify=verify))
        content, offsets, statuses = decoder.decode(numbers)
        decoded = content.toreadonly()
        contents = [decoded[offset : offset + size] for offset, size in zip(offsets, sizes, strict=True)]
        if any(statuses):
            contents = [
                memoryview(bytes(len(each))) if status else each
                for each, status in zip(contents, statuses, strict=True)
            ]
        return contents, statuses

    @cached_property
    def stored_heads(self) -> dict[int, StoredHeads]:
        """The heads and words that parts of segments need to be decoded, by the number of the segment."""
        segments = [segment for segment in self.segments if segment.parts.need_symbols]
        return {
            segment.number: StoredHeads(segment, self.block_size, self._file.read, lambda: self.heads, index)
            for index, segment in enumerate(segments)
        }

    def decode_for_reader(self, numbers: Sequence[int]) -> tuple[list[memoryview], bytes]:
        """Like `decode_stream`, as BlockReader.decode_with needs it: returns the contents and the statuses."""
        if self.announcements is None and not self._engine.decodes_on_cpu(len(numbers) * self.block_size):
            segments = self._parts_of_segments(numbers)
            sizes = [size for segment, of_segment in segments for size in _sizes(segment.blocks, of_segment)]
            contents, statuses = self._decode_on_device(numbers, sizes)
            return contents, bytes(statuses)
        blocks = self.decode_stream(numbers)
        return [block.content for block in blocks], bytes(block.status for block in blocks)

    def read_stream(self, first: int, count: int) -> tuple[list[memoryview], list[int]]:
        """Returns compressed blocks of the stream, not checked, and how many bytes each should decompress to."""
        blocks: list[memoryview] = []
        sizes: list[int] = []
        for segment, of_segment in self._parts_of_segments(range(first, first + count)):
            blocks += self._read(segment.blocks, of_segment)
            sizes += _sizes(segment.blocks, of_segment)
        return blocks, sizes

    def read_compressed(self, numbers: Sequence[int]) -> list[memoryview]:
        """Returns compressed blocks of the stream by ascending numbers, not checked."""
        return [
            block
            for segment, of_segment in self._parts_of_segments(numbers)
            for block in self._read(segment.blocks, of_segment)
        ]

    def decode_table(
        self,
        table: BlockTable,
        numbers: Sequence[int],
        *,
        verify: bool = False,
        out: memoryview | None = None,
        symbols: Sequence[PartSymbols | None] | None = None,
    ) -> list[Block]:
        """Decode the blocks of `table` that have the ascending indexes `numbers`. A damaged block has its status.

        `symbols` are those of each block's part.

        The contents returned are views of `out`, which must be large enough for all, or of memory from the engine.
        """
        sizes = _sizes(table, numbers)
        raw = self._read(table, numbers)
        if out is None:
            out = self._engine.allocate(sum(sizes))
        statuses = self._engine.decode_blocks(raw, out, sizes=sizes, symbols=symbols, verify=verify or self._verify)
        return _cut(out, sizes, statuses)

    def parts_with_other_symbols(self, segment: Segment, numbers: range) -> Iterator[int]:
        """Yields the parts whose symbols do not match the checksum in their head, except heads that are damaged.

        Only parts whose first block is among the blocks `numbers` of the segment are checked.
        """
        parts = segment.parts
        starts = [start // self.block_size for start, _ in segment.part_ranges(self.block_size)]
        first, end = (bisect_left(starts, segment.first_block + number) for number in (numbers.start, numbers.stop))
        for part in range(first, end):
            if not parts.head_sizes[part] or parts.kinds[part] == PartKind.DICTIONARY:
                continue
            (symbols,), _ = self.heads.open([starts[part]])
            if symbols is not None:
                header = parse_block_header(self._file.read(BLOCK_HEADER_SIZE, parts.head_offsets[part]))
                if symbols.pool_xxh3 != header.content_xxh3:
                    yield part

    def open_for_native(self) -> int | Callable[[int, int], bytes]:
        """Returns what the C++ core reads the archive with; see `for_native`."""
        return for_native(self._file)

    def read_section(self, section: Section) -> memoryview:
        """Returns the content of a section. Raises CorruptBlockError or CorruptIndexError."""
        from concurrent.futures import ThreadPoolExecutor  # only statistics read sections

        self.check_section(section)
        table = section.blocks
        content = BufferPool().allocate(table.uncompressed_size)

        def decode(first: int) -> list[Block]:
            count = min(_SECTION_BATCH, len(table) - first)
            out = content[first * self.block_size : (first + count) * self.block_size]
            return self.decode_table(table, range(first, first + count), out=out)

        # While one batch is read from the file, others are decoded.
        with ThreadPoolExecutor(_SECTION_READERS, thread_name_prefix="gompfs-section") as executor:
            batches = executor.map(decode, range(0, len(table), _SECTION_BATCH))
            for number, block in enumerate(itertools.chain.from_iterable(batches)):
                if block.status is not BlockStatus.OK:
                    raise CorruptBlockError(
                        f"section {section.kind} of segment {section.segment}: {block.status.reason}",
                        archive=self._archive,
                        block=number,
                    )
        self._runs.drop_free()
        return content.toreadonly()

    def check_section(self, section: Section) -> None:
        """Raise CorruptIndexError unless the blocks of a section can hold as many bytes as the index says.

        This bounds the memory for a section in proportion to the size of the archive, whatever the index claims.
        """
        table = section.blocks
        payload_sizes = (size - BLOCK_HEADER_SIZE for size in table.compressed_sizes)
        if any(
            size > MAX_EXPANSION * payload
            for size, payload in zip(table.uncompressed_sizes, payload_sizes, strict=True)
        ):
            name = f"section {section.kind} of segment {section.segment}"
            reason = f"the index is damaged: {name} has blocks that are too small for their content"
            raise CorruptIndexError(reason, archive=self._archive)

    def _parts_of_segments(self, numbers: Sequence[int]) -> Iterator[tuple[Segment, list[int]]]:
        """Yields segments, and block numbers relative to them, for ascending block numbers of the stream."""
        for segment in self.segments:
            start = bisect_left(numbers, segment.first_block)
            end = bisect_left(numbers, segment.first_block + len(segment.blocks))
            if start < end:
                yield segment, [number - segment.first_block for number in numbers[start:end]]

    def _read(self, table: BlockTable, numbers: Sequence[int]) -> list[memoryview]:
        """Returns the compressed bytes of blocks. Adjacent blocks are read at once.

        A block that extends beyond the end of the file is returned in part.
        """
        if not numbers:
            return []
        offsets = [table.archive_offsets[number] for number in numbers]
        sizes = [table.compressed_sizes[number] for number in numbers]
        start, end = offsets[0], max(map(add, offsets, sizes))
        if offsets == sorted(offsets) and end - start <= sum(sizes) + len(sizes) * BLOCK_HEADER_SIZE:
            run = self._read_run(end - start, start)
            return [run[offset - start : offset - start + size] for offset, size in zip(offsets, sizes, strict=True)]
        return [memoryview(self._file.read(size, offset)) for offset, size in zip(offsets, sizes, strict=True)]

    def _read_run(self, size: int, archive_offset: int) -> memoryview:
        if size < _LARGE_RUN:
            return memoryview(self._file.read(size, archive_offset))
        buffer = self._runs.allocate(size)
        return buffer[: self._file.read_into(buffer, archive_offset)]


def _cut(content: memoryview, sizes: Sequence[int], statuses: Sequence[int]) -> list[Block]:
    """Returns views of blocks that were decoded one after another."""
    decoded = content.toreadonly()
    ends = itertools.accumulate(sizes)
    return [
        Block(decoded[end - size : end], BlockStatus(status))
        for end, size, status in zip(ends, sizes, statuses, strict=True)
    ]


def _sizes(table: BlockTable, numbers: Sequence[int]) -> list[int]:
    return [table.uncompressed_sizes[number] for number in numbers]
