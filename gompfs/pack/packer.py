"""Makes an archive of sources, or adds a segment to one; nothing that it does loses the archive before it."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from xxhash import xxh3_64_intdigest

from gompfs.engine import Engine
from gompfs.errors import GompfsError, PackError
from gompfs.format import FOOTER_SIZE, SUPERBLOCK_SIZE, Footer, Superblock, find_footer
from gompfs.index import IndexReader, IndexWriter
from gompfs.options import PackOptions
from gompfs.pack.segment import SegmentBuilder
from gompfs.pack.sources.base import Source
from gompfs.pack.stream import BlockWriter

_INDEX_ALIGNMENT = 4096


@dataclass
class PackProgress:
    """How far packing is: entries and bytes taken from the sources, bytes written to the archive."""

    num_entries: int = 0
    size: int = 0
    written: int = 0


@dataclass
class PackReport:
    """What was packed; sizes in bytes, `seconds` of wall clock."""

    num_entries: int = 0
    size: int = 0
    stream_size: int = 0
    archive_size: int = 0
    grammar_size: int = 0
    num_duplicates: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)


ProgressCallback = Callable[[PackProgress], None]


def pack_archive(
    sources: Sequence[Source],
    target: Path,
    options: PackOptions,
    *,
    engine: Engine,
    progress: ProgressCallback | None = None,
) -> PackReport:
    """Pack `sources` into a new archive at `target`, which appears whole or not at all.

    The same entries and options give the same bytes. Raises PackError; also where `target` is there
    already and `options.force` is not set.
    """
    if target.exists() and not options.force:
        raise PackError("the file exists; --force replaces it", path=target)
    started = time.monotonic()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    except OSError as error:
        raise PackError(error.strerror or str(error), path=target) from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            file.write(bytes(SUPERBLOCK_SIZE))
            writer = BlockWriter(file, SUPERBLOCK_SIZE)
            with _index_file() as index_path:
                index = IndexWriter(index_path)
                builder = SegmentBuilder(index, writer, engine, options, options.block_size)
                report = _write_segment(builder, sources, progress)
                index.set_meta({"words": options.words})
                index.finish()
                _write_index(writer, index_path.read_bytes(), generation=1, previous_footer=0)
            uuid = UUID(bytes=writer.digest.digest())
            file.flush()
            os.pwrite(file.fileno(), Superblock(options.block_size, uuid).to_bytes(), 0)
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_directory(target.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise PackError(error.strerror or str(error), path=target) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return _finish_report(report, target, started)


def add_to_archive(
    archive: Path,
    sources: Sequence[Source],
    options: PackOptions,
    *,
    engine: Engine,
    progress: ProgressCallback | None = None,
) -> PackReport:
    """Append a segment with the entries of `sources`; a path that is there already leads to the new entry.

    The old index and footer stay where they are until the new footer is written and synced, so that a crash
    leaves the archive as it was. Raises PackError, or ArchiveFormatError for a damaged archive.
    """
    started = time.monotonic()
    try:
        with open(archive, "r+b", buffering=1 << 20) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            superblock = Superblock.from_bytes(os.pread(file.fileno(), SUPERBLOCK_SIZE, 0))
            footer, footer_offset = find_footer(file.fileno())
            image = os.pread(file.fileno(), footer.index_size, footer.index_offset)
            if xxh3_64_intdigest(image) != footer.index_xxh3:
                raise PackError("the index is damaged; nothing can be added", path=archive)
            try:
                report = _append(file, superblock, footer, footer_offset, image, sources, options, engine, progress)
            except BaseException:
                os.ftruncate(file.fileno(), footer_offset + FOOTER_SIZE)
                raise
    except BlockingIOError:
        raise PackError("another process is adding to the archive", path=archive) from None
    except OSError as error:
        if isinstance(error, GompfsError):
            raise
        raise PackError(error.strerror or str(error), path=archive) from error
    except GompfsError as error:
        error.archive = error.archive or str(archive)
        raise
    return _finish_report(report, archive, started)


def _append(
    file: BinaryIO,
    superblock: Superblock,
    footer: Footer,
    footer_offset: int,
    image: bytes,
    sources: Sequence[Source],
    options: PackOptions,
    engine: Engine,
    progress: ProgressCallback | None,
) -> PackReport:
    end = footer_offset + FOOTER_SIZE
    file.truncate(end)
    file.seek(end)
    writer = BlockWriter(file, end)
    reader = IndexReader(image, file.name, footer.index_offset, superblock.block_size)
    with _index_file() as index_path:
        index = IndexWriter(index_path, base=image)
        builder = SegmentBuilder(index, writer, engine, options, superblock.block_size, base=reader)
        report = _write_segment(builder, sources, progress)
        index.finish()
        file.flush()
        os.fsync(file.fileno())
        _write_index(writer, index_path.read_bytes(), footer.generation + 1, footer_offset)
    file.flush()
    os.fsync(file.fileno())
    return report


def _write_segment(
    builder: SegmentBuilder, sources: Sequence[Source], progress: ProgressCallback | None
) -> PackReport:
    state = PackProgress()
    try:
        for source in sources:
            for entry in source.entries():
                size = builder.add(entry)
                state.num_entries += 1
                state.size += size
                if progress is not None and (size > 1 << 16 or state.num_entries % 256 == 0):
                    state.written = builder.writer.archive_offset
                    progress(state)
        builder.finish()
    except BaseException:
        builder.abandon()
        raise
    return PackReport(
        num_entries=state.num_entries,
        size=state.size,
        stream_size=builder.stream.size,
        grammar_size=builder.grammar_size,
        num_duplicates=builder.num_duplicates,
        warnings=[*builder.warnings, *(warning for source in sources for warning in source.warnings)],
    )


def _write_index(writer: BlockWriter, image: bytes, generation: int, previous_footer: int) -> None:
    writer.pad(_INDEX_ALIGNMENT)
    index_offset = writer.append(image)
    writer.digest.update(image)
    writer.pad(FOOTER_SIZE)
    footer = Footer(generation, index_offset, len(image), xxh3_64_intdigest(image), previous_footer)
    writer.append(footer.to_bytes())


@contextmanager
def _index_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gompfs-") as folder:
        yield Path(folder, "index.sqlite")


def _finish_report(report: PackReport, archive: Path, started: float) -> PackReport:
    report.archive_size = archive.stat().st_size
    report.seconds = time.monotonic() - started
    return report


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
