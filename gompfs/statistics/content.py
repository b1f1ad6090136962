"""The text of files that is not stored in parts, read from the stream for statistics."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive
from gompfs.archive.index_arrays import all_extents, composed_files, segment_numbers
from gompfs.archive.stored_blocks import Block
from gompfs.codec import BlockStatus
from gompfs.errors import CorruptBlockError, StatsUnavailableError
from gompfs.model import WORD_RULES
from gompfs.statistics.content_layout import TextLayout, locate_text, outside, union
from gompfs.statistics.grammar_cache import has_text_outside_parts, segments_with_grammars
from gompfs.text import PROBE_SIZE, is_text

_BATCH_BYTES = 16 << 20
_PIECE_BYTES = 1 << 20


class ContentText:
    """The text of some files of an archive. Binary files are left out."""

    def __init__(self, archive: Archive, inos: Collection[int]) -> None:
        """Read the regular files among `inos`. Raises CorruptIndexError if the index is damaged."""
        self.archive = archive
        self.layout, self.binary_files = locate_text(archive, inos)
        """The files to read, and the inodes of the binary files found so far. Files with holes count as binary."""

    @property
    def word_rule(self) -> str:
        """The word rule. Raises StatsUnavailableError if the index names an unknown one."""
        words = self.archive.meta.get("words", WORD_RULES[0])
        if words not in WORD_RULES:
            raise StatsUnavailableError(f"unknown word rule {words!r}", archive=self.archive.path)
        return words

    @property
    def num_bytes(self) -> int:
        """The total size of the files."""
        return int(self.layout.sizes.sum())

    def files(self) -> Iterator[tuple[int, Iterator[memoryview]]]:
        """Yields the inode number and the pieces of each file that is text, which must be read in this order.

        Raises CorruptBlockError if a file lies in a damaged block.
        """
        stream = TextStream(self.archive, self.layout)
        for file, ino in enumerate(self.layout.inos.tolist()):
            pieces = stream.pieces(file)
            head: list[memoryview] = []
            while sum(map(len, head)) < PROBE_SIZE and (piece := next(pieces, None)) is not None:
                head.append(piece)
            if is_text(b"".join(piece[:PROBE_SIZE] for piece in head)):
                yield ino, chain(head, pieces)
            else:
                self.binary_files.append(ino)


def text_outside_parts(archive: Archive, inos: Collection[int]) -> ContentText:
    """Returns the text of the files among `inos` that are in segments without parts of text, and of composed files."""
    if not has_text_outside_parts(archive):
        return ContentText(archive, ())
    with_parts = segments_with_grammars(archive)
    extents = all_extents(archive)
    numbers = segment_numbers(archive, extents)
    outside_parts = set(np.unique(extents[np.isin(numbers, list(with_parts), invert=True), 0]).tolist())
    outside_parts.update(composed_files(extents, numbers).tolist())
    return ContentText(archive, outside_parts.intersection(inos).difference(archive.index.binary_files()))


class TextStream:
    """Decodes the blocks that files lie in, batch by batch.

    A composed file is read through the cache of blocks instead, since each of its runs might need another batch.
    """

    def __init__(self, archive: Archive, layout: TextLayout) -> None:
        self._archive = archive
        self._layout = layout
        self._starts = layout.starts.tolist()
        self._runs = list(zip(layout.stream_offsets.tolist(), layout.run_sizes.tolist(), strict=True))
        first = layout.stream_offsets // archive.block_size
        last = (layout.stream_offsets + layout.run_sizes - 1) // archive.block_size
        self._wanted: NDArray[np.bool_] = np.zeros(archive.num_blocks + 1, np.bool_)
        self._wanted[union(first, last)] = True
        self._blocks: list[Block] = []
        self._first = 0
        files = np.repeat(np.arange(len(layout.inos)), np.diff(layout.starts))
        runs = np.stack([files, np.zeros_like(files), layout.stream_offsets, layout.run_sizes], axis=1)
        self._composed = set(composed_files(runs, segment_numbers(archive, runs)).tolist())

    def pieces(self, file: int) -> Iterator[memoryview]:
        """Yields the bytes of a file of the layout, block by block."""
        archive, ino = self._archive, int(self._layout.inos[file])
        if file in self._composed:
            for file_offset in range(0, int(self._layout.sizes[file]), _PIECE_BYTES):
                yield from archive.read_pieces(ino, file_offset, _PIECE_BYTES)
            return
        for stream_offset, size in self._runs[self._starts[file] : self._starts[file + 1]]:
            end = stream_offset + size
            while stream_offset < end:
                number, start = divmod(stream_offset, archive.block_size)
                block = self._block(number)
                if block.status is not BlockStatus.OK:
                    path = archive.path_of(ino)
                    raise CorruptBlockError(block.status.reason, archive=archive.path, path=path, block=number)
                piece = block.content[start : start + end - stream_offset]
                if not piece:
                    raise outside(archive, ino, "its segment")
                yield piece
                stream_offset += len(piece)

    def _block(self, number: int) -> Block:
        if not self._first <= number < self._first + len(self._blocks):
            self._blocks = []  # frees the memory for the next batch
            batch = max(self._archive.engine.batch_bytes, _BATCH_BYTES) // self._archive.block_size
            count = int(np.argmin(self._wanted[number : number + batch])) or batch
            count = min(count, self._archive.num_blocks - number)
            self._first, self._blocks = number, self._archive.stored.decode_stream(range(number, number + count))
        return self._blocks[number - self._first]
