"""Writes blocks: cuts a stream into blocks, compresses batches in a thread, and records the blocks' positions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO

from xxhash import xxh3_128

from gompfs.codec import BLOCK_ALIGNMENT, BLOCK_HEADER_SIZE, CodecOptions, EncodedBlock
from gompfs.engine import Engine

_BATCH_BYTES = 8 << 20
_MAX_BATCHES = 2


class BlockWriter:
    """Appends compressed blocks to a file, and records the position of each."""

    def __init__(self, file: BinaryIO, archive_offset: int) -> None:
        """`archive_offset` is the current position of `file`."""
        self._file = file
        self.archive_offset = archive_offset
        self.digest = xxh3_128()

    def write(self, blocks: Sequence[EncodedBlock]) -> list[tuple[int, int, int]]:
        """Write blocks, each aligned to BLOCK_ALIGNMENT. Returns (archive_offset, compressed_size, codec) of each."""
        written = []
        for block in blocks:
            self.pad(BLOCK_ALIGNMENT)
            written.append((self.archive_offset, block.compressed_size, int(block.codec)))
            self.digest.update(block.data[:BLOCK_HEADER_SIZE])
            self._write(block.data)
        return written

    def pad(self, alignment: int) -> None:
        """Write zeros up to the next multiple of `alignment`."""
        self._write(bytes(-self.archive_offset % alignment))

    def append(self, data: bytes) -> int:
        """Write plain bytes. Returns their archive_offset."""
        archive_offset = self.archive_offset
        self._write(data)
        return archive_offset

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self.archive_offset += len(data)


class StreamWriter:
    """The solid stream of a segment: appended bytes are cut into blocks, compressed in a thread, and written."""

    def __init__(self, writer: BlockWriter, engine: Engine, block_size: int, codec: CodecOptions) -> None:
        self._writer = writer
        self._engine = engine
        self._block_size = block_size
        self._codec = codec
        self._batch_size = max(_BATCH_BYTES // block_size, 1) * block_size
        self._buffer = bytearray()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="gompfs-encode")
        self._batches: deque[Future[list[EncodedBlock]]] = deque()
        self._blocks: list[tuple[int, int, int]] = []
        self.size = 0

    def append(self, data: bytes | memoryview) -> int:
        """Append bytes to the stream. Returns their offset from the start of the segment."""
        start = self.size
        self.size += len(data)
        self._buffer += data
        while len(self._buffer) >= self._batch_size:
            batch = bytes(memoryview(self._buffer)[: self._batch_size])
            del self._buffer[: self._batch_size]
            self._submit(batch)
        return start

    def finish(self) -> list[tuple[int, int, int]]:
        """Write the remaining bytes. Returns (archive_offset, compressed_size, codec) of all blocks."""
        if self._buffer:
            self._submit(bytes(self._buffer))
            self._buffer.clear()
        while self._batches:
            self._collect()
        self._executor.shutdown()
        return self._blocks

    def abandon(self) -> None:
        """Stop compressing. Nothing more is written."""
        self._executor.shutdown(cancel_futures=True)

    def _submit(self, batch: bytes) -> None:
        while len(self._batches) >= _MAX_BATCHES:
            self._collect()
        self._batches.append(
            self._executor.submit(self._engine.encode_blocks, batch, self._block_size, self._codec)
        )

    def _collect(self) -> None:
        self._blocks += self._writer.write(self._batches.popleft().result())
