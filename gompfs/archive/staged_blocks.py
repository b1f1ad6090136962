"""Compressed blocks of an archive as a device needs them: checked, at aligned addresses, and with their heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from gompfs._native.blocks import BlockStaging
from gompfs.codec import BlockStatus
from gompfs.engine.cpu import CpuEngine
from gompfs.gpu.block_source import STAGED, BlockSymbols
from gompfs.model import PartKind

if TYPE_CHECKING:
    from gompfs._native.parts import PartHeads, SymbolTable
    from gompfs.archive.archive import Archive
    from gompfs.codec.stored_head import StoredHead

_SYMBOLS, _DICTIONARY = 1, 2  # the values of Supplement in native/codec/block.h


class StagedBlocks:
    """See BlockSource: the blocks of an archive's stream. Thread-safe."""

    def __init__(self, archive: Archive) -> None:
        """Reads blocks from the file of `archive`."""
        self._archive = archive
        self._num_threads = archive.engine.num_threads
        tables = [segment.blocks for segment in archive.segments]
        self._archive_offsets = _column([each.archive_offsets for each in tables], np.uint64)
        self.compressed_sizes = _column([each.compressed_sizes for each in tables], np.uint32)
        self.uncompressed_sizes = _column([each.uncompressed_sizes for each in tables], np.uint32)
        self._part_starts, self._supplements, self.parts = self._parts()
        self.num_parts = self._part_starts.size

    def _parts(self) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Returns the first block of each part that needs something, what each block needs, and `parts`."""
        block_size = self._archive.block_size
        supplements = np.zeros(self._archive.num_blocks, np.uint8)
        parts = np.full(self._archive.num_blocks, -1, np.int64)
        starts: list[int] = []
        for segment in self._archive.segments:
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
        file = self._archive.stored.open_for_native()
        if not isinstance(file, int):
            blocks = self._archive.stored.read_compressed(numbers.tolist())
            for block, target in zip(blocks, targets.tolist(), strict=True):
                out[target : target + len(block)] = block
        indexes = numbers.view(np.int64)
        staging = BlockStaging(
            file if isinstance(file, int) else None, self._archive_offsets.take(indexes),
            self.compressed_sizes.take(indexes), self.uncompressed_sizes.take(indexes), self._supplements.take(indexes),
            targets, out, self._num_threads,
        )  # fmt: skip
        return lambda: np.frombuffer(staging.wait(), STAGED)

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
        segment = next(each for each in reversed(self._archive.segments) if each.first_block <= block)
        (symbols,), (status,) = self._archive.stored.stored_heads[segment.number].find([block])
        return symbols, status

    def decode(self, numbers: NDArray[np.uint64], out: memoryview, *, verify: bool) -> Sequence[BlockStatus]:
        """See BlockSource.decode."""
        wanted = numbers.tolist()
        blocks = self._archive.stored.read_compressed(wanted)
        symbols, statuses = cast("PartHeads", self._archive.stored.heads).open(wanted)
        decoded = CpuEngine(self._num_threads).decode_blocks(
            blocks, out, sizes=self.uncompressed_sizes[numbers].tolist(), symbols=symbols, verify=verify
        )
        return [BlockStatus(of_head) or of_block for of_head, of_block in zip(statuses, decoded, strict=True)]


def _column(columns: Sequence[memoryview[int]], dtype: type[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Returns one array of the columns of all segments."""
    return np.concatenate([np.zeros(0, dtype), *(np.asarray(column, dtype) for column in columns)])
