"""Decoded blocks on request: a bounded cache, one decode per block, and read-ahead for sequential and strided readers.

`reader` holds the decoded blocks as well, for threads that read without the interpreter (kernels/cpu/reading).
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import takewhile

from gompfs._reading import BlockReader
from gompfs.codec import BlockStatus

log = logging.getLogger(__name__)

DEFAULT_CACHE_SIZE = 256 << 20

DecodeBlocks = Callable[[Sequence[int]], Sequence["Block"]]


@dataclass(frozen=True, slots=True)
class Block:
    """A block's bytes, or what is wrong with it."""

    content: memoryview
    status: BlockStatus


class BlockService:
    """Hands out decoded blocks; safe for any number of threads."""

    def __init__(
        self,
        decode: DecodeBlocks,
        num_blocks: int,
        block_size: int,
        cache_size: int,
        decode_ahead: Callable[[], int],
    ) -> None:
        """Serve blocks 0 to `num_blocks` - 1 of `decode(numbers)`, whose numbers rise; keep `cache_size` bytes.

        Up to `decode_ahead()` bytes are decoded ahead of a reader, at once.
        """
        self._decode = decode
        self._num_blocks = num_blocks
        self.capacity = max(cache_size // block_size, 2)  # in blocks
        self._block_size = block_size
        self._ahead_bytes = decode_ahead
        self.reader = BlockReader(num_blocks, block_size, self.capacity)
        self._cache: OrderedDict[int, Block] = OrderedDict()
        self._pending: dict[int, Future[None]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._hits = 0
        self.misses = 0

    @property
    def hits(self) -> int:
        """How often a block was there when it was asked for."""
        return self._hits + self.reader.num_hits

    @property
    def num_cached(self) -> int:
        """How many blocks are there now."""
        return len(self._cache)

    def close(self) -> None:
        """Stop reading ahead and drop the cache."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self.reader.close()
        if thread is not None:
            thread.join()
        self.reader.clear()
        self._cache.clear()

    def shrink(self, cache_size: int) -> None:
        """Keep `cache_size` bytes from now on, or what it was where that is less."""
        with self._lock:
            self.capacity = min(self.capacity, max(cache_size // self._block_size, 2))
            self._evict()

    def get(self, ino: int, stream_offset: int, size: int) -> list[Block]:
        """The decoded blocks of `size` bytes of the stream, 1 or more, which are read for the file `ino`.

        A sequential reader that is faster than reading ahead decodes a large batch by itself, not just what it lacks.
        """
        first = stream_offset // self._block_size
        count = (stream_offset + size - 1) // self._block_size - first + 1
        ahead = self.reader.note(ino, stream_offset, size, self._ahead_bytes() // self._block_size)
        if ahead:
            self._start_reading_ahead()
        blocks: list[Block | None] = [None] * count
        while True:
            wait_for: Future[None] | None = None
            missing: list[int] = []
            with self._lock:
                for index in range(count):
                    if blocks[index] is not None:
                        continue
                    block = self._cache.get(first + index)
                    if block is not None:
                        self._cache.move_to_end(first + index)
                        blocks[index] = block
                        self._hits += 1
                    elif wait_for is None and not missing:
                        wait_for = self._pending.get(first + index)
                        if wait_for is None:
                            start = first + index
                            begin = self._free_before(start, -ahead)
                            end = min(begin + max(first + count - begin, ahead), self._num_blocks)
                            missing = self._claim(takewhile(self._is_free, range(begin, end)))
            if missing:
                decoded = self._load(missing)[start - missing[0] :]
                asked = min(len(decoded), first + count - start)
                blocks[start - first : start - first + asked] = decoded[:asked]
                self.misses += asked
            elif wait_for is not None:
                wait_for.result()
            else:
                return [block for block in blocks if block is not None]

    def _is_free(self, number: int) -> bool:
        """Whether nobody has a block, nor decodes it; called with the lock held."""
        return number not in self._cache and number not in self._pending

    def _free_before(self, end: int, limit: int) -> int:
        """Where the run of up to `limit` blocks before `end` begins that nobody has; called with the lock held."""
        first = end
        while first > max(end - limit, 0) and self._is_free(first - 1):
            first -= 1
        return first

    def _claim(self, numbers: Iterable[int]) -> list[int]:
        """Mark blocks as pending; called with the lock held."""
        future: Future[None] = Future()
        claimed = []
        for number in numbers:
            self._pending[number] = future
            claimed.append(number)
        return claimed

    def _load(self, numbers: Sequence[int]) -> Sequence[Block]:
        """Decode claimed blocks into the cache."""
        future = self._pending[numbers[0]]
        try:
            decoded = self._decode(numbers)
            with self._lock:
                for number, block in zip(numbers, decoded, strict=True):
                    self._cache[number] = block
                    if block.status is BlockStatus.OK:
                        self.reader.insert(number, block.content)
                self._evict()
            return decoded
        finally:
            with self._lock:
                for number in numbers:
                    del self._pending[number]
            future.set_result(None)

    def _evict(self) -> None:
        """Let go of the oldest blocks that nobody has read since this last came by; called with the lock held."""
        while len(self._cache) > self.capacity:
            number, block = self._cache.popitem(last=False)
            if self.reader.take_use(number):
                self._cache[number] = block
            else:
                self.reader.erase(number)

    def _start_reading_ahead(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._read_ahead, name="gompfs-read-ahead", daemon=True)
                self._thread.start()

    def _read_ahead(self) -> None:
        """Decode what readers will ask for next, until the service is closed."""
        while (wanted := self.reader.wait_ahead()) is not None:
            with self._lock:
                claimed = self._claim(filter(self._is_free, sorted(wanted)))
            if not claimed:
                continue
            try:
                self._load(claimed)
            except Exception as error:  # whoever asks for these blocks meets it too
                log.debug("blocks could not be read ahead: %s", error)
