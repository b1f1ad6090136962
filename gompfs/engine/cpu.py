"""The CPU engine: the C++ decoders and encoders of native/codec on all cores, with the GIL released."""

from __future__ import annotations

from collections.abc import Sequence

from gompfs._native import codec as _codec
from gompfs.codec import BlockStatus, Codec, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.light_types import TYPE_CHECKING
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from typing import NoReturn

    from gompfs._native.codec import Dictionary
    from gompfs._native.text import SymbolTable
    from gompfs.engine.base import PartSymbols
    from gompfs.gpu.decode.archive_source import StoredBlocks

_STATUSES = tuple(BlockStatus)


class CpuEngine:
    """Compresses and decompresses blocks on host threads. One thread works on one block."""

    name = "cpu"
    batch_bytes = 8 << 20
    encode_batch_bytes = 8 << 20
    num_encode_batches = 2
    num_reencoded = 0
    accelerator = None

    def __init__(self, num_threads: int = 0, reason: str = "asked for") -> None:
        """Uses `num_threads` threads, or one per available core if it is 0."""
        self.num_threads = num_threads or default_threads()
        self.reason = reason
        self.decode_work = {self.name: DecodeWork()}
        self._buffers = _codec.BufferPool()

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu."""
        return True

    def archive_decoder(self, stored: StoredBlocks, *, verify: bool) -> NoReturn:
        """See Engine.archive_decoder."""
        raise TypeError("the CPU decodes batches of all sizes")

    def note_batch(self, num_bytes: int, seconds: float, *, on_cpu: bool) -> None:
        """See Engine.note_batch. There is no choice."""

    def prepare(self, path: str | None) -> None:
        """See Engine.prepare."""

    def allocate(self, size: int) -> memoryview:
        """See Engine.allocate."""
        return self._buffers.allocate(size)

    def encode_blocks(
        self, stream: Buffer, block_size: int, options: CodecOptions, dictionary: Dictionary | None = None
    ) -> list[EncodedBlock]:
        """See Engine.encode_blocks."""
        blocks = _codec.encode_blocks(
            stream, block_size, options.codec, options.level, options.dependency_elimination, self.num_threads,
            options.group_size_log2, options.strict_sources, dictionary,
        )  # fmt: skip
        return [EncodedBlock(block, Codec(codec), size) for block, codec, size in blocks]

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
        with self.decode_work[self.name].batch(len(blocks), len(out)):
            tables: Sequence[SymbolTable | None] | None = symbols  # type: ignore[assignment] # it opens no heads
            statuses = _codec.decode_blocks(blocks, out, verify, self.num_threads, sizes, tables)
        return [_STATUSES[status] for status in statuses]
