"""The text of files as words on a GPU: decodes blocks into its memory, and splits the text into words there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive
from gompfs.codec import BlockStatus
from gompfs.errors import CorruptBlockError, StatsUnavailableError
from gompfs.gpu.arrays import Array, TextDevice
from gompfs.gpu.words import MAX_TEXT, Copies, WordTable, count_before, find_nuls, gather, padded_size
from gompfs.grammar import Grammar, TokenizedFiles
from gompfs.statistics.content import ContentText
from gompfs.statistics.content_layout import Numbers, outside, union

if TYPE_CHECKING:
    from gompfs._native.parts import PartHeads, SymbolTable

_BATCH_BYTES = 128 << 20
_BATCHES_IN_MEMORY = 32  # a batch of one-byte words takes 12 times its size; the word table, as much
_PROBE_SIZE = 8192


@dataclass(frozen=True)
class TextBatch:
    """Consecutive pieces of files: the indexes of the files, the stream offsets and the sizes; int64 arrays."""

    files: Numbers
    stream_offsets: Numbers
    sizes: Numbers
    goes_on: bool
    """Whether the last file continues in the next batch."""

    def only(self, chosen: NDArray[np.bool_]) -> TextBatch:
        """Returns the pieces that `chosen` selects."""
        goes_on = self.goes_on and bool(chosen[-1])
        return TextBatch(self.files[chosen], self.stream_offsets[chosen], self.sizes[chosen], goes_on)

    def blocks(self, block_size: int) -> tuple[Numbers, Numbers]:
        """Returns the first and the last block of the stream for each piece."""
        return self.stream_offsets // block_size, (self.stream_offsets + self.sizes - 1) // block_size

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which pieces are the first of their file in this batch."""
        return np.asarray(np.diff(self.files, prepend=-1) != 0)

    @property
    def is_last(self) -> NDArray[np.bool_]:
        """Which pieces are the last of their file in this batch."""
        return np.asarray(np.diff(self.files, append=-1) != 0)


@dataclass(frozen=True)
class _StoredBlocks:
    """Stored blocks of the stream: ascending numbers, compressed bytes, and the expected uncompressed sizes."""

    numbers: Numbers
    blocks: list[memoryview]
    sizes: Numbers
    symbols: list[SymbolTable | None]
    """Those of each block's part, or the dictionary."""
    without_symbols: NDArray[np.uint8]
    """A BlockStatus for each block, other than OK if the symbols that it needs are damaged."""


class DeviceText:
    """Finds the words of files on a device. For one use only."""

    def __init__(self, archive: Archive, content: ContentText, device: TextDevice) -> None:
        """Read the files of `content`. Binary files are left out, and added to `content.binary_files`."""
        self._archive = archive
        self._content = content
        self._layout = content.layout
        self._device = device
        with device:
            self._table = WordTable(device, content.word_rule)
        self._batch_bytes = max(min(_BATCH_BYTES, device.memory // _BATCHES_IN_MEMORY), _PROBE_SIZE)
        self._binary: set[int] = set()
        self._carried: Array | None = None  # the end of a file that continues in the next batch, from its last word on
        self._goes_on = False

    def word_counts(self) -> tuple[Grammar, NDArray[np.uint64]]:
        """Returns all different words as a grammar that holds nothing else, and the count of each (uint64).

        Raises CorruptBlockError if a file lies in a damaged block, StatsUnavailableError if there is too little memory.
        """
        return self._read(keep_words=False)

    def grammar(self) -> Grammar:
        """Returns all words in order as a grammar without rules. Raises the same errors as `word_counts`."""
        return self._read(keep_words=True)[0]

    def _read(self, *, keep_words: bool) -> tuple[Grammar, NDArray[np.uint64]]:
        download = self._device.download
        batches = []
        try:
            with self._device:
                for batch, stored in self._with_blocks():
                    taken = self._take(batch, stored, keep_words=keep_words)
                    if taken is not None:
                        batches.append(taken)
                found = self._table.dictionary()
                words = download(found.starts), download(found.bytes)
                counts = download(found.counts)
                ranks = download(found.ranks if batches else found.ranks[:0])
        except MemoryError:
            raise StatsUnavailableError(
                f"the words need more memory than is allowed on {self._device.name}: {self._device.memory >> 20} MiB"
            ) from None
        self._content.binary_files += self._layout.inos[sorted(self._binary)].tolist()
        return Grammar.of_tokens(words, self._content.word_rule, ranks, batches), counts

    def _batches(self) -> Iterator[TextBatch]:
        """Yields all files, cut into batches. The bytes that tell whether a file is binary are never split."""
        layout = self._layout
        file_ends, run_ends = np.cumsum(layout.sizes), np.cumsum(layout.run_sizes)
        run_files = np.repeat(np.arange(layout.inos.size), np.diff(layout.starts))
        begin, total = 0, int(layout.sizes.sum())
        while begin < total:
            end = min(begin + self._batch_bytes, total)
            file = int(np.searchsorted(file_ends, end, "left"))  # the file of the last byte
            start = int(file_ends[file] - layout.sizes[file])
            if end != file_ends[file] and begin < start and end - start < _PROBE_SIZE:
                end = start
            first, last = np.searchsorted(run_ends, begin, "right"), np.searchsorted(run_ends, end, "left")
            runs = slice(int(first), int(last) + 1)
            begins = np.maximum(run_ends[runs] - layout.run_sizes[runs], begin)
            skipped = begins - (run_ends[runs] - layout.run_sizes[runs])
            sizes = np.minimum(run_ends[runs], end) - begins
            goes_on = bool(start < end < file_ends[file])
            yield TextBatch(run_files[runs], layout.stream_offsets[runs] + skipped, sizes, goes_on)
            begin = end

    def _with_blocks(self) -> Iterator[tuple[TextBatch, _StoredBlocks]]:
        """Yields the batches with their blocks.

        A thread reads the blocks while the device works on the batch before.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="gompfs-read-text") as reader:
            waiting: tuple[TextBatch, Future[_StoredBlocks]] | None = None
            for batch in map(self._without_binary_files, self._batches()):
                if not batch.files.size:
                    continue
                following = batch, reader.submit(self._read_blocks, batch)
                if waiting is not None:
                    yield waiting[0], waiting[1].result()
                waiting = following
            if waiting is not None:
                yield waiting[0], waiting[1].result()

    def _without_binary_files(self, batch: TextBatch) -> TextBatch:
        return batch.only(~np.isin(batch.files, list(self._binary)))

    def _read_blocks(self, batch: TextBatch) -> _StoredBlocks:
        numbers = union(*batch.blocks(self._archive.block_size))
        blocks: list[memoryview] = []
        sizes: list[int] = []
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
            more, more_sizes = self._archive.stored.read_stream(int(run[0]), run.size)
            blocks += more
            sizes += more_sizes
        symbols, statuses = cast("PartHeads", self._archive.stored.heads).open(numbers.tolist())
        return _StoredBlocks(numbers, blocks, np.array(sizes, np.int64), symbols, np.frombuffer(statuses, np.uint8))

    def _take(self, batch: TextBatch, stored: _StoredBlocks, *, keep_words: bool) -> TokenizedFiles | None:
        """Add the words of a batch to the table. Returns the words of each file if `keep_words`."""
        batch = self._without_binary_files(batch)
        continues, self._goes_on = self._goes_on, batch.goes_on
        if not batch.files.size:
            return None
        start = 0 if self._carried is None else int(self._carried.size)
        targets = start + np.cumsum(batch.sizes) - batch.sizes + np.cumsum(batch.is_first) - 1
        size = int(targets[-1] + batch.sizes[-1])
        if size >= MAX_TEXT:
            raise MemoryError
        text, chosen = self._gather_text(batch, stored, targets, size, continues)
        batch, targets = batch.only(chosen), targets[chosen]
        self._goes_on = batch.goes_on
        if self._carried is not None:
            text[:start] = self._carried
        words, again = self._table.add(text, size, goes_on=batch.goes_on)
        self._carried = text[size - again : size].copy() if again else None
        if not keep_words:
            return None
        is_last = batch.is_last
        ends = count_before(self._device, words, (targets + batch.sizes)[is_last].astype(np.uint32))
        inos = self._layout.inos[batch.files[is_last]].astype(np.uint64)
        return TokenizedFiles(continues, inos, ends, self._device.download(words.entries))

    def _gather_text(
        self, batch: TextBatch, stored: _StoredBlocks, targets: Numbers, size: int, continues: bool
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Returns the text of a batch, with each piece at its target offset, and which pieces it holds.

        Binary files are left out.
        """
        content, sources = self._decode(batch, stored)

        def gather_pieces(chosen: NDArray[np.bool_]) -> Array:
            columns = (column[chosen].astype(np.uint64) for column in (sources, targets, batch.sizes))
            return gather(self._device, content, Copies(*columns), padded_size(size))

        chosen = np.ones(batch.files.size, np.bool_)
        text = gather_pieces(chosen)
        begins = batch.is_first
        begins[0] = not continues
        starts = targets[begins]
        files = batch.files[begins]
        sizes = np.minimum(self._layout.sizes[files], _PROBE_SIZE)
        is_binary = find_nuls(self._device, text, starts.astype(np.uint64), sizes.astype(np.uint64))
        if is_binary.any():
            self._binary.update(files[is_binary].tolist())
            chosen = ~np.isin(batch.files, files[is_binary])
            text = gather_pieces(chosen)
        return text, chosen

    def _decode(self, batch: TextBatch, stored: _StoredBlocks) -> tuple[Array, Numbers]:
        """Returns the content of the blocks that hold the pieces, and the offset of each piece in it."""
        block_size = self._archive.block_size
        content, offsets, statuses = self._device.decode_blocks(stored.blocks, stored.sizes, stored.symbols)
        self._check(batch, stored.numbers, np.maximum(statuses, stored.without_symbols))
        starts = offsets.astype(np.int64)
        first, last = (np.searchsorted(stored.numbers, numbers) for numbers in batch.blocks(block_size))
        sources: Numbers = starts[first] + batch.stream_offsets % block_size
        end = (batch.stream_offsets + batch.sizes - 1) % block_size
        is_outside = (starts[last] + end + 1 - sources != batch.sizes) | (end >= stored.sizes[last])
        if is_outside.any():
            raise outside(self._archive, self._ino(batch, int(np.argmax(is_outside))), "its segment")
        return content, sources

    def _check(self, batch: TextBatch, numbers: Numbers, statuses: NDArray[np.uint8]) -> None:
        """Raise CorruptBlockError for the first piece that lies in a damaged block."""
        first, last = batch.blocks(self._archive.block_size)
        damaged = np.flatnonzero(statuses)
        if not damaged.size:
            return
        nearest = np.minimum(np.searchsorted(numbers[damaged], first), damaged.size - 1)
        block = numbers[damaged][nearest]
        is_damaged = (block >= first) & (block <= last)
        if not is_damaged.any():
            return  # these blocks hold only files that were found to be binary after the blocks were read
        piece = int(np.argmax(is_damaged))
        raise CorruptBlockError(
            BlockStatus(statuses[damaged[nearest[piece]]]).reason,
            archive=self._archive.path,
            path=self._archive.path_of(self._ino(batch, piece)),
            block=int(block[piece]),
        )

    def _ino(self, batch: TextBatch, piece: int) -> int:
        return int(self._layout.inos[batch.files[piece]])
