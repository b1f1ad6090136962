"""An engine as that of a GPU: it decodes for all readers and opens the heads of parts itself, but on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from oracle.block import check_block

from gompfs._native.text import SymbolTable
from gompfs.codec import BlockStatus
from gompfs.codec.block import Buffer
from gompfs.codec.codecs import Codec
from gompfs.codec.decode_work import DecodeWork
from gompfs.codec.stored_head import StoredHead
from gompfs.engine.cpu import CpuEngine
from gompfs.gpu.decode.archive_source import ArchiveSource

if TYPE_CHECKING:
    from gompfs.engine.base import PartSymbols
    from gompfs.gpu.decode.archive_source import StoredBlocks


class HeadEngine(CpuEngine):
    """Takes heads that are not opened yet."""

    name = "heads"

    def __init__(self) -> None:
        super().__init__()
        self.decode_work["cpu"] = DecodeWork()

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu."""
        return False

    def archive_decoder(self, stored: StoredBlocks, *, verify: bool) -> HeadDecoder:
        """See Engine.archive_decoder."""
        return HeadDecoder(self, stored, verify=verify)

    def decode_blocks(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        *,
        sizes: Sequence[int] | None = None,
        symbols: Sequence[PartSymbols | None] | None = None,
        verify: bool = False,
    ) -> list[BlockStatus]:
        """See Engine.decode_blocks."""
        opened = [self._open(each) for each in symbols or [None] * len(blocks)]
        found = super().decode_blocks(blocks, out, sizes=sizes, symbols=[table for table, _ in opened], verify=verify)
        statuses = [status or decoded for (_, status), decoded in zip(opened, found, strict=True)]
        assert sizes is not None
        position = 0
        for size, status in zip(sizes, statuses, strict=True):
            if status is not BlockStatus.OK:
                out[position : position + size] = bytes(size)
            position += size
        return statuses

    def _open(self, head: PartSymbols | None) -> tuple[SymbolTable | None, BlockStatus]:
        """Opens a head with the core. What a device would read must be there, too."""
        if not isinstance(head, StoredHead):
            return head, BlockStatus.OK
        symbols, status = head.open_on_host()
        header, read_status = check_block(head.read())
        if status in {BlockStatus.OK, BlockStatus.BAD_PAYLOAD}:
            assert header is not None
            assert (header.codec, read_status) == (Codec.HEAD, BlockStatus.OK)
            assert symbols is None or symbols.pool.size == header.uncompressed_size
        word_starts, words, separator_starts, separators = head.words.read()
        assert (word_starts[-1], separator_starts[-1]) == (words.size, separators.size)
        return symbols, status


class HeadDecoder:
    """See gompfs.engine.base.ArchiveDecoder."""

    def __init__(self, engine: HeadEngine, stored: StoredBlocks, *, verify: bool) -> None:
        """Decodes blocks of `stored` by `engine`."""
        self._engine = engine
        self._source = ArchiveSource(stored, 1)
        self._stored = stored
        self._verify = verify

    def decode(self, numbers: Sequence[int]) -> tuple[memoryview, list[int], list[int]]:
        """See gompfs.engine.base.ArchiveDecoder.decode."""
        blocks = np.array(numbers, np.uint64)
        found = self._source.symbols(blocks)
        symbols = [None if index < 0 else found.symbols[index] for index in found.indexes.tolist()]
        sizes = self._source.uncompressed_sizes[blocks]
        raw = self._stored.read_compressed(numbers)
        out = self._engine.allocate(int(sizes.sum()))
        decoded = self._engine.decode_blocks(raw, out, sizes=sizes.tolist(), symbols=symbols, verify=self._verify)
        statuses = [status or int(each) for status, each in zip(found.statuses.tolist(), decoded, strict=True)]
        return out, (np.cumsum(sizes) - sizes).tolist(), statuses
