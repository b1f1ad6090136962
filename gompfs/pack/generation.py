"""Appends a generation to an archive: until its footer is written, the generation before counts."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from xxhash import xxh3_64_intdigest

from gompfs.errors import GompfsError, PackError
from gompfs.format import (
    FOOTER_SIZE,
    INDEX_ALIGNMENT,
    SUPERBLOCK_SIZE,
    Footer,
    LocalFile,
    Superblock,
    find_footer,
    read_index,
)
from gompfs.index.reader import IndexReader
from gompfs.index.writer import IndexWriter
from gompfs.pack.stream import BlockWriter

BUFFER_SIZE = 1 << 20


@dataclass(frozen=True)
class NewGeneration:
    """An archive that grows: `base` is its index as it was, `index` goes on from there, `writer` is at its end."""

    status: os.stat_result
    base: IndexReader
    block_size: int
    number: int
    index: IndexWriter
    writer: BlockWriter


@contextmanager
def new_generation(archive: Path) -> Iterator[NewGeneration]:
    """Append to `archive` what the body writes to `writer` and `index`, which becomes valid when the body has ended.

    The old index and footer stay where they are until the new footer is written and synced, so that a crash leaves
    the archive as it was; so does an exception. Raises PackError, or ArchiveFormatError for a damaged archive.
    """
    try:
        with open(archive, "r+b", buffering=0) as raw:
            fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
            descriptor = raw.fileno()
            content = LocalFile(descriptor)
            superblock = Superblock.from_bytes(content.read(SUPERBLOCK_SIZE, 0))
            footer, footer_offset = find_footer(content)
            image = read_index(content, footer)
            base = IndexReader(image, str(archive), footer.index_offset, superblock.block_size)
            end = footer_offset + FOOTER_SIZE  # what lies there is of an interrupted add
            try:
                with open(descriptor, "wb", buffering=BUFFER_SIZE, closefd=False) as file, index_file() as path:
                    file.truncate(end)
                    file.seek(end)
                    writer, index = BlockWriter(file, end), IndexWriter(path, base=image)
                    try:
                        number = footer.generation + 1
                        yield NewGeneration(os.fstat(descriptor), base, superblock.block_size, number, index, writer)
                        index.finish()
                    except BaseException:
                        index.abandon()
                        raise
                    new_footer = write_index(writer, path.read_bytes(), number, footer_offset)
                    # A footer must not reach the disk before what it leads to.
                    _sync(file)
                    writer.append(new_footer.to_bytes())
                    _sync(file)
            except BaseException:
                os.ftruncate(descriptor, end)
                raise
    except BlockingIOError:
        raise PackError("another process is adding to the archive", path=archive) from None
    except GompfsError as error:
        error.archive = error.archive or str(archive)
        raise
    except OSError as error:
        raise PackError(error.strerror or str(error), path=archive) from error


@contextmanager
def index_file() -> Iterator[Path]:
    """The path of a new index, which lasts as long as it is written."""
    with tempfile.TemporaryDirectory(prefix="gompfs-") as folder:
        yield Path(folder, "index.sqlite")


def write_index(writer: BlockWriter, image: bytes, generation: int, previous_footer: int) -> Footer:
    """Write an index up to the place of the footer that leads to it."""
    writer.pad(INDEX_ALIGNMENT)
    index_offset = writer.append(image)
    writer.digest.update(image)
    writer.pad(FOOTER_SIZE)
    return Footer(generation, index_offset, len(image), xxh3_64_intdigest(image), previous_footer)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
