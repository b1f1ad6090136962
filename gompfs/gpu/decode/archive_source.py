"""The blocks of an archive for a device: checked, at aligned addresses, and with their heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gompfs._native.blocks import BlockStaging
from gompfs.codec import BlockStatus
from gompfs.codec.headers import FACTS
from gompfs.gpu.decode.block_source import BlockSymbols
from gompfs.gpu.decode.buffer_source import decode_on_host
from gompfs.model import PartKind, Segment

if TYPE_CHECKING:
    from gompfs._native.text import PartHeads, SymbolTable
    from gompfs.codec.stored_head import StoredHead

_SYMBOLS, _DICTIONARY = 1, 2  # the values of Supplement in native/codec/block.h


class StoredHeads(Protocol):
    """The heads and words that the parts of a segment need to be decoded."""

    def find(self, blocks: Sequence[int]) -> tuple[Sequence[SymbolTable | StoredHead | None], Sequence[BlockStatus]]:
        """Returns the head or symbols that each block needs, and statuses."""


class StoredBlocks(Protocol):
    """The compressed blocks of an archive: gompfs.archive.stored_blocks.StoredBlocks."""

    @property
    def segments(self) -> Sequence[Segment]:
        """All segments, in order."""

    @property
    def block_size(self) -> int:
        """The size of a block."""

    @property
    def heads(self) -> PartHeads:
        """The opener of heads on the host."""

    @property
    def stored_heads(self) -> Mapping[int, StoredHeads]:
        """The stored heads of each segment, by its number."""

    def open_for_native(self) -> object:
        """Returns the descriptor of the file, which the caller closes, or something else if it is not local."""

    def read_compressed(self, numbers: Sequence[int]) -> list[memoryview]:
        """Returns the compressed blocks with these ascending numbers. Nothing in them is checked."""


class ArchiveSource:
    """See BlockSource: the blocks of an archive's stream. Thread-safe."""

    facts = None

    def __init__(self, stored: StoredBlocks, num_threads: int) -> None:
        """Reads blocks from the file of an archive on up to `num_threads` threads."""
        self._stored = stored
        self._num_threads = num_threads
        tables = [segment.blocks for segment in stored.segments]
        self._archive_offsets = _column([each.archive_offsets for each in tables], np.uint64)
        self.compressed_sizes = _column([each.compressed_sizes for each in tables], np.uint32)
        self.uncompressed_sizes = _column([each.uncompressed_sizes for each in tables], np.uint32)
        self._part_starts, self._supplements, self.parts = self._parts()
        self.num_parts = self._part_starts.size

    def _parts(self) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Returns the first block of each part that needs something, what each block needs, and `parts`."""
        block_size, num_blocks = self._stored.block_size, self.uncompressed_sizes.size
        supplements = np.zeros(num_blocks, np.uint8)
        parts = np.full(num_blocks, -1, np.int64)
        starts: list[int] = []
        for segment in self._stored.segments:
            ranges = segment.part_ranges(block_size)
            for (begin, end), kind, head_size in zip(
                ranges, segment.parts.kinds, segment.parts.head_sizes, strict=True
            ):
                uses_dictionary = kind == PartKind.DICTIONARY
                if uses_dictionary or head_size:
                    blocks = slice(begin // block_size, -(-end // block_size))
                    supplements[blocks] = _DICTIONARY if uses_dictionary else _SYMBOLS
                    parts[blocks] = len(starts)
                    starts.append(blocks.start)
        return np.array(starts, np.int64), supplements, parts

    def begin_staging(
        self, numbers: NDArray[np.uint64], targets: NDArray[np.uint64], out: memoryview
    ) -> Callable[[], NDArray[np.void]]:
        """See BlockSource.begin_staging."""
        file = self._stored.open_for_native()
        indexes = numbers.view(np.int64)
        staging = BlockStaging(
            file if isinstance(file, int) else self._stored.read_compressed(numbers.tolist()),
            self._archive_offsets.take(indexes), self.compressed_sizes.take(indexes),
            self.uncompressed_sizes.take(indexes), self._supplements.take(indexes), targets, out, self._num_threads,
        )  # fmt: skip
        return lambda: np.frombuffer(staging.wait(), FACTS)

    def symbols(self, numbers: NDArray[np.uint64]) -> BlockSymbols:
        """See BlockSource.symbols."""
        of_blocks = self.parts[numbers]
        indexes = np.full(numbers.size, -1, np.int64)
        needing = np.flatnonzero(of_blocks >= 0)
        parts, of_parts = np.unique(of_blocks[needing], return_inverse=True)
        found = [self._symbols_of(int(self._part_starts[part])) for part in parts]
        indexes[needing] = of_parts
        statuses = np.zeros(numbers.size, np.uint8)
        statuses[needing] = np.array([status for _, status in found], np.uint8)[of_parts]
        return BlockSymbols([symbols for symbols, _ in found], indexes, statuses)

    def _symbols_of(self, block: int) -> tuple[SymbolTable | StoredHead | None, BlockStatus]:
        segment = next(each for each in reversed(self._stored.segments) if each.first_block <= block)
        (symbols,), (status,) = self._stored.stored_heads[segment.number].find([block])
        return symbols, status

    def decode(self, numbers: NDArray[np.uint64], out: memoryview, *, verify: bool) -> Sequence[BlockStatus]:
        """See BlockSource.decode."""
        wanted = numbers.tolist()
        blocks = self._stored.read_compressed(wanted)
        symbols, statuses = self._stored.heads.open(wanted)
        sizes = self.uncompressed_sizes[numbers].tolist()
        decoded = decode_on_host(blocks, out, sizes, symbols, verify=verify, num_threads=self._num_threads)
        return [BlockStatus(of_head) or of_block for of_head, of_block in zip(statuses, decoded, strict=True)]


def _column(columns: Sequence[memoryview[int]], dtype: type[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Returns one array of the columns of all segments."""
    return np.concatenate([np.zeros(0, dtype), *(np.asarray(column, dtype) for column in columns)])
