"""Packs sources into a new archive, or adds a segment to one. On failure, the archive stays as it was before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from gompfs.codec.block import Buffer
from gompfs.engine import Engine
from gompfs.errors import PackError
from gompfs.format import SUPERBLOCK_MAGIC, SUPERBLOCK_SIZE, Superblock
from gompfs.index.written_blocks import WrittenBlocks
from gompfs.light_types import replaced
from gompfs.model import DICTIONARY_SECTION, Generation
from gompfs.options import PackOptions
from gompfs.pack.archive_lock import locked_archive
from gompfs.pack.dictionary import choose_dictionary, may_have_dictionary, read_dictionary
from gompfs.pack.generation import BUFFER_SIZE, new_generation, store_index, write_trailers
from gompfs.pack.history import note_of
from gompfs.pack.new_file import NewFile, TemporaryIndex, naming
from gompfs.pack.read_back import UnfinishedArchive, read_back
from gompfs.pack.segment import SegmentBuilder
from gompfs.pack.sources.base import Source
from gompfs.pack.sources.file_run import FileRun
from gompfs.pack.stream import BlockWriter

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary


@dataclass
class PackProgress:
    """The progress of a pack: entries and bytes read from the sources, bytes written to the archive."""

    num_entries: int = 0
    size: int = 0
    written: int = 0


@dataclass
class PackReport:
    """The result of a pack. Sizes in bytes; `seconds` of wall-clock time.

    `archive_size` is the size of the whole archive, `added_size` what this pack added to it. `num_duplicates` files had
    contents of others that were packed with them. `num_archived` files had contents that the archive had, and
    `num_unchanged` files were not read because it had them.
    """

    num_entries: int = 0
    size: int = 0
    stream_size: int = 0
    archive_size: int = 0
    added_size: int = 0
    num_duplicates: int = 0
    num_archived: int = 0
    num_unchanged: int = 0
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
    command: str = "pack",
) -> PackReport:
    """Pack `sources` into a new archive at `target`, which appears complete or not at all.

    The archive notes the time, `command`, and the comment of the options. The same entries, options and notes give the
    same bytes; $SOURCE_DATE_EPOCH sets the time. With `options.check`, the archive is read back before it appears.
    With `options.force`, an existing archive is replaced, and its mode and owner are kept; if `target` is a symlink to
    it, the symlink stays. Raises PackError; also if `target` exists without `options.force`, or is not an archive.
    """
    started, note = time.monotonic(), note_of(command, options.comment)
    with naming(target), ExitStack() as stack:
        target = _final_target(target, force=options.force)
        old = _lock_old(stack, target) if os.path.lexists(target) else None
        new = stack.enter_context(NewFile(target))
        for descriptor in (new.descriptor, old):
            if descriptor is not None:
                _skip_inode(sources, os.fstat(descriptor))
        report = _write_archive(new.descriptor, sources, options, engine, progress, note)
        if options.check:
            read_back(UnfinishedArchive(new.descriptor), target, 1, engine.num_threads)
        if old is None:
            os.fchmod(new.descriptor, 0o666 & ~_umask())
        else:
            new.take_permissions(old)
        try:
            new.publish(replace=old is not None)
        except FileExistsError:
            raise PackError("another process created this file in the meantime", path=target) from None
        report.warnings += new.warnings
    return _finish_report(report, target, started)


def _final_target(target: Path, *, force: bool) -> Path:
    """Returns the path of the file to create: `target` with symlinks resolved.

    Raises PackError if it must not be created.
    """
    if os.path.lexists(target) and not force:
        raise PackError("the file exists; use --force to replace it", path=target)
    if target.is_symlink() and not target.exists():
        raise PackError("this is a dangling symbolic link", path=target)
    return Path(os.path.realpath(target)) if target.is_symlink() else target


def _lock_old(stack: ExitStack, target: Path) -> int:
    """Lock the archive that will be replaced, so that no process adds to it. Returns its descriptor."""
    old = stack.enter_context(locked_archive(target, to_write=False))
    if os.fstat(old).st_size and os.pread(old, len(SUPERBLOCK_MAGIC), 0) != SUPERBLOCK_MAGIC:
        raise PackError("the file is not a gompfs archive, so --force does not replace it", path=target)
    return old


def _write_archive(
    descriptor: int,
    sources: Sequence[Source],
    options: PackOptions,
    engine: Engine,
    progress: ProgressCallback | None,
    note: Generation,
) -> PackReport:
    """Write a whole archive to an empty file."""
    with open(descriptor, "wb", buffering=BUFFER_SIZE, closefd=False) as file, TemporaryIndex() as index:
        file.write(bytes(SUPERBLOCK_SIZE))
        writer = BlockWriter(file, SUPERBLOCK_SIZE)

        def choose(content: Sequence[memoryview]) -> Dictionary | None:
            chosen = choose_dictionary(content, options, engine)
            if chosen is None:
                return None
            blocks = WrittenBlocks(writer.write(chosen.blocks))
            index.writer.add_section(0, DICTIONARY_SECTION, chosen.size, blocks)
            return chosen.native

        dictionary = choose if may_have_dictionary(options, engine) else None
        builder = SegmentBuilder(index.writer, writer, engine, options, options.block_size, dictionary=dictionary)
        report = _write_segment(builder, sources, progress)
        del builder  # its memory, for paths and contents
        purpose = {} if options.purpose is None else {"for": options.purpose}
        index.writer.set_meta({"words": options.words, **purpose})
        index.writer.add_generation(note._replace(num_added=report.num_entries))
        superblock = _write_first_index(writer, *index.finish(), options)
    os.pwrite(descriptor, superblock.to_bytes(), 0)
    return report


def _write_first_index(writer: BlockWriter, columns: Buffer, ends: list[int], options: PackOptions) -> Superblock:
    """Write the trailers of a new archive. Returns its superblock."""
    writer.digest.update(columns)
    superblock = Superblock(options.block_size, writer.digest.digest(), index_offset=0, index_size=0)
    stored = store_index(columns, ends)
    position = write_trailers(writer, stored, superblock, generation=1, start=0, previous_footer=0)
    return superblock._replace(index_offset=position.index_offset, index_size=position.index_size)


def add_to_archive(
    archive: Path,
    sources: Sequence[Source],
    options: PackOptions,
    *,
    engine: Engine,
    progress: ProgressCallback | None = None,
) -> PackReport:
    """Append a segment with the entries of `sources`. An entry replaces the archive's entry of the same path.

    Contents that the archive has are not stored again. Without `options.checksum`, a local file of the path, size and
    modification time of a file of the archive is taken as unchanged, and not read.

    A crash leaves the archive as it was (see new_generation). Raises PackError, or ArchiveFormatError for a damaged
    archive.
    """
    from gompfs.pack.archived_files import ArchivedFiles  # needs NumPy

    started, note = time.monotonic(), note_of("add", options.comment)
    with new_generation(archive, check=options.check, num_threads=engine.num_threads) as grown:
        _skip_inode(sources, grown.status)
        words = grown.base.meta.get("words", options.words)
        options = replaced(options, words=words)
        dictionary = read_dictionary(grown.file, grown.base.sections)
        archived = ArchivedFiles(grown.base)
        if not options.checksum:
            for source in sources:
                source.skip_unchanged(archived.find)
        builder = SegmentBuilder(
            grown.index, grown.writer, engine, options, grown.block_size, archived=archived, dictionary=dictionary
        )
        report = _write_segment(builder, sources, progress)
        grown.index.add_generation(note._replace(number=grown.number, num_added=report.num_entries))
    return _finish_report(report, archive, started, grown.status.st_size)


def _skip_inode(sources: Sequence[Source], status: os.stat_result) -> None:
    """Make the sources leave out the archive itself."""
    for source in sources:
        source.skip_inodes.add((status.st_dev, status.st_ino))


def _write_segment(builder: SegmentBuilder, sources: Sequence[Source], progress: ProgressCallback | None) -> PackReport:
    """Write the entries of all sources."""
    state = PackProgress()
    try:
        for item in chain.from_iterable(source.items() for source in sources):
            if isinstance(item, FileRun):
                state.num_entries += len(item.files)
                size = builder.add_files(item)
            else:
                size = builder.add(item)
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
        stream_size=builder.contents.size,
        num_duplicates=builder.contents.num_duplicates,
        num_archived=builder.contents.num_archived,
        num_unchanged=builder.contents.num_unchanged,
        warnings=[*builder.warnings, *(warning for source in sources for warning in source.warnings)],
    )


def _finish_report(report: PackReport, archive: Path, started: float, size_before: int = 0) -> PackReport:
    report.archive_size = archive.stat().st_size
    report.added_size = report.archive_size - size_before
    report.seconds = time.monotonic() - started
    return report


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
