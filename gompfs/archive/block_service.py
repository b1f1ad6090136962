"""Owns the C++ reader of an archive's files: what it decodes with, and the thread that decodes ahead of readers.

`reader` (native/blocks) turns ranges of files into bytes, for threads of a mount as for Python. It asks for two things
that it cannot know: the layout of a file that it meets for the first time (LayoutQuery), and the content of missing
blocks (StoredBlocks), if the archive is not a local file or a device decodes a batch.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from array import array
from collections.abc import Sequence

from gompfs._native.blocks import BlockReader, ReadFailure
from gompfs._native.text import PartHeads
from gompfs.archive.stored_blocks import StoredBlocks
from gompfs.engine import Engine
from gompfs.errors import CorruptIndexError
from gompfs.format import LocalFile
from gompfs.index.packed_rows import LAYOUTS
from gompfs.index.reader import IndexReader
from gompfs.model import Segment

DEFAULT_CACHE_SIZE = 64 << 20
_MIN_EXTENTS, _MAX_EXTENTS = 16, 1 << 12  # how many extents one query reads from the index
_DECODED_AT_ONCE = 32 << 20  # or more, if the engine fills several devices
_ALL = 1 << 62


def _moved(offsets: memoryview[int], start: int) -> memoryview[int] | array[int]:
    """Returns the offsets in a file of what has these offsets in an archive that begins at `start`."""
    return array("Q", (offset + start for offset in offsets)) if start else offsets


class LayoutQuery:
    """Reads the layouts of files from the index.

    A file out of order is read alone. While a program reads files in the order of the index, a query also reads the
    files after the one that is asked for, and the number of extents in one query doubles.
    """

    def __init__(self, index: IndexReader) -> None:
        self._index = index
        self._end = 0
        self._num_extents = 0

    def __call__(self, ino: int, alone: bool) -> tuple[Sequence[bytes], int]:
        """Returns the columns of LAYOUTS for a file and, unless `alone`, for those after it, and where they end.

        Raises CorruptIndexError.
        """
        goes_on = 0 <= ino - self._end < _MAX_EXTENTS
        self._num_extents = min(max(2 * self._num_extents, _MIN_EXTENTS), _MAX_EXTENTS) if goes_on else 0
        if self._num_extents and not alone:
            try:
                rows = self._index.packed_rows(LAYOUTS, ino, self._num_extents)
                self._end = rows.end
                return rows.columns, rows.end
            except CorruptIndexError:
                pass
        rows = self._index.packed_rows(LAYOUTS, ino, _ALL, ino)
        self._end = rows.end
        return rows.columns, rows.end


class BlockService:
    """Reads the files of an archive through a cache of decoded blocks. Thread-safe."""

    def __init__(
        self,
        stored: StoredBlocks,
        index: IndexReader,
        num_blocks: int,
        block_size: int,
        cache_size: int,
        engine: Engine,
        decode_ahead: int | None = None,
    ) -> None:
        """Serve the blocks 0 to `num_blocks` - 1. `stored` decodes those that `reader` cannot decode.

        `cache_size` limits the cache in bytes. `decode_ahead` limits the bytes read ahead for a reader at once (None:
        the engine's batch size).
        """
        self.capacity = max(cache_size // block_size, 2)  # in blocks
        self._block_size = block_size
        self._engine = engine
        self._decode_ahead = decode_ahead
        self.reader = BlockReader(num_blocks, block_size, self.capacity)
        self.reader.max_ahead = self._max_ahead()
        self.reader.find_layouts_with(LayoutQuery(index))
        at_once = max(_DECODED_AT_ONCE, engine.batch_bytes)
        self.reader.decode_with(stored.decode_for_reader, engine.num_threads, at_once)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = 0  # the process that has the thread
        self._closed = False

    def read_from(self, file: LocalFile, segments: Sequence[Segment], heads: PartHeads, *, verify: bool) -> None:
        """Let `reader` decode blocks on the CPU, from a duplicate of the descriptor of `file`.

        `heads` opens the heads of parts.
        """
        columns = [
            (
                segment.first_block,
                _moved(segment.blocks.archive_offsets, file.start),
                segment.blocks.compressed_sizes,
                segment.blocks.uncompressed_sizes,
            )
            for segment in segments
        ]
        self.reader.read_from(file.duplicate(), columns, heads, verify, self._engine.decode_work["cpu"])

    @property
    def hits(self) -> int:
        """How often a requested block was in the cache."""
        return self.reader.num_hits

    @property
    def misses(self) -> int:
        """How often a requested block had to be decoded."""
        return self.reader.num_misses

    @property
    def num_cached(self) -> int:
        """How many blocks are in the cache now."""
        return len(self.reader)

    def close(self) -> None:
        """Stop the read-ahead and drop the cache."""
        atexit.unregister(self._close_at_exit)
        with self._lock:
            self._closed = True
            thread = self._thread
        self.reader.close()
        if thread is not None:
            thread.join()
        self.reader.clear()

    def shrink(self, cache_size: int) -> None:
        """Reduce the cache to at most `cache_size` bytes. The read-ahead never exceeds the cache."""
        self.capacity = min(self.capacity, max(cache_size // self._block_size, 2))
        self.reader.set_capacity(self.capacity)

    def read(self, ino: int, file_offset: int, size: int) -> list[memoryview] | ReadFailure:
        """Returns up to `size` bytes of a file, as views of decoded blocks in order, or why they cannot be read."""
        pieces = self.reader.read(ino, file_offset, size)
        if self._thread is None and self.reader.has_wanted:
            self.start_reading_ahead()
        return pieces

    def decode_into(self, ino: int, file_offset: int, out: memoryview) -> ReadFailure | None:
        """Decode a part of a file into `out`, which holds zeros, bypassing the cache. Returns why it failed, if so."""
        on_cpu = self._engine.decodes_on_cpu(len(out))
        return self.reader.decode_into(ino, file_offset, out, self._engine.num_threads, on_cpu)

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
                self._process = os.getpid()
                atexit.register(self._close_at_exit)

    def _close_at_exit(self) -> None:
        """End the thread before the interpreter goes away: waking up in C++ after that would end the process.

        In a child of a fork, there is no such thread.
        """
        if os.getpid() == self._process:
            self.close()

    def _read_ahead(self) -> None:
        while (wanted := self.reader.wait_ahead()) is not None:
            wanted.sort()
            on_cpu = self._engine.decodes_on_cpu(len(wanted) * self._block_size)
            started = time.perf_counter()
            try:
                num_loaded = self.reader.load(wanted, self._engine.num_threads, on_cpu)
            except Exception:  # a reader that requests these blocks gets the error
                continue
            self._engine.note_batch(num_loaded * self._block_size, time.perf_counter() - started, on_cpu=on_cpu)
            self.reader.max_ahead = self._max_ahead()  # the engine `auto` prefers larger batches once it has a GPU
