"""An engine as that of a GPU: it decodes for all readers and opens the heads of parts itself, but on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oracle.block import check_block

from gompfs._native.text import SymbolTable
from gompfs.codec import BlockStatus
from gompfs.codec.block import Buffer
from gompfs.codec.codecs import Codec
from gompfs.codec.stored_head import StoredHead
from gompfs.engine.cpu import CpuEngine

if TYPE_CHECKING:
    from gompfs.engine.base import PartSymbols


class HeadEngine(CpuEngine):
    """Takes heads that are not opened yet."""

    name = "heads"

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu."""
        return False

    def opens_heads(self, num_bytes: int) -> bool:
        """See Engine.opens_heads."""
        return True

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
