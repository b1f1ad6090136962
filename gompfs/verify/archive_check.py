"""Checks an archive against the documents of the format: blocks and index. Reports the affected files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from gompfs.archive.archive import Archive
from gompfs.archive.index_arrays import all_extents
from gompfs.archive.stored_blocks import Block
from gompfs.codec import BlockStatus
from gompfs.errors import ArchiveFormatError, CorruptIndexError, StatsUnavailableError, is_disk_error
from gompfs.model import BlockTable, Problem, Section, Segment
from gompfs.statistics.grammar_cache import has_text_parts
from gompfs.statistics.text_in_parts import text_in_parts
from gompfs.verify.text_files import check_text_files

_BATCH_BYTES = 16 << 20
# Limit for the paths that a report names for damaged blocks. In a forged index, each of a million files may touch every
# block.
_MAX_TOUCHED = 1 << 20


@dataclass(frozen=True)
class Damage:
    """A damaged block. For a block of the stream, `section` is None and `paths` are the files in the block."""

    block: int
    status: BlockStatus
    section: str | None = None
    paths: tuple[bytes, ...] = ()


@dataclass
class VerifyReport:
    """The result of a verification; sizes in bytes. `paths` maps the inodes of problems to paths."""

    num_blocks: int = 0
    compressed_size: int = 0
    uncompressed_size: int = 0
    damages: list[Damage] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    paths: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        """Whether the archive is undamaged and conforms to the format."""
        return not self.damages and not self.problems


def verify_archive(archive: Archive, progress: Callable[[int], None] | None = None) -> VerifyReport:
    """Decode all blocks and compare them with their checksums; check the index and earlier generations.

    `progress` is called with the uncompressed bytes of each step. The checks that opening an archive makes are not
    repeated. Text stored in parts is read a second time: the words of its heads are compared with it.
    """
    return _Verification(archive, progress or (lambda _size: None)).run()


class _Verification:
    """One run over an archive."""

    def __init__(self, archive: Archive, progress: Callable[[int], None]) -> None:
        self._archive = archive
        self._progress = progress
        self._report = VerifyReport()
        self._damaged_segments: set[int] = set()
        self._blocks_with_nul: list[int] = []  # of the stream

    def run(self) -> VerifyReport:
        """Check everything. Returns the report."""
        report = self._report
        report.problems += self._archive.problems()
        # If the index contradicts itself, text cannot be compared with its files.
        is_sound = not report.problems
        self._check_overlaps()
        for segment in self._archive.segments:
            self._check_segment(segment)
        self._name_touched_files()
        for section in self._archive.sections:
            self._check_section(section)
        if is_sound:
            report.problems += check_text_files(self._archive, self._blocks_with_nul)
            self._check_words()
        if any(problem.ino is not None for problem in report.problems):
            report.paths = self._paths
        return report

    def _check_segment(self, segment: Segment) -> None:
        """Check the blocks of a segment's part of the stream."""
        decode = partial(self._archive.stored.decode_segment, segment, verify=True)

        def take(number: int, content: memoryview) -> None:
            if not np.frombuffer(content, np.uint8).all():
                self._blocks_with_nul.append(segment.first_block + number)

        damaged = self._damaged(segment.blocks, decode, take if has_text_parts(segment) else None)
        self._report.damages += [Damage(segment.first_block + number, status) for number, status in damaged]
        if damaged:
            self._damaged_segments.add(segment.number)
        for part in self._archive.stored.parts_with_other_symbols(segment, range(len(segment.blocks))):
            reason = f"segment {segment.number}: the symbols of part {part} do not match the checksum in its head"
            self._report.problems.append(Problem(reason))

    def _check_words(self) -> None:
        """Compare the words that heads of parts hold with those of the text. Segments with damaged blocks are skipped.

        Decoders of blocks do not notice a word that is none by the word rule of the archive; statistics do.
        """
        for segment in self._archive.segments:
            if not has_text_parts(segment) or segment.number in self._damaged_segments:
                continue
            try:
                text_in_parts(self._archive, segment).check()
            except ArchiveFormatError as error:
                self._report.problems.append(Problem(f"segment {segment.number}: {error.message}"))

    def _check_section(self, section: Section) -> None:
        """Check the blocks of a section."""
        name = f"{section.kind} of segment {section.segment}"
        try:
            self._archive.stored.check_section(section)
        except CorruptIndexError as error:
            self._report.problems.append(Problem(error.message))
            self._damaged_segments.add(section.segment)
            return
        damaged = self._damaged(section.blocks, partial(self._archive.stored.decode_table, section.blocks, verify=True))
        self._report.damages += [Damage(number, status, section=name) for number, status in damaged]
        if damaged:
            self._damaged_segments.add(section.segment)

    def _damaged(
        self,
        table: BlockTable,
        decode: Callable[[range], list[Block]],
        take: Callable[[int, memoryview], None] | None = None,
    ) -> list[tuple[int, BlockStatus]]:
        """Returns the damaged blocks of `table`, and adds all of them to the report.

        `decode` decodes the blocks of some indexes. `take` gets the index and the content of good blocks.
        """
        archive, report = self._archive, self._report
        damaged: list[tuple[int, BlockStatus]] = []
        # half a batch of one device, and as much for each other device
        batch = max(max(_BATCH_BYTES, archive.engine.batch_bytes // 2) // archive.block_size, 1)
        for first in range(0, len(table), batch):
            numbers = range(first, min(first + batch, len(table)))
            blocks = self._decoded(decode, numbers)
            for number, block in enumerate(blocks, first):
                if block.status is not BlockStatus.OK:
                    damaged.append((number, block.status))
                elif take is not None:
                    take(number, block.content)
            self._progress(sum(len(block.content) for block in blocks))
        report.num_blocks += len(table)
        report.compressed_size += table.compressed_size
        report.uncompressed_size += table.uncompressed_size
        return damaged

    @staticmethod
    def _decoded(decode: Callable[[range], list[Block]], numbers: range) -> list[Block]:
        """Returns the blocks of some indexes. If the disk has errors, each block is read alone."""
        try:
            return decode(numbers)
        except OSError as error:
            if not is_disk_error(error):
                raise
            if len(numbers) == 1:
                return [Block(memoryview(b""), BlockStatus.UNREADABLE)]
            return [block for number in numbers for block in _Verification._decoded(decode, range(number, number + 1))]

    def _check_overlaps(self) -> None:
        """Check that two blocks, or heads of parts, share no bytes."""
        every = [segment.blocks for segment in self._archive.segments]
        every += [section.blocks for section in self._archive.sections]
        columns = [(table.archive_offsets, table.compressed_sizes) for table in every]
        columns += [(segment.parts.head_offsets, segment.parts.head_sizes) for segment in self._archive.segments]
        begins = np.concatenate([np.zeros(0, np.uint64), *(np.asarray(offsets) for offsets, _ in columns)])
        sizes = np.concatenate([np.zeros(0, np.uint64), *(np.asarray(sizes) for _, sizes in columns)])
        blocks = np.stack([begins, sizes.astype(np.uint64)], axis=1)[sizes > 0]
        blocks = blocks[np.argsort(blocks[:, 0])]
        ends = np.maximum.accumulate(blocks.sum(axis=1))
        overlapping = np.flatnonzero(blocks[1:, 0] < ends[:-1])
        if len(overlapping):
            others = f", and {len(overlapping) - 1} others overlap" if len(overlapping) > 1 else ""
            offset = blocks[overlapping[0] + 1, 0]
            self._report.problems.append(Problem(f"the block at archive offset {offset} overlaps another{others}"))

    def _name_touched_files(self) -> None:
        """Add to each damaged block of the stream the paths of the files that have bytes in it."""
        damages = self._report.damages
        if not damages:
            return
        blocks = np.unique(np.array([damage.block for damage in damages], np.int64))
        try:
            extents = all_extents(self._archive)
        except CorruptIndexError:
            return
        begins, sizes = (np.clip(extents[:, column], 0, 1 << 62) for column in (2, 3))
        first = np.searchsorted(blocks, begins // self._archive.block_size)
        last = np.searchsorted(blocks, (begins + sizes - 1) // self._archive.block_size, side="right")
        named: dict[int, set[bytes]] = {}
        num_named = 0
        for row in np.flatnonzero(first < last).tolist():
            path = self._paths.get(int(extents[row, 0]))
            if path is None:
                continue
            touched = blocks[first[row] : last[row]].tolist()
            for block in touched[: max(_MAX_TOUCHED - num_named, 0)]:
                named.setdefault(block, set()).add(path)
            num_named += len(touched)
        self._report.damages = [replace(damage, paths=tuple(sorted(named.get(damage.block, ())))) for damage in damages]
        if num_named > _MAX_TOUCHED:
            reason = f"damaged blocks affect files {num_named} times; only {_MAX_TOUCHED} of these are listed"
            self._report.problems.append(Problem(reason))

    @cached_property
    def _paths(self) -> dict[int, bytes]:
        """One path of each inode; empty if the names cannot be read, which is reported as a separate problem."""
        try:
            return self._archive.paths()
        except (CorruptIndexError, StatsUnavailableError):
            return {}
