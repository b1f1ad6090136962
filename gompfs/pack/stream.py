"""Writes blocks: cuts a stream into blocks, compresses and writes batches in threads, records the blocks' positions."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from xxhash import xxh3_128, xxh3_128_digest

from gompfs._native.codec import decode_blocks
from gompfs._native.sources import ContentCopier
from gompfs.codec import BLOCK_ALIGNMENT, BLOCK_HEADER_SIZE, Codec, CodecOptions, EncodedBlock
from gompfs.engine import Engine
from gompfs.engine.cpu import CpuEngine
from gompfs.index.written_blocks import WrittenBlocks
from gompfs.model import PartKind, WrittenBlock

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary
    from gompfs._native.sources import Contents


SAMPLE_SIZE = 64 << 20
"""The size of the content at the beginning of a stream from which its dictionary is chosen, in bytes."""

ChooseDictionary: TypeAlias = "Callable[[Sequence[memoryview]], Dictionary | None]"


class BlockWriter:
    """Appends compressed blocks to a file, and records the position of each."""

    def __init__(self, file: BinaryIO, archive_offset: int) -> None:
        """`archive_offset` is the current position of `file`."""
        self._file = file
        self.archive_offset = archive_offset
        self.digest = xxh3_128()

    def write(self, blocks: Sequence[EncodedBlock]) -> list[WrittenBlock]:
        """Write blocks, each aligned to BLOCK_ALIGNMENT."""
        written = []
        pieces: list[bytes] = []
        archive_offset = self.archive_offset
        for block in blocks:
            padding = -archive_offset % BLOCK_ALIGNMENT
            pieces += (bytes(padding), block.data)
            archive_offset += padding
            written.append(WrittenBlock(archive_offset, len(block.data), int(block.codec)))
            archive_offset += len(block.data)
        self.digest.update(b"".join([block.data[:BLOCK_HEADER_SIZE] for block in blocks]))
        self._file.writelines(pieces)
        self.archive_offset = archive_offset
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
    """The solid stream of a segment: appended bytes are cut into blocks, compressed, and written, in threads.

    The stream is cut into parts. Each part begins with a new block, so the addresses from the end of a part to the next
    multiple of the block size have no bytes.
    """

    def __init__(
        self,
        writer: BlockWriter,
        engine: Engine,
        block_size: int,
        codec: CodecOptions,
        part_size: int | None = None,
        dictionary: Dictionary | ChooseDictionary | None = None,
        *,
        check: bool = False,
    ) -> None:
        """With `part_size`, a part ends after that many bytes, unless `end_part` ends it before.

        With a `dictionary`, blocks may copy from it. A function chooses it from the first SAMPLE_SIZE bytes, before any
        block is written; they stay in memory until then. With `check`, blocks are decoded again, and one that does not
        give its content is replaced by one that stores it.
        """
        self._writer = writer
        self._engine = engine
        self._block_size = block_size
        self._codec = codec
        self._choose = dictionary if callable(dictionary) else None
        self._dictionary = None if callable(dictionary) else dictionary
        self._held: list[memoryview] = []  # batches from which the dictionary will be chosen
        self._check = check
        self.num_wrong = 0  # blocks that did not decode to their content
        self._max_part_size = part_size
        self._batch_size = max(engine.encode_batch_bytes // block_size, 1) * block_size
        self._batch: memoryview | None = None  # the next batch, of which _num_filled bytes are there
        self._num_filled = 0
        self._max_batches = engine.num_encode_batches + 1
        self._encoder = ThreadPoolExecutor(engine.num_encode_batches, thread_name_prefix="gompfs-encode")
        self._output = ThreadPoolExecutor(1, thread_name_prefix="gompfs-write")
        self._batches: deque[Future[None]] = deque()  # that have not been written
        self._copier: ContentCopier | None = None
        self._blocks = WrittenBlocks()
        self._part_starts: list[int] = []  # the address at which each ended part begins
        self._part_positions = [0]  # how many bytes are before each part, also before the open one
        self._part_start = 0  # the address at which the open part begins
        self._part_size = 0  # of the open part
        self._parts: list[tuple[PartKind | None, int]] = []  # that have ended; None is the kind of most

    @property
    def parts(self) -> list[tuple[PartKind, int]]:
        """The kind and the size in bytes of each part, after `finish`."""
        usual = PartKind.DATA if self._dictionary is None else PartKind.DICTIONARY
        return [(usual if kind is None else kind, size) for kind, size in self._parts]

    @property
    def address(self) -> int:
        """The address of the next byte, relative to the start of the segment."""
        return self._part_start + self._part_size

    @property
    def size(self) -> int:
        """The number of bytes appended."""
        return self._part_positions[-1] + self._part_size

    def append(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        view = memoryview(data)
        while len(view):
            room = self._room(len(view))
            room[:] = view[: len(room)]
            view = view[len(room) :]
            self._take_room(len(room))

    def append_contents(self, contents: Contents) -> None:
        """Append the contents of several files."""
        offset = 0
        while offset < contents.size:
            room = self._room(contents.size - offset)
            if self._copier is None:
                self._copier = ContentCopier()
            self._copier.copy(contents, offset, room)
            offset += len(room)
            self._take_room(len(room))

    @property
    def has_one_part(self) -> bool:
        """Whether all bytes are in one part so far, so that an address is the number of bytes before it."""
        return self._max_part_size is None and not self._part_starts

    def _room(self, size: int) -> memoryview:
        """Returns memory for up to `size` bytes that follow in the open part, at least one."""
        if self._batch is None:
            self._batch = self._engine.allocate(self._batch_size)
        if self._max_part_size is not None:
            size = min(size, self._max_part_size - self._part_size)
        return self._batch[self._num_filled : self._num_filled + size]

    def _take_room(self, size: int) -> None:
        """Count bytes that were copied to the memory that `_room` returned."""
        assert self._batch is not None
        self._num_filled += size
        self._part_size += size
        if self._num_filled == self._batch_size:
            self._submit(self._batch)
        if self._part_size == self._max_part_size:
            self.end_part()

    def end_part(self, kind: PartKind | None = None) -> None:
        """End the open part, if it has bytes: the next byte begins a new block.

        Its kind is DATA by default, or DICTIONARY if the stream has a dictionary.
        """
        if not self._part_size:
            return
        if self._batch is not None:
            self._submit(self._batch[: self._num_filled])
        self._parts.append((kind, self._part_size))
        self._part_starts.append(self._part_start)
        self._part_positions.append(self._part_positions[-1] + self._part_size)
        self._part_start += -(-self._part_size // self._block_size) * self._block_size
        self._part_size = 0

    def runs(self, position: int, size: int) -> Iterator[tuple[int, int]]:
        """Yields address and size of the runs that hold `size` bytes after the first `position`: one in each part."""
        index = bisect_right(self._part_positions, position) - 1
        while size:
            offset = position - self._part_positions[index]
            if index == len(self._parts):
                yield self._part_start + offset, size
                return
            count = min(size, self._parts[index][1] - offset)
            yield self._part_starts[index] + offset, count
            position, size, index = position + count, size - count, index + 1

    def finish(self) -> WrittenBlocks:
        """End the last part, and write the remaining bytes. Returns all blocks."""
        self.end_part()
        self._choose_dictionary()
        while self._batches:
            self._batches.popleft().result()
        self._encoder.shutdown()
        self._output.shutdown()
        return self._blocks

    def abandon(self) -> None:
        """Stop compressing. Nothing more is written."""
        self._output.shutdown(wait=False, cancel_futures=True)
        self._encoder.shutdown(cancel_futures=True)
        self._output.shutdown()

    def _submit(self, batch: memoryview) -> None:
        if self._copier is not None:
            self._copier.wait()
        self._batch = None
        self._num_filled = 0
        if self._choose is None:
            self._encode_later(batch)
            return
        self._held.append(batch)
        if sum(map(len, self._held)) >= SAMPLE_SIZE:
            self._choose_dictionary()

    def _choose_dictionary(self) -> None:
        """Choose the dictionary if that is still to be done, and have what waited for it encoded."""
        held, self._held = self._held, []
        if self._choose is not None and held:
            self._dictionary = self._choose(held)
        self._choose = None
        for batch in held:
            self._encode_later(batch)

    def _encode_later(self, batch: memoryview) -> None:
        while len(self._batches) >= self._max_batches:
            self._batches.popleft().result()
        encoded = self._encoder.submit(self._encode, batch)
        self._batches.append(self._output.submit(self._write, encoded))

    def _encode(self, batch: memoryview) -> list[EncodedBlock]:
        blocks = self._engine.encode_blocks(batch, self._block_size, self._codec, self._dictionary)
        return self._checked(batch, blocks) if self._check else blocks

    def _checked(self, batch: memoryview, blocks: list[EncodedBlock]) -> list[EncodedBlock]:
        """Decode the blocks of a batch. Returns them, with stored blocks in place of those that give other bytes."""
        engine, size = self._engine, self._block_size
        pieces = [batch[start : start + size] for start in range(0, len(batch), size)]
        sizes = [len(piece) for piece in pieces]
        symbols = [self._dictionary.table] * len(pieces) if self._dictionary is not None else None
        out = engine.allocate(len(batch))
        decode_blocks([block.data for block in blocks], out, False, engine.num_threads, sizes, symbols)
        if xxh3_128_digest(out) == xxh3_128_digest(batch):
            return blocks
        for number, piece in enumerate(pieces):
            if bytes(out[number * size : number * size + len(piece)]) != bytes(piece):
                blocks[number : number + 1] = CpuEngine(1).encode_blocks(piece, size, CodecOptions(Codec.STORED))
                self.num_wrong += 1
        return blocks

    def _write(self, encoded: Future[list[EncodedBlock]]) -> None:
        self._blocks.extend(self._writer.write(encoded.result()))
