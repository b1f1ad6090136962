"""Appends a generation to an archive.

It becomes valid with the bytes that are written last: its footer in format version 1, its header in version 2.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from xxhash import xxh3_64_intdigest

from gompfs.codec import BLOCK_ALIGNMENT
from gompfs.errors import GompfsError, PackError
from gompfs.format import (
    FOOTER_SIZE,
    GENERATION_HEADER_SIZE,
    INDEX_ALIGNMENT,
    NUM_COPIES,
    Footer,
    GenerationHeader,
    LocalFile,
    Superblock,
    TrailerFooter,
    TrailerPosition,
    encode_image,
)
from gompfs.generations import Newest, find_newest
from gompfs.index.reader import IndexReader
from gompfs.index.writer import IndexWriter
from gompfs.pack.archive_lock import locked_archive
from gompfs.pack.new_file import TemporaryIndex, naming
from gompfs.pack.read_back import UnfinishedArchive, read_back
from gompfs.pack.stream import BlockWriter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BUFFER_SIZE = 1 << 20


@dataclass(frozen=True)
class NewGeneration:
    """A generation that is being appended.

    `file` is the archive, and `base` the index before; `index` extends it; `writer` is at the file's end.
    """

    status: os.stat_result
    file: LocalFile
    base: IndexReader
    version: int
    block_size: int
    number: int
    index: IndexWriter
    writer: BlockWriter


@contextmanager
def new_generation(archive: Path, *, check: bool, num_threads: int) -> Iterator[NewGeneration]:
    """Append what the body writes to `writer` and `index`; it becomes valid when the body has ended.

    Everything is synced before the few bytes that make the new generation valid are written, so that a crash or an
    exception leaves the archive as it was. Only bytes appended here are ever cut off. With `check`, the generation is
    read back on `num_threads` threads before. Raises PackError, also if bytes follow the newest generation, or
    ArchiveFormatError for a damaged archive.
    """
    with naming(archive), locked_archive(archive) as descriptor:
        file = LocalFile(descriptor)
        newest = find_newest(file)
        _check_end(newest)
        superblock = newest.superblock
        base = IndexReader(newest.image, str(archive), superblock.version, newest.data_end, superblock.block_size)
        try:
            base.check_before_adding()
            with TemporaryIndex(superblock.version, newest.image) as index, open_appending(descriptor) as end:
                writer = BlockWriter(end, newest.size)
                number, status = newest.footer.generation + 1, os.fstat(descriptor)
                start = _begin(writer, superblock, number)
                yield NewGeneration(
                    status, file, base, superblock.version, superblock.block_size, number, index.writer, writer
                )
                last = _end(writer, index.finish(), newest, start)
                end.flush()
                os.ftruncate(descriptor, max(writer.archive_offset, last.archive_offset + len(last.content)))
                if check:
                    written = UnfinishedArchive(descriptor, last.archive_offset, last.content)
                    read_back(written, archive, number, num_threads)
                # What makes the generation valid must not reach the disk before the data that it refers to.
                os.fsync(descriptor)
                os.pwrite(descriptor, last.content, last.archive_offset)
                os.fsync(descriptor)
        except BaseException as error:
            if isinstance(error, GompfsError):
                error.archive = error.archive or str(archive)
            with suppress(OSError):  # bytes that stay are after the newest generation, and are ignored
                os.ftruncate(descriptor, newest.size)
            raise
        finally:
            base.close()


def _check_end(newest: Newest) -> None:
    """Raise PackError if anything is wrong with the end of an archive to which a generation is to be appended."""
    number = newest.footer.generation
    if newest.num_ignored_bytes:
        raise PackError(
            f"{newest.num_ignored_bytes} bytes after generation {number} are left of an add that "
            "was interrupted, or are damaged; nothing can be added before gompfs repair"
        )
    if newest.damage is not None:
        raise PackError(f"{newest.damage}; nothing can be added before gompfs repair")


@dataclass(frozen=True)
class _LastWrite:
    """The bytes that make a generation valid. They are written last."""

    archive_offset: int
    content: bytes


def _begin(writer: BlockWriter, superblock: Superblock, generation: int) -> int:
    """Write what a generation begins with. Returns the archive_offset of its header, if it has one."""
    if superblock.version == 1:
        return 0
    writer.pad(GENERATION_HEADER_SIZE)
    return writer.append(GenerationHeader(generation, superblock.uuid).to_bytes())


def _end(writer: BlockWriter, image: bytes, newest: Newest, start: int) -> _LastWrite:
    """Write the index of a generation after `newest`. Returns what must be written when everything is on disk."""
    superblock, number = newest.superblock, newest.footer.generation + 1
    if superblock.version == 1:
        footer = write_index(writer, image, number, newest.footer_offset)
        return _LastWrite(writer.archive_offset, footer.to_bytes())
    position = write_trailers(writer, image, superblock, number, start, newest.footer_offset)
    header = GenerationHeader(number, superblock.uuid, position.index_offset, position.index_size)
    return _LastWrite(start, header.to_bytes())


def open_appending(descriptor: int) -> BinaryIO:
    """Returns the file at `descriptor`, opened for writing at its end."""
    return io.BufferedWriter(_ZerosAfter(descriptor), BUFFER_SIZE)


class _ZerosAfter(io.FileIO):
    """Appends to a file, and keeps its last 64 bytes zero.

    The bytes written are content of packed files, which may contain a footer. If the process were killed when the file
    ends in such a footer, a reader would have to find out that it is not the archive's own.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._size = self._position = self.seek(0, os.SEEK_END)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of `data`. Returns the number of bytes."""
        end = self._position + memoryview(data).nbytes
        if end + FOOTER_SIZE > self._size:
            os.ftruncate(self.fileno(), end + BUFFER_SIZE)
            self._size = end + BUFFER_SIZE
        written = super().write(data)
        self._position += written
        return written


def write_index(writer: BlockWriter, image: bytes, generation: int, previous_footer: int) -> Footer:
    """Write an index and the padding after it. Returns the footer, which must be written next."""
    writer.pad(INDEX_ALIGNMENT)
    index_offset = writer.append(image)
    writer.digest.update(image)
    writer.pad(FOOTER_SIZE)
    return Footer(generation, index_offset, len(image), xxh3_64_intdigest(image), previous_footer)


def write_trailers(
    writer: BlockWriter, image: bytes, superblock: Superblock, generation: int, start: int, previous_footer: int
) -> TrailerPosition:
    """Write both copies of an index with their footers, for format version 2. Returns where they are."""
    stored = encode_image(image, superblock.block_size)
    writer.pad(BLOCK_ALIGNMENT)
    position = TrailerPosition(writer.archive_offset, len(stored))
    checksum = xxh3_64_intdigest(image)
    for copy in range(NUM_COPIES):
        offset = writer.append(stored)
        writer.pad(BLOCK_ALIGNMENT)
        footer = TrailerFooter(
            generation, copy, superblock.uuid, start, offset, len(stored), len(image), checksum, previous_footer
        )
        writer.append(footer.to_bytes())
    return position
