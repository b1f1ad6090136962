"""Appends a generation to an archive. It becomes valid when its footer is written."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from xxhash import xxh3_64_intdigest

from gompfs.errors import GompfsError, PackError
from gompfs.format import FOOTER_SIZE, INDEX_ALIGNMENT, Footer, LocalFile
from gompfs.generations import find_newest
from gompfs.index.reader import IndexReader
from gompfs.index.writer import IndexWriter
from gompfs.pack.archive_lock import locked_archive
from gompfs.pack.new_file import TemporaryIndex, naming
from gompfs.pack.stream import BlockWriter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BUFFER_SIZE = 1 << 20


@dataclass(frozen=True)
class NewGeneration:
    """A generation that is being appended.

    `base` is the index before; `index` extends it; `writer` is at the file's end.
    """

    status: os.stat_result
    base: IndexReader
    block_size: int
    number: int
    index: IndexWriter
    writer: BlockWriter


@contextmanager
def new_generation(archive: Path) -> Iterator[NewGeneration]:
    """Append what the body writes to `writer` and `index`; it becomes valid when the body has ended.

    The old index and footer stay in place until the new footer is written and synced, so that a crash or an exception
    leaves the archive as it was. Only bytes appended here are ever cut off. Raises PackError, also if bytes follow the
    newest generation, or ArchiveFormatError for a damaged archive.
    """
    with naming(archive), locked_archive(archive) as descriptor:
        newest = find_newest(LocalFile(descriptor))
        if newest.num_ignored_bytes:
            raise PackError(
                f"{newest.num_ignored_bytes} bytes after generation {newest.footer.generation} are left of an add that "
                "was interrupted, or are damaged; nothing can be added before gompfs repair"
            )
        base = IndexReader(newest.image, str(archive), newest.footer.index_offset, newest.superblock.block_size)
        try:
            with TemporaryIndex(newest.image) as index, open_appending(descriptor) as file:
                writer = BlockWriter(file, newest.size)
                number, status = newest.footer.generation + 1, os.fstat(descriptor)
                yield NewGeneration(status, base, newest.superblock.block_size, number, index.writer, writer)
                footer = write_index(writer, index.finish(), number, newest.footer_offset)
                file.flush()
                os.ftruncate(descriptor, writer.archive_offset + FOOTER_SIZE)
                # The footer must not reach the disk before the data that it refers to.
                os.fsync(descriptor)
                os.pwrite(descriptor, footer.to_bytes(), writer.archive_offset)
                os.fsync(descriptor)
        except BaseException as error:
            if isinstance(error, GompfsError):
                error.archive = error.archive or str(archive)
            with suppress(OSError):  # bytes that stay are after the newest generation, and are ignored
                os.ftruncate(descriptor, newest.size)
            raise
        finally:
            base.close()


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
