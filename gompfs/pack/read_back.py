"""Reads back what a writer has written, with the code that readers use, before the writer says that it is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from gompfs._native.text import check_word_section
from gompfs.archive import Archive
from gompfs.archive.stored_blocks import Block
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus
from gompfs.codec.words import max_word_bytes
from gompfs.engine import select_engine
from gompfs.errors import GompfsError, PackError
from gompfs.format import LocalFile, check_newest_copies
from gompfs.model import WORD_SECTION, BlockTable, Section, Segment

_BATCH_BYTES = 16 << 20
_MAX_HEADS = 32 << 20  # bytes; those of a batch are used twice


class UnfinishedArchive(LocalFile):
    """An archive to whose last generation only the last write is missing. Reads return what it would have then."""

    def __init__(self, descriptor: int, archive_offset: int = 0, last_write: bytes = b"") -> None:
        """`last_write` will be written at `archive_offset`. `close` does not close `descriptor`."""
        super().__init__(os.dup(descriptor))
        self._begin = archive_offset
        self._last_write = last_write

    def read(self, size: int, archive_offset: int) -> bytes:
        """See ArchiveFile.read."""
        data = bytearray(super().read(size, archive_offset))
        begin = max(self._begin, archive_offset)
        end = min(self._begin + len(self._last_write), archive_offset + len(data))
        if begin < end:
            data[begin - archive_offset : end - archive_offset] = self._last_write[
                begin - self._begin : end - self._begin
            ]
        return bytes(data)


def read_back(
    file: UnfinishedArchive, path: Path, generation: int, num_threads: int, num_segments_before: int = 0
) -> None:
    """Read `generation`, the newest one, which has just been written after `num_segments_before` segments.

    Both copies of its index must be intact. The index of a new archive must keep all rules of the format. All blocks
    of the new segment and of its sections, with the heads of its parts, must decode to contents that match their
    checksums. Raises PackError if anything does not; then the generation must not become valid.
    """
    try:
        engine = select_engine("cpu", num_threads)
        with Archive(path, file=file, engine=engine, cache_size=_MAX_HEADS, verify=True) as archive:
            problem = next(_problems(archive, file, generation, num_segments_before), None)
    except GompfsError as error:
        problem = error.message
    if problem is not None:
        raise PackError(f"what was written cannot be read back: {problem}; nothing was changed", path=path)


def _problems(archive: Archive, file: UnfinishedArchive, generation: int, num_segments_before: int) -> Iterator[str]:
    if archive.footer.generation != generation:
        yield f"the archive ends with generation {archive.footer.generation}"
    yield from check_newest_copies(file, archive.superblock)
    with ThreadPoolExecutor(1) as thread:
        # SQLite checks the index in one thread, and the cores have nothing else to do at the end of packing.
        index = thread.submit(_problems_of_index, archive) if generation == 1 else None
        for segment in archive.segments[num_segments_before:]:
            yield from _problems_of_segment(archive, segment)
            for section in archive.sections:
                if section.segment == segment.number:
                    yield from _problems_of_section(archive, section)
        if index is not None:
            yield from index.result()


def _problems_of_index(archive: Archive) -> list[str]:
    return [problem.reason for problem in archive.index.problems(archive.footer.generation)]


def _problems_of_segment(archive: Archive, segment: Segment) -> Iterator[str]:
    others: list[int] = []

    def decode(numbers: range) -> list[Block]:
        blocks = archive.stored.decode_segment(segment, numbers, verify=True)
        others.extend(archive.stored.parts_with_other_symbols(segment, numbers))  # their heads are still open
        return blocks

    for number, status in _damaged_blocks(archive, segment.blocks, decode):
        yield f"block {segment.first_block + number}: {status.reason}"
    for part in others:
        yield f"the symbols of part {part} do not match their checksum"


def _problems_of_section(archive: Archive, section: Section) -> Iterator[str]:
    archive.stored.check_section(section)
    for number, status in _damaged_blocks(
        archive, section.blocks, partial(archive.stored.decode_table, section.blocks)
    ):
        yield f"section {section.kind}, block {number}: {status.reason}"
        return
    if section.kind == WORD_SECTION and len(section.blocks):
        stored = section.blocks.compressed_size - BLOCK_HEADER_SIZE * len(section.blocks)
        try:
            check_word_section(archive.read_section(section), max_word_bytes(stored))
        except ValueError as error:
            yield str(error)


def _damaged_blocks(
    archive: Archive, table: BlockTable, decode: Callable[[range], list[Block]]
) -> Iterator[tuple[int, BlockStatus]]:
    """Yields the indexes of the blocks of `table` that `decode` finds damaged."""
    batch = _BATCH_BYTES // archive.block_size
    for first in range(0, len(table), batch):
        for number, block in enumerate(decode(range(first, min(first + batch, len(table)))), first):
            if block.status is not BlockStatus.OK:
                yield number, block.status
