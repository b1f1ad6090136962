"""The text of files as words without a grammar, read from the stream: for statistics where no grammar holds them."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.archive import Archive
from gompfs.archive.block_service import Block
from gompfs.codec import BlockStatus
from gompfs.errors import CorruptBlockError, CorruptIndexError, StatsUnavailableError, display_path
from gompfs.grammar import NO_RULES, Grammar, GrammarBuilder, GrammarCollector
from gompfs.model import GRAMMAR_SECTION, WORD_RULES

if TYPE_CHECKING:
    from gompfs.archive.device_text import DeviceText

_BATCH_BYTES = 16 << 20
_WHOLE_FILE_SIZE = 1 << 20
_TEXT_OF_GRAMMAR = 512 << 20


@dataclass(frozen=True, slots=True)
class StreamFile:
    """A file, and where its bytes lie in the stream: runs as (stream_offset, size)."""

    ino: int
    runs: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(size for _, size in self.runs)


class ContentText:
    """The words of some files of an archive, in grammars without rules; binary files are left out."""

    def __init__(self, archive: Archive, inos: Collection[int]) -> None:
        """Take the regular files among `inos`. Raises CorruptIndexError where the index is damaged."""
        self._archive = archive
        self.binary_files: list[int] = []
        """The inodes that turned out to be of binary files."""
        self.files: list[StreamFile] = []
        """The others, in the order of the stream; none is empty."""
        for ino in sorted(inos):
            inode = archive.inode(ino)
            if stat.S_ISREG(inode.mode) and inode.size:
                file = _locate(archive, ino, inode.size)
                if file.size == inode.size:
                    self.files.append(file)
                else:
                    self.binary_files.append(ino)  # holes read as NULs
        self.files.sort(key=lambda file: file.runs)

    @property
    def word_rule(self) -> str:
        """What a word is, one of WORD_RULES; raises StatsUnavailableError where the index names another."""
        words = self._archive.meta.get("words", WORD_RULES[0])
        if words not in WORD_RULES:
            raise StatsUnavailableError(f"there is no word rule {words!r}", archive=self._archive.path)
        return words

    @property
    def num_bytes(self) -> int:
        """The size of all these files."""
        return sum(file.size for file in self.files)

    def word_counts(self, num_threads: int = 0) -> list[tuple[Grammar, NDArray[np.uint64]]]:
        """All words as grammars that have nothing else, and how often each occurs (uint64); raises the same.

        Memory is that of the dictionaries, and of one grammar.
        """
        on_device = self._on_device()
        if on_device is not None:
            return [on_device.word_counts()]
        num_threads = num_threads or len(os.sched_getaffinity(0))
        counted = []
        for grammar in self._host_grammars(num_threads):
            counted.append((grammar, grammar.word_counts(num_threads=num_threads)))
            grammar.drop_parts()
        return counted

    def grammars(self, num_threads: int = 0) -> Iterator[Grammar]:
        """All words in order, in grammars without rules; a file may go on in the next one.

        The stream is decoded once, in batches, on the engine's device if that is where so much text is cut into words.
        Raises CorruptBlockError where a file lies in a damaged block.
        """
        on_device = self._on_device()
        if on_device is not None:
            yield on_device.grammar()
        else:
            yield from self._host_grammars(num_threads)

    def _on_device(self) -> DeviceText | None:
        if not self.files or self._archive.verifies_content:
            return None
        device = self._archive.engine.text_device(self.num_bytes)
        if device is None:
            return None
        from gompfs.archive.device_text import DeviceText

        return DeviceText(self._archive, self, device)

    def _host_grammars(self, num_threads: int) -> Iterator[Grammar]:
        """In a grammar for about each 512 MiB of text."""
        if not self.files:
            return
        collector = GrammarCollector(GrammarBuilder(NO_RULES, self.word_rule, num_threads))
        num_bytes = 0
        for piece_size in self.collect(collector):
            num_bytes += piece_size
            if num_bytes >= _TEXT_OF_GRAMMAR:
                yield collector.take()
                num_bytes = 0
        yield collector.take()

    def collect(self, collector: GrammarCollector) -> Iterator[int]:
        """Give all files to a collector; the size of each piece that it took. Errors are those of `grammars`."""
        stream = _Stream(self._archive, self.files)
        for file in self.files:
            pieces = stream.pieces(file)
            if file.size <= _WHOLE_FILE_SIZE:
                whole = list(pieces)
                collector.add_file(file.ino, whole[0] if len(whole) == 1 else b"".join(whole))
                yield file.size
                continue
            collector.begin_file(file.ino)
            for piece in pieces:
                collector.add_bytes(piece)
                yield len(piece)
            collector.end_file()
        self.binary_files += collector.binary_files


def text_without_grammar(archive: Archive) -> dict[int, ContentText]:
    """The files of each segment that has no grammar; files that are one hole are with those of the first of them."""
    having = {section.segment for section in archive.sections if section.kind == GRAMMAR_SECTION}
    inos: dict[int, list[int]] = {s.number: [] for s in archive.segments if s.number not in having}
    if not inos:
        return {}
    ends = np.cumsum([len(segment.places) for segment in archive.segments]) * archive.block_size
    for ino in archive.inode_numbers():
        extents = archive.extents(ino)
        segment = int(np.searchsorted(ends, extents[0].stream_offset, "right")) if extents else min(inos)
        if segment in inos:
            inos[segment].append(ino)
    return {segment: ContentText(archive, files) for segment, files in inos.items()}


def _locate(archive: Archive, ino: int, size: int) -> StreamFile:
    """Where the bytes of a file lie; less than `size` of them where it has holes."""
    try:
        extents = archive.extents(ino)
    except CorruptIndexError as error:
        error.path = error.path or display_path(archive.path_of(ino))
        raise
    runs = ((extent.stream_offset, min(extent.size, size - extent.file_offset)) for extent in extents)
    file = StreamFile(ino, tuple(run for run in runs if run[1] > 0))
    if any(sum(run) > archive.num_blocks * archive.block_size for run in file.runs):
        raise outside(archive, ino, "the stream")
    return file


def outside(archive: Archive, ino: int, what: str) -> CorruptIndexError:
    """The error for a file whose bytes are not all where they could be."""
    return CorruptIndexError(f"inode {ino} has bytes outside {what}", archive=archive.path, path=archive.path_of(ino))


class _Stream:
    """Decodes the blocks that files lie in, batch by batch."""

    def __init__(self, archive: Archive, files: Collection[StreamFile]) -> None:
        self._archive = archive
        self._wanted: NDArray[np.bool_] = np.zeros(archive.num_blocks + 1, np.bool_)
        for file in files:
            for stream_offset, size in file.runs:
                last = (stream_offset + size - 1) // archive.block_size
                self._wanted[stream_offset // archive.block_size : last + 1] = True
        self._blocks: list[Block] = []
        self._first = 0

    def pieces(self, file: StreamFile) -> Iterator[memoryview]:
        """The bytes of a file, block by block."""
        archive = self._archive
        for stream_offset, size in file.runs:
            end = stream_offset + size
            while stream_offset < end:
                number, start = divmod(stream_offset, archive.block_size)
                block = self._block(number)
                if block.status is not BlockStatus.OK:
                    raise CorruptBlockError(
                        block.status.reason, archive=archive.path, path=archive.path_of(file.ino), block=number
                    )
                piece = block.content[start : start + end - stream_offset]
                if not piece:
                    raise outside(archive, file.ino, "its segment")
                yield piece
                stream_offset += len(piece)

    def _block(self, number: int) -> Block:
        if not self._first <= number < self._first + len(self._blocks):
            self._blocks = []  # its memory serves the next batch
            batch = max(self._archive.engine.batch_bytes, _BATCH_BYTES) // self._archive.block_size
            count = int(np.argmin(self._wanted[number : number + batch])) or batch
            count = min(count, self._archive.num_blocks - number)
            self._first, self._blocks = number, self._archive.decode_stream_blocks(number, count)
        return self._blocks[number - self._first]
