"""Blocks in memory of the host, for a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs._native.blocks import BlockStaging
from gompfs._native.text import SymbolTable
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.codec.block import Buffer
from gompfs.codec.headers import FACTS, read_headers
from gompfs.codec.stored_head import StoredHead
from gompfs.gpu.decode.block_source import BlockSymbols

_SYMBOLS, _DICTIONARY = 1, 2  # the values of Supplement in native/codec/block.h


class BufferSource:
    """See BlockSource: whole blocks in memory."""

    def __init__(
        self,
        blocks: Sequence[Buffer],
        sizes: Sequence[int] | None,
        symbols: Sequence[SymbolTable | StoredHead | None] | None,
        num_threads: int,
    ) -> None:
        """Block i should decode to `sizes[i]` bytes, and needs `symbols[i]`, see Engine.decode_blocks.

        Raises ValueError if there are not as many sizes or symbols as blocks.
        """
        self._blocks = blocks
        self._num_threads = num_threads
        self.facts: NDArray[np.void] = read_headers(blocks, symbols).copy()
        self.uncompressed_sizes = self.facts["uncompressed_size"].copy()
        self.compressed_sizes = self.facts["payload_size"] + np.uint32(BLOCK_HEADER_SIZE)
        for index in np.flatnonzero(self.facts["status"]).tolist():  # these may have another size
            self.compressed_sizes[index] = memoryview(blocks[index]).nbytes
        if sizes is not None:
            if len(sizes) != len(blocks):
                raise ValueError("each block needs a size")
            expected = np.array(sizes, np.uint32)
            self.facts["status"][self.uncompressed_sizes != expected] = BlockStatus.BAD_HEADER
            self.uncompressed_sizes = expected
        self.parts = np.full(len(blocks), -1, np.int64)
        self._supplements = np.zeros(len(blocks), np.uint8)
        self._symbols: list[SymbolTable | StoredHead] = []
        self._note(symbols or ())
        self.num_parts = len(self._symbols)

    def _note(self, symbols: Sequence[SymbolTable | StoredHead | None]) -> None:
        """Numbers the heads and dictionaries, and records for each block the one that it needs to be decoded."""
        numbers: dict[int, int] = {}
        for index, each in enumerate(symbols):
            if each is None:
                continue
            number = self.parts[index] = numbers.setdefault(each.number, len(numbers))
            if number == len(self._symbols):
                self._symbols.append(each)
            is_dictionary = isinstance(each, SymbolTable) and each.is_dictionary
            self._supplements[index] = _DICTIONARY if is_dictionary else _SYMBOLS

    def begin_staging(
        self, numbers: NDArray[np.uint64], targets: NDArray[np.uint64], out: memoryview
    ) -> Callable[[], NDArray[np.void]]:
        """See BlockSource.begin_staging."""
        indexes = numbers.view(np.int64)
        staging = BlockStaging(
            list(map(self._blocks.__getitem__, indexes.tolist())), np.zeros(numbers.size, np.uint64),
            self.compressed_sizes.take(indexes), self.uncompressed_sizes.take(indexes),
            self._supplements.take(indexes), targets, out, self._num_threads,
        )  # fmt: skip
        return lambda: np.frombuffer(staging.wait(), FACTS)

    def symbols(self, numbers: NDArray[np.uint64]) -> BlockSymbols:
        """See BlockSource.symbols."""
        needed, indexes = np.unique(self.parts[numbers], return_inverse=True)
        num_without = int(np.count_nonzero(needed < 0))
        symbols = [self._symbols[number] for number in needed[num_without:].tolist()]
        return BlockSymbols(symbols, indexes.astype(np.int64) - num_without, np.zeros(numbers.size, np.uint8))

    def decode(self, numbers: NDArray[np.uint64], out: memoryview, *, verify: bool) -> Sequence[BlockStatus]:
        """See BlockSource.decode."""
        indexes = numbers.tolist()
        opened: dict[int, tuple[SymbolTable | None, BlockStatus]] = {-1: (None, BlockStatus.OK)}
        for part in np.unique(self.parts[numbers]).tolist():
            if part >= 0:
                head = self._symbols[part]
                opened[part] = head.open_on_host() if isinstance(head, StoredHead) else (head, BlockStatus.OK)
        of_blocks = [opened[part] for part in self.parts[numbers].tolist()]
        decoded = decode_on_host(
            [self._blocks[index] for index in indexes], out, self.uncompressed_sizes[numbers].tolist(),
            [symbols for symbols, _ in of_blocks], verify=verify, num_threads=self._num_threads,
        )  # fmt: skip
        return [status or of_block for (_, status), of_block in zip(of_blocks, decoded, strict=True)]


def decode_on_host(
    blocks: Sequence[Buffer],
    out: memoryview,
    sizes: Sequence[int],
    symbols: Sequence[SymbolTable | None],
    *,
    verify: bool,
    num_threads: int,
) -> list[BlockStatus]:
    """Decodes blocks by threads of the host, see Engine.decode_blocks."""
    return [BlockStatus(status) for status in _codec.decode_blocks(blocks, out, verify, num_threads, sizes, symbols)]
