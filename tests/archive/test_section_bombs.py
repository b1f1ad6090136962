"""Small archives that claim gigabytes of sections, and blocks that overlap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gompfs.archive import Archive
from gompfs.errors import CorruptBlockError, CorruptIndexError, GompfsError
from gompfs.verify import verify_archive

BLOCK_SIZE = 16 << 10
Forge = Callable[..., Path]


def test_a_section_of_blocks_too_small_for_their_content(forge: Forge) -> None:
    """Adjacent blocks of 33 bytes each cannot hold 16 KiB each, whatever their content."""
    path = forge(f"INSERT INTO section VALUES (0, 'other', {BLOCK_SIZE * 20_000}, 64, x'{'21000000' * 20_000}')")
    with Archive(path) as archive:
        with pytest.raises(CorruptIndexError, match="too small for their content"):
            archive.read_section(archive.sections[0])
        assert any("too small" in problem.reason for problem in verify_archive(archive).problems)


def test_a_section_over_the_stream(forge: Forge, archive_copy: Path) -> None:
    """A section whose blocks are those of the stream: verify reports the overlap, and nothing takes much memory."""
    with Archive(archive_copy) as archive:
        sizes = bytes(archive.segments[0].blocks.compressed_sizes)[:400]
    path = forge(f"INSERT INTO section VALUES (0, 'other', {BLOCK_SIZE * 100}, 96, x'{sizes.hex()}')")
    with Archive(path) as archive:
        reasons = [problem.reason for problem in verify_archive(archive).problems]
        assert any("overlaps another" in reason for reason in reasons)
        with pytest.raises(CorruptBlockError):
            archive.read_section(archive.sections[0])


def test_archives_of_gompfs_pass(sound_archive: Path) -> None:
    with Archive(sound_archive) as archive:
        for section in archive.sections:
            archive.read_section(section)
        try:
            assert verify_archive(archive).is_sound
        except GompfsError as error:
            pytest.fail(str(error))
