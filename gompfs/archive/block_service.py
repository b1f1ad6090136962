"""Decoded blocks: a bounded cache that decodes each block once, and read-ahead for sequential and strided readers.

`reader` holds the cached blocks, also for threads that read without the interpreter (native/blocks). If the
archive is a local file and the CPU decodes, `reader` decodes too. This module decodes everything else, and the blocks
that `reader` failed to decode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from gompfs._native.blocks import BlockReader
from gompfs.codec import BlockStatus
from gompfs.engine import Engine
from gompfs.model import Segment

DEFAULT_CACHE_SIZE = 256 << 20
_MAX_DAMAGED = 1 << 12

DecodeBlocks = Callable[[Sequence[int]], Sequence["Block"]]


@dataclass(frozen=True, slots=True)
class Block:
    """The content of a block, or a status that says why it could not be decoded."""

    content: memoryview
    status: BlockStatus


class BlockService:
    """Returns decoded blocks from a cache. Thread-safe."""

    def __init__(
        self,
        decode: DecodeBlocks,
        num_blocks: int,
        block_size: int,
        cache_size: int,
        engine: Engine,
        decode_ahead: int | None = None,
    ) -> None:
        """Serve the blocks 0 to `num_blocks` - 1. `decode` decodes blocks by ascending numbers.

        `cache_size` limits the cache in bytes. `decode_ahead` limits the bytes read ahead for a reader at once (None:
        the engine's batch size).
        """
        self._decode = decode
        self._num_blocks = num_blocks
        self.capacity = max(cache_size // block_size, 2)  # in blocks
        self._block_size = block_size
        self._engine = engine
        self._decode_ahead = decode_ahead
        self._has_source = False
        self.reader = BlockReader(num_blocks, block_size, self.capacity)
        self._damaged: dict[int, Block] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._misses = 0

    def read_from(self, descriptor: int, segments: Sequence[Segment], *, verify: bool) -> None:
        """Let `reader` decode blocks on the CPU, from the archive open at `descriptor`.

        `reader` closes `descriptor`.
        """
        columns = [
            (
                segment.first_block,
                segment.places.uncompressed_size,
                segment.places.archive_offsets,
                segment.places.compressed_sizes,
            )
            for segment in segments
        ]
        self.reader.read_from(descriptor, columns, verify, self._engine.decode_work["cpu"])
        self._has_source = True

    @property
    def hits(self) -> int:
        """How often a requested block was in the cache."""
        return self.reader.num_hits

    @property
    def misses(self) -> int:
        """How often a requested block had to be decoded."""
        return self._misses + self.reader.num_misses

    @property
    def num_cached(self) -> int:
        """How many blocks are in the cache now."""
        return len(self.reader)

    def close(self) -> None:
        """Stop the read-ahead and drop the cache."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self.reader.close()
        if thread is not None:
            thread.join()
        self.reader.clear()
        self._damaged.clear()

    def shrink(self, cache_size: int) -> None:
        """Reduce the cache to at most `cache_size` bytes. The read-ahead never exceeds the cache."""
        self.capacity = min(self.capacity, max(cache_size // self._block_size, 2))
        self.reader.set_capacity(self.capacity)

    def get(self, ino: int, stream_offset: int, size: int) -> list[Block]:
        """Returns the decoded blocks that hold `size` bytes (1 or more) of the stream, read for the file `ino`.

        If `reader` does not decode, a sequential reader that overtakes the read-ahead decodes a large batch itself,
        rather than only the blocks that it lacks.
        """
        first = stream_offset // self._block_size
        end = (stream_offset + size - 1) // self._block_size + 1
        ahead = self.reader.note(ino, stream_offset, size, self._max_ahead())
        if ahead:
            self.start_reading_ahead()
        blocks: list[Block] = []
        while (number := first + len(blocks)) < end:
            found = self.reader.find_or_load(number, end)
            if found:
                blocks += [Block(content, BlockStatus.OK) for content in found]
            elif (damaged := self._damaged.get(number)) is not None:
                blocks.append(damaged)
            elif self.reader.claim(number):
                claimed = [number] if self._has_source else self._claim_around(number, end, ahead)
                decoded = self._load(claimed)[number - claimed[0] : end - claimed[0]]
                self._misses += len(decoded)
                blocks += decoded
            else:
                self.reader.wait(number)
        return blocks

    def decode_into(self, stream_offset: int, out: memoryview) -> bool:
        """Decode a range of the stream into `out`, bypassing the cache.

        Returns False if `reader` does not decode it.
        """
        on_cpu = self._has_source and self._engine.decodes_on_cpu(len(out))
        return on_cpu and self.reader.decode_into(stream_offset, out, self._engine.num_threads)

    def _claim_around(self, number: int, end: int, ahead: int) -> range:
        """Claim `number`'s neighbours that are missing: those up to `end`, and those that the reader will need next.

        Returns the range of claimed blocks, including `number`, which the caller has claimed.
        """
        first = number
        while first > max(number + ahead, 0) and self.reader.claim(first - 1):
            first -= 1
        last = number
        while last + 1 < min(max(end, number + ahead), self._num_blocks) and self.reader.claim(last + 1):
            last += 1
        return range(first, last + 1)

    def _load(self, claimed: Sequence[int]) -> Sequence[Block]:
        """Decode claimed blocks into the cache."""
        left: Collection[int] = claimed
        try:
            decoded = self._decode(claimed)
            blocks = dict(zip(claimed, decoded, strict=True))
            damaged = {number: block for number, block in blocks.items() if block.status is not BlockStatus.OK}
            self._note_damage(damaged)
            good = [number for number in claimed if number not in damaged]
            self.reader.insert(good, [blocks[number].content for number in good], self._engine.num_threads)
            left = damaged
            return decoded
        finally:
            for number in left:
                self.reader.give_up(number)

    def _note_damage(self, blocks: dict[int, Block]) -> None:
        if len(self._damaged) > _MAX_DAMAGED:
            self._damaged.clear()
        self._damaged |= blocks

    def _max_ahead(self) -> int:
        """Returns how many blocks to read ahead at once."""
        size = self._engine.batch_bytes if self._decode_ahead is None else self._decode_ahead
        return size // self._block_size

    def start_reading_ahead(self) -> None:
        """Start a thread that decodes the blocks that readers will need next, until the service is closed."""
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._read_ahead, name="gompfs-read-ahead", daemon=True)
                self._thread.start()

    def _read_ahead(self) -> None:
        while (wanted := self.reader.wait_ahead(self._max_ahead())) is not None:
            wanted.sort()
            if self._has_source and self._engine.decodes_on_cpu(len(wanted) * self._block_size):
                self.reader.load(wanted, self._engine.num_threads)
            elif claimed := list(filter(self.reader.claim, wanted)):
                try:
                    self._load(claimed)
                except Exception:  # a reader that requests these blocks gets the error
                    continue
