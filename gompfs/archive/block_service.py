"""Decoded blocks on request: a bounded cache, one decode per block, and read-ahead for sequential readers.

Blocks follow each other in the stream as files do in their directories, so a reader of many small files in
order looks sequential here too, and finds its next files decoded.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gompfs.codec import BlockStatus

DEFAULT_CACHE_SIZE = 256 << 20
_MAX_STREAMS = 16
_FIRST_READ_AHEAD = 4

DecodeBlocks = Callable[[int, int], Sequence["Block"]]


@dataclass(frozen=True, slots=True)
class Block:
    """A block's bytes, or what is wrong with it."""

    content: memoryview
    status: BlockStatus


@dataclass(slots=True)
class _Stream:
    """A sequential reader, as its requests show it: where it goes on, and what was asked for in its name."""

    next_block: int
    ahead: int
    requested_end: int


class BlockService:
    """Hands out decoded blocks; safe for any number of threads."""

    def __init__(
        self,
        decode: DecodeBlocks,
        num_blocks: int,
        block_size: int,
        cache_size: int = DEFAULT_CACHE_SIZE,
        batch_bytes: Callable[[], int] = lambda: DEFAULT_CACHE_SIZE // 32,
    ) -> None:
        """Serve blocks 0 to `num_blocks` - 1 of `decode(first, count)`; keep `cache_size` bytes of them.

        Reading ahead takes up to `batch_bytes()` at once.
        """
        self._decode = decode
        self._num_blocks = num_blocks
        self._capacity = max(cache_size // block_size, 2)
        self._block_size = block_size
        self._batch_bytes = batch_bytes
        self._cache: OrderedDict[int, Block] = OrderedDict()
        self._pending: dict[int, Future[None]] = {}
        self._streams: OrderedDict[int, _Stream] = OrderedDict()
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False
        self.hits = 0
        self.misses = 0

    def close(self) -> None:
        """Stop reading ahead and drop the cache."""
        with self._lock:
            self._closed = True
            executor = self._executor
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)
        self._cache.clear()

    def get(self, first: int, count: int) -> list[Block]:
        """Blocks `first` to `first + count - 1`, decoded.

        A sequential reader that is faster than reading ahead decodes a large batch by itself, not just what it lacks.
        """
        ahead = self._read_ahead(first, count)
        blocks: list[Block | None] = [None] * count
        while True:
            wait_for: Future[None] | None = None
            missing: tuple[int, int] | None = None
            with self._lock:
                for index in range(count):
                    if blocks[index] is not None:
                        continue
                    block = self._cache.get(first + index)
                    if block is not None:
                        self._cache.move_to_end(first + index)
                        blocks[index] = block
                        self.hits += 1
                    elif wait_for is None and missing is None:
                        wait_for = self._pending.get(first + index)
                        if wait_for is None:
                            missing = self._claim(first + index, max(count - index, ahead))
            if missing is not None:
                decoded = self._load(*missing)
                start = missing[0] - first
                asked = min(len(decoded), count - start)
                blocks[start : start + asked] = decoded[:asked]
                self.misses += asked
            elif wait_for is not None:
                wait_for.result()
            else:
                return [block for block in blocks if block is not None]

    def _claim(self, first: int, limit: int) -> tuple[int, int]:
        """Mark the run of blocks from `first` on that nobody has as pending; called with the lock held."""
        future: Future[None] = Future()
        limit = min(limit, self._num_blocks - first)
        count = 0
        while count < limit and first + count not in self._cache and first + count not in self._pending:
            self._pending[first + count] = future
            count += 1
        return first, count

    def _load(self, first: int, count: int) -> Sequence[Block]:
        """Decode a claimed run into the cache."""
        future = self._pending[first]
        try:
            decoded = self._decode(first, count)
            with self._lock:
                for index, block in enumerate(decoded):
                    self._cache[first + index] = block
                while len(self._cache) > self._capacity:
                    self._cache.popitem(last=False)
            return decoded
        finally:
            with self._lock:
                for index in range(count):
                    del self._pending[first + index]
            future.set_result(None)

    def _read_ahead(self, first: int, count: int) -> int:
        """Follow the sequential readers, and decode in the background what they will ask for next.

        Returns how many blocks this one may decode ahead.
        """
        end = first + count
        with self._lock:
            if self._closed:
                return 0
            stream = self._streams.pop(first, None) or self._streams.pop(first + 1, None)
            if stream is None:
                stream = _Stream(end, 0, end)
            elif end > stream.next_block:
                fair = self._capacity // (2 * (len(self._streams) + 1))  # of the cache, for each reader
                most = min(self._batch_bytes() // self._block_size, fair)
                stream.ahead = min(max(2 * stream.ahead, _FIRST_READ_AHEAD), most)
            stream.next_block = end
            self._streams[end] = stream
            if len(self._streams) > _MAX_STREAMS:
                self._streams.popitem(last=False)
            target = min(end + stream.ahead, self._num_blocks)
            stream.requested_end = max(stream.requested_end, end)
            if target - stream.requested_end < max(stream.ahead // 2, 1):
                return stream.ahead
            start, stream.requested_end = stream.requested_end, target
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="gompfs-read-ahead")
            self._executor.submit(self._load_ahead, start, target)
            return stream.ahead

    def _load_ahead(self, start: int, end: int) -> None:
        while start < end and not self._closed:
            with self._lock:
                claimed = self._claim(start, end - start)
            if claimed[1] > 0:
                self._load(*claimed)
            start += max(claimed[1], 1)
