"""Checks every byte of an archive, and says which files any damage touches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gompfs.archive.archive import Archive
from gompfs.codec import BlockStatus
from gompfs.model import BlockPlaces

_BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class Damage:
    """A damaged block; `section` is None for one of the stream, whose `paths` are the files it touches."""

    block: int
    status: BlockStatus
    section: str | None = None
    paths: tuple[bytes, ...] = ()


@dataclass
class VerifyReport:
    """What a verification saw; sizes in bytes."""

    num_blocks: int = 0
    compressed_size: int = 0
    uncompressed_size: int = 0
    damages: list[Damage] = field(default_factory=list)


def verify_archive(archive: Archive, progress: Callable[[int], None] | None = None) -> VerifyReport:
    """Decode all blocks of the stream and the sections, and compare them with their checksums.

    `progress` is told how many uncompressed bytes each step did. Superblock, footer and index were checked
    when the archive was opened.
    """
    report = VerifyReport()
    paths: dict[int, bytes] | None = None
    for segment in archive.segments:
        for number, status in _damaged(archive, segment.places, report, progress):
            block = segment.first_block + number
            paths = archive.paths() if paths is None else paths
            touched = sorted(paths[ino] for ino in archive.files_of_block(block) if ino in paths)
            report.damages.append(Damage(block, status, paths=tuple(touched)))
    for section in archive.sections:
        name = f"{section.kind} of segment {section.segment}"
        for number, status in _damaged(archive, section.places, report, progress):
            report.damages.append(Damage(number, status, section=name))
    return report


def _damaged(
    archive: Archive, places: BlockPlaces, report: VerifyReport, progress: Callable[[int], None] | None
) -> list[tuple[int, BlockStatus]]:
    """The damaged blocks of one run, counted into the report."""
    damaged: list[tuple[int, BlockStatus]] = []
    batch = max(_BATCH_BYTES // archive.block_size, 1)
    for first in range(0, len(places), batch):
        blocks = archive.decode_places(places, first, min(batch, len(places) - first), verify=True)
        for number, block in enumerate(blocks, first):
            if block.status is not BlockStatus.OK:
                damaged.append((number, block.status))
        if progress is not None:
            done = first * archive.block_size
            progress(min(places.uncompressed_size - done, batch * archive.block_size))
    report.num_blocks += len(places)
    report.compressed_size += int(places.compressed_sizes.sum())
    report.uncompressed_size += places.uncompressed_size
    return damaged
