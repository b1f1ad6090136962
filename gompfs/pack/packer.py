"""Makes an archive of sources, or adds a segment to one; nothing that it does loses the archive before it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from gompfs.engine import Engine
from gompfs.errors import PackError
from gompfs.format import SUPERBLOCK_SIZE, Superblock
from gompfs.index.writer import IndexWriter
from gompfs.options import PackOptions
from gompfs.pack.generation import BUFFER_SIZE, index_file, new_generation, write_index
from gompfs.pack.segment import SegmentBuilder
from gompfs.pack.sources.base import Source
from gompfs.pack.stream import BlockWriter


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
        with os.fdopen(handle, "wb", buffering=BUFFER_SIZE) as file:
            _skip_inode(sources, os.fstat(handle))
            if target.exists():
                _skip_inode(sources, target.stat())
            file.write(bytes(SUPERBLOCK_SIZE))
            writer = BlockWriter(file, SUPERBLOCK_SIZE)
            with index_file() as index_path:
                index = IndexWriter(index_path)
                builder = SegmentBuilder(index, writer, engine, options, options.block_size)
                report = _write_segment(builder, sources, progress)
                index.set_meta({"words": options.words})
                index.finish()
                footer = write_index(writer, index_path.read_bytes(), generation=1, previous_footer=0)
                writer.append(footer.to_bytes())
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

    A crash leaves the archive as it was (`new_generation`). Raises PackError, or ArchiveFormatError for a damaged
    archive.
    """
    started = time.monotonic()
    with new_generation(archive) as grown:
        _skip_inode(sources, grown.status)
        options = replace(options, words=grown.base.meta().get("words", options.words))
        builder = SegmentBuilder(
            grown.index, grown.writer, engine, options, grown.block_size, base=grown.base
        )
        report = _write_segment(builder, sources, progress)
    return _finish_report(report, archive, started)


def _skip_inode(sources: Sequence[Source], status: os.stat_result) -> None:
    """Keep the archive itself out of the archive."""
    for source in sources:
        source.skip_inodes.add((status.st_dev, status.st_ino))


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
