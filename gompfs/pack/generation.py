"""Appends a generation to an archive. It becomes valid with the bytes that are written last: its header."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from gompfs._native.index import changes_between
from gompfs.archive import Archive
from gompfs.codec import BLOCK_ALIGNMENT
from gompfs.codec.block import Buffer
from gompfs.engine import select_engine
from gompfs.errors import GompfsError, PackError
from gompfs.format import (
    GENERATION_HEADER_SIZE,
    MAX_CHANGES,
    MAX_GENERATION,
    NUM_COPIES,
    Footer,
    GenerationHeader,
    LocalFile,
    Newest,
    Superblock,
    TrailerPosition,
    encode_columns,
    find_newest,
    least_stored_size,
)
from gompfs.index.writer import IndexWriter
from gompfs.pack.archive_lock import locked_archive
from gompfs.pack.new_file import TemporaryIndex, naming
from gompfs.pack.read_back import UnfinishedArchive, read_back
from gompfs.pack.stream import BlockWriter

BUFFER_SIZE = 1 << 20


@dataclass(frozen=True)
class NewGeneration:
    """A generation that is being appended.

    `base` is the archive before; `index` extends its index; `writer` is at the end of `file`.
    """

    status: os.stat_result
    file: LocalFile
    base: Archive
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
        base = Archive(
            archive, file=LocalFile(os.dup(descriptor)), engine=select_engine("cpu", num_threads), verify=True
        )
        try:
            base.index.check_before_adding(newest.footer.generation)
            with (
                TemporaryIndex(newest.columns) as index,
                open(descriptor, "ab", buffering=BUFFER_SIZE, closefd=False) as end,
            ):
                writer = BlockWriter(end, newest.size)
                number, status = newest.footer.generation + 1, os.fstat(descriptor)
                writer.pad(GENERATION_HEADER_SIZE)
                start = writer.append(GenerationHeader(number, superblock.uuid).to_bytes())
                yield NewGeneration(status, file, base, superblock.block_size, number, index.writer, writer)
                stored = _stored_index(newest, *index.finish())
                newest = newest._replace(columns=memoryview(b""))  # of a large index, they take much memory
                position = write_trailers(
                    writer, stored, superblock, number, start, previous_footer=newest.footer_offset
                )
                end.flush()
                header = GenerationHeader(number, superblock.uuid, *position).to_bytes()
                if check:
                    unfinished = UnfinishedArchive(descriptor, start, header)
                    read_back(unfinished, archive, number, num_threads, len(base.segments))
                # What makes the generation valid must not reach the disk before the data that it refers to.
                os.fsync(descriptor)
                os.pwrite(descriptor, header, start)
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
    if number >= MAX_GENERATION:
        raise PackError(f"the archive has {number} generations, the most that it can have; see gompfs repack")
    if newest.damage is not None:
        raise PackError(f"{newest.damage}; nothing can be added before gompfs repair")


class StoredIndex(NamedTuple):
    """An index as blocks, and what its footers say of it."""

    blocks: bytes
    columns_size: int
    columns_xxh3: int
    num_changes: int


def store_index(columns: Buffer, ends: Sequence[int], num_changes: int = 0) -> StoredIndex:
    """Returns an index of columns, of which `ends` are the ends. `num_changes` is that of Footer."""
    least = least_stored_size(columns, is_changes=num_changes > 0)
    return StoredIndex(encode_columns(columns, ends, least), len(columns), xxh3_64_intdigest(columns), num_changes)


def _stored_index(newest: Newest, columns: Buffer, ends: Sequence[int]) -> StoredIndex:
    """Returns what is stored of the index that follows `newest`: the changes, or the whole index.

    All changes since the last whole index are at most twice as large as that, so that opening an archive reads a
    limited number of bytes.
    """
    whole_size, *sizes = (footer.index_size for footer in newest.footers)
    if len(newest.footers) <= MAX_CHANGES:
        changes = store_index(*changes_between(newest.columns, columns), len(newest.footers))
        if sum(sizes) + len(changes.blocks) <= 2 * whole_size:
            return changes
    return store_index(columns, ends)


def write_trailers(
    writer: BlockWriter, index: StoredIndex, superblock: Superblock, generation: int, start: int, previous_footer: int
) -> TrailerPosition:
    """Write both copies of an index with their footers. Returns where they are."""
    blocks = index.blocks
    writer.pad(BLOCK_ALIGNMENT)
    position = TrailerPosition(writer.archive_offset, len(blocks))
    for copy in range(NUM_COPIES):
        offset = writer.append(blocks)
        writer.pad(BLOCK_ALIGNMENT)
        footer = Footer(
            generation,
            copy,
            superblock.uuid,
            start,
            offset,
            len(blocks),
            index.columns_size,
            index.columns_xxh3,
            previous_footer,
            index.num_changes,
        )
        writer.append(footer.to_bytes())
    return position
