"""Small archives that claim gigabytes of sections, and blocks that overlap."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from test_index_bombs import run_in_bounds

from gompfs.archive import Archive
from gompfs.errors import CorruptBlockError, CorruptIndexError, GompfsError
from gompfs.verify import verify_archive

BLOCK_SIZE = 16 << 10
Forge = Callable[..., Path]


def columns(offsets: list[int], sizes: list[int]) -> str:
    """Returns the index columns for these blocks, as SQL."""
    packed = struct.pack(f"<{len(offsets)}Q", *offsets), struct.pack(f"<{len(sizes)}I", *sizes)
    return f"archive_offsets = x'{packed[0].hex()}', compressed_sizes = x'{packed[1].hex()}'"


def claim(archive: Path, copies: int) -> str:
    """Returns SQL that makes the first block of the stream, repeated `copies` times, the grammar section."""
    with Archive(archive) as opened:
        table = opened.segments[0].blocks
        offset, size = table.archive_offsets[0], table.compressed_sizes[0]
    return grammar_at([offset] * copies, [size] * copies)


def grammar_at(offsets: list[int], sizes: list[int]) -> str:
    """Returns SQL that inserts a grammar section of whole blocks. The archive must not have one."""
    size = BLOCK_SIZE * len(offsets)
    insert = f"INSERT INTO section SELECT 0, 'grammar', {size}, archive_offsets, compressed_sizes"
    fields = ", ".join(f"{value} AS {name}" for name, _, value in map(str.split, columns(offsets, sizes).split(", ")))
    return f"{insert} FROM (SELECT {fields.replace(' AS =', '')})"


@pytest.mark.versions(1)  # in version 2, each block begins after the one before
@pytest.mark.parametrize("command", [["verify"], ["stats", "wordcount"], ["stats", "inverted_index"]])
def test_a_section_of_one_block_many_times(
    archive_copy: Path, forge: Forge, command: list[str], tmp_path: Path
) -> None:
    """143 kB claimed 8 GB: verify used that much memory, and stats tried to allocate it."""
    path = forge(claim(archive_copy, 40_000))
    answer = run_in_bounds([command[0], str(path), *command[1:]], tmp_path)
    assert answer.returncode == 1
    message = "the index is damaged: section grammar of segment 0 has blocks that overlap"
    assert message in answer.stdout + answer.stderr


def test_a_section_of_blocks_too_small_for_their_content(version: int, forge: Forge) -> None:
    """Adjacent blocks of 33 bytes each cannot hold 16 KiB each, whatever their content."""
    path = forge(
        grammar_at([64 + 33 * n for n in range(20_000)], [33] * 20_000)
        if version == 1
        else f"INSERT INTO section VALUES (0, 'grammar', {BLOCK_SIZE * 20_000}, 64, x'{'21000000' * 20_000}')"
    )
    with Archive(path) as archive:
        with pytest.raises(CorruptIndexError, match="too small for their content"):
            archive.read_section(archive.sections[0])
        assert any("too small" in problem.reason for problem in verify_archive(archive).problems)


@pytest.mark.versions(2)
def test_a_section_over_the_stream(forge: Forge, archive_copy: Path) -> None:
    """A section whose blocks are those of the stream: verify reports the overlap, and nothing takes much memory."""
    with Archive(archive_copy) as archive:
        sizes = bytes(archive.segments[0].blocks.compressed_sizes)[:400]
    path = forge(f"INSERT INTO section VALUES (0, 'grammar', {BLOCK_SIZE * 100}, 96, x'{sizes.hex()}')")
    with Archive(path) as archive:
        reasons = [problem.reason for problem in verify_archive(archive).problems]
        assert any("overlaps another" in reason for reason in reasons)
        with pytest.raises(CorruptBlockError):
            archive.read_section(archive.sections[0])


@pytest.mark.versions(1)
def test_a_block_within_another(forge: Forge, archive_copy: Path, tree: Path) -> None:
    """The last block lies inside the first: `cat` could read both, but `verify` reported the first one as damaged."""
    with Archive(archive_copy) as archive:
        table = archive.segments[0].blocks
        offsets, sizes = list(table.archive_offsets), list(table.compressed_sizes)
    offsets[-1], sizes[-1] = offsets[0] + 100, 40
    path = forge(f"UPDATE segment SET {columns(offsets, sizes)}")
    with Archive(path) as archive:
        report = verify_archive(archive)
        assert [damage.block for damage in report.damages] == [len(offsets) - 1]
        reason = f"the block at archive offset {offsets[-1]} overlaps another"
        assert reason in [problem.reason for problem in report.problems]
        noise = archive.resolve("big/noise")
        assert archive.read(noise.ino, 0, BLOCK_SIZE) == (tree / "big/noise").read_bytes()[:BLOCK_SIZE]


@pytest.mark.versions(1)
def test_blocks_with_the_same_bytes(forge: Forge, archive_copy: Path) -> None:
    """Two blocks of the stream may share one block of the archive file."""
    with Archive(archive_copy) as archive:
        table = archive.segments[0].blocks
        offsets, sizes = list(table.archive_offsets), list(table.compressed_sizes)
    offsets[1], sizes[1] = offsets[0], sizes[0]
    with Archive(forge(f"UPDATE segment SET {columns(offsets, sizes)}")) as archive:
        report = verify_archive(archive)
        assert not report.damages
        assert not any("overlap" in problem.reason for problem in report.problems)
        first, second = archive.stored.decode_stream([0, 1])
        assert bytes(first.content) == bytes(second.content)


def test_archives_of_gompfs_pass(sound_archive: Path) -> None:
    with Archive(sound_archive) as archive:
        for section in archive.sections:
            archive.read_section(section)
        try:
            assert verify_archive(archive).is_sound
        except GompfsError as error:
            pytest.fail(str(error))
