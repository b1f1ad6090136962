"""Truncated, flipped and overwritten archives: errors are clear, and everything undamaged stays readable."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest
from forged_index import forge_index
from oracle.block import build_block
from tree_helpers import files_of_block, list_archive, list_directory, pack
from xxhash import xxh3_64_intdigest

from gompfs.archive import Archive
from gompfs.archive.extract import Extractor
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, parse_block_header
from gompfs.errors import (
    ArchiveFormatError,
    CorruptBlockError,
    CorruptIndexError,
    GompfsError,
    UnsupportedFormatError,
)
from gompfs.verify import verify_archive


def overwrite(path: Path, archive_offset: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(archive_offset)
        file.write(data)


def flip(path: Path, archive_offset: int) -> None:
    with open(path, "r+b") as file:
        overwrite(path, archive_offset, bytes([os.pread(file.fileno(), 1, archive_offset)[0] ^ 0x10]))


def place_in_stream(archive: Archive, ino: int, file_offset: int) -> int:
    """Returns where the stream has a byte of a file that is not in a hole."""
    for extent in archive.extents(ino):
        if extent.file_offset <= file_offset < extent.file_offset + extent.size:
            return extent.stream_offset + file_offset - extent.file_offset
    raise AssertionError("the byte is in a hole")


def bytes_in_block(archive: Archive, ino: int, block: int) -> range:
    """Returns the range of a file that lies in a block of the stream."""
    begin, size = block * archive.block_size, archive.segments[0].blocks.uncompressed_sizes[block]
    for extent in archive.extents(ino):
        first = max(begin, extent.stream_offset)
        last = min(begin + size, extent.stream_offset + extent.size)
        if first < last:
            moved = extent.file_offset - extent.stream_offset
            return range(first + moved, last + moved)
    raise AssertionError("the file has no bytes in the block")


@pytest.fixture
def place(archive_copy: Path) -> tuple[int, int, int]:
    """A block in the middle of big/noise: its number, archive_offset and compressed_size."""
    with Archive(archive_copy) as archive:
        ino = archive.resolve("big/noise").ino
        block = place_in_stream(archive, ino, 350_000) // archive.block_size
        assert files_of_block(archive, block) == [ino]
        table = archive.segments[0].blocks
        return block, int(table.archive_offsets[block]), int(table.compressed_sizes[block])


class TestDamagedBlock:
    @pytest.mark.parametrize("where", ["magic", "codec", "sizes", "checksum", "payload", "last byte"])
    def test_one_flipped_bit(self, archive_copy: Path, tree: Path, place: tuple[int, int, int], where: str) -> None:
        block, archive_offset, compressed_size = place
        at = {
            "magic": 0,
            "codec": 4,
            "sizes": 8,
            "checksum": 24,
            "payload": 500,
            "last byte": compressed_size - 1,
        }
        flip(archive_copy, archive_offset + at[where])
        content = (tree / "big/noise").read_bytes()
        with Archive(archive_copy) as archive:
            ino = archive.resolve("big/noise").ino
            for _ in range(2):  # the second answer comes from the cache
                with pytest.raises(CorruptBlockError) as caught:
                    archive.read(ino, 0, len(content))
                assert (caught.value.archive, caught.value.block) == (str(archive_copy), block)
                assert f"{archive_copy}: block {block}: " in str(caught.value)
            damaged = bytes_in_block(archive, ino, block)
            assert archive.read(ino, 0, damaged.start) == content[: damaged.start]
            assert archive.read(ino, damaged.stop, len(content)) == content[damaged.stop :]
            for _, inode in archive.walk():
                if inode.ino != ino and stat.S_ISREG(inode.mode):
                    archive.read(inode.ino, 0, inode.size)

    def test_content_that_does_not_match_its_checksum(self, archive_copy: Path, place: tuple[int, int, int]) -> None:
        """The compressed bytes are valid but decode to other bytes than were packed. Only `verify` notices this."""
        block, archive_offset, compressed_size = place
        raw = archive_copy.read_bytes()[archive_offset : archive_offset + compressed_size]
        header = parse_block_header(raw)
        content = bytearray(raw[BLOCK_HEADER_SIZE:])
        if header.payload_size != header.uncompressed_size:
            pytest.fail("noise should be stored")
        content[100] ^= 1
        forged = build_block(header.codec, bytes(content), raw[BLOCK_HEADER_SIZE:]).data
        overwrite(archive_copy, archive_offset, forged)
        with Archive(archive_copy) as archive:
            ino = archive.resolve("big/noise").ino
            assert len(archive.read(ino, 0, 1 << 20)) == 700_000
            (damage,) = verify_archive(archive).damages
            assert (damage.block, damage.status) == (block, BlockStatus.BAD_CONTENT)
        with (
            Archive(archive_copy, verify=True) as archive,
            pytest.raises(CorruptBlockError, match="checksum"),
        ):
            archive.read(ino, 0, 1 << 20)

    def test_verify_names_the_files(self, archive_copy: Path, place: tuple[int, int, int]) -> None:
        flip(archive_copy, place[1] + 99)
        with Archive(archive_copy) as archive:
            text = archive.resolve("big/text").ino
            shared = archive.extents(text)[0].stream_offset // archive.block_size + 2
            flip(archive_copy, int(archive.segments[0].blocks.archive_offsets[shared]) + 99)
            report = verify_archive(archive)
        assert [(damage.block, damage.status, damage.section) for damage in report.damages] == [
            (place[0], BlockStatus.BAD_CHECKSUM, None),
            (shared, BlockStatus.BAD_CHECKSUM, None),
        ]
        assert report.damages[0].paths == (b"big/noise",)
        assert len(report.damages[1].paths) == 1
        assert report.damages[1].paths[0] in (b"big/text", b"text-too")

    def test_extracting_skips_damaged_files(
        self, archive_copy: Path, tree: Path, place: tuple[int, int, int], tmp_path: Path
    ) -> None:
        flip(archive_copy, place[1] + 99)
        with Archive(archive_copy) as archive:
            errors: list[GompfsError] = []
            Extractor(archive, tmp_path / "out", on_error=errors.append).extract([b""])
        assert [(error.path, error.block) for error in errors] == [("big/noise", place[0])]
        expected = list_directory(tree)
        del expected[b"big/noise"]
        assert list_directory(tmp_path / "out") == expected

    def test_damaged_hard_links_do_not_stop_extraction(self, archive_copy: Path, tmp_path: Path) -> None:
        with Archive(archive_copy) as archive:
            extent = archive.extents(archive.resolve("big/text").ino)[0]
            table = archive.segments[0].blocks
            flip(archive_copy, int(table.archive_offsets[extent.stream_offset // archive.block_size + 3]) + 99)
            errors: list[GompfsError] = []
            Extractor(archive, tmp_path / "out", on_error=errors.append).extract([b""])
        assert {error.path for error in errors} == {"big/text", "text-too"}
        assert not os.path.lexists(tmp_path / "out/big/text")
        assert not os.path.lexists(tmp_path / "out/text-too")
        assert (tmp_path / "out/sparse").exists()


def test_a_file_that_shrinks_while_it_is_open(archive_copy: Path) -> None:
    with Archive(archive_copy) as archive:
        os.truncate(archive_copy, 100_000)
        ino = archive.resolve("big/noise").ino
        archive.read(ino, 0, 1000)
        with pytest.raises(CorruptBlockError):
            archive.read(ino, 300_000, 200_000)
        assert verify_archive(archive).damages


class TestFrame:
    """Damage to superblock, index and footer."""

    @pytest.mark.parametrize("archive_offset", [0, 7, 8, 12, 16, 40, 63])
    def test_superblock(self, archive_copy: Path, archive_offset: int) -> None:
        flip(archive_copy, archive_offset)
        with pytest.raises(ArchiveFormatError) as caught:
            Archive(archive_copy)
        assert caught.value.archive == str(archive_copy)

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_another_version(self, archive_copy: Path, version: int) -> None:
        fields = b"\x89GOMPFS\n" + version.to_bytes(4, "little") + archive_copy.read_bytes()[12:56]
        overwrite(archive_copy, 0, fields + xxh3_64_intdigest(fields).to_bytes(8, "little"))
        with pytest.raises(UnsupportedFormatError) as caught:
            Archive(archive_copy)
        assert str(caught.value) == f"{archive_copy}: format version {version}; this gompfs reads version 2"

    @pytest.mark.parametrize("block_size", [0, 1, 8192, 16385, 1 << 21, (1 << 32) - 1])
    def test_impossible_block_size(self, archive_copy: Path, block_size: int) -> None:
        with Archive(archive_copy) as archive:
            superblock = archive.superblock._replace(block_size=block_size)
        overwrite(archive_copy, 0, superblock.to_bytes())
        with pytest.raises(ArchiveFormatError, match="impossible"):
            Archive(archive_copy)

    def test_another_block_size_than_the_index_has(self, archive_copy: Path) -> None:
        with Archive(archive_copy) as archive:
            superblock = archive.superblock._replace(block_size=1 << 20)
        overwrite(archive_copy, 0, superblock.to_bytes())
        with pytest.raises(CorruptIndexError):
            Archive(archive_copy)

    def test_no_descriptor_is_left_open(self, archive_copy: Path) -> None:
        before = os.listdir("/proc/self/fd")
        flip(archive_copy, 9)
        for _ in range(3):
            with pytest.raises(ArchiveFormatError):
                Archive(archive_copy)
        assert os.listdir("/proc/self/fd") == before


def test_files_that_are_not_archives(tmp_path: Path) -> None:
    for content in (b"", b"x", bytes(63), bytes(64), os.urandom(5000), b"\x89GOMPFS\n" * 100):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(ArchiveFormatError) as caught:
            Archive(tmp_path / "other")
        assert caught.value.archive == str(tmp_path / "other")
    with pytest.raises(ArchiveFormatError, match="a directory, not an archive"):
        Archive(tmp_path)
    with pytest.raises(FileNotFoundError):
        Archive(tmp_path / "missing")


def test_random_flips_never_give_wrong_bytes(sound_archive: Path, tree: Path, tmp_path: Path) -> None:
    """Whatever bits are flipped, reading gives the packed bytes, or one of two errors that name the archive."""
    content = sound_archive.read_bytes()
    expected = list_directory(tree)
    rng = random.Random(11)
    flipped = tmp_path / "flipped.gomp"
    outcomes: set[tuple[str, str | None]] = set()
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        flipped.write_bytes(damaged)
        try:
            with Archive(flipped) as archive:
                assert list_archive(archive) == expected
            outcomes.add(("padding", str(flipped)))
        except (ArchiveFormatError, CorruptBlockError) as error:
            outcomes.add((type(error).__name__, error.archive))
    assert ("CorruptBlockError", str(flipped)) in outcomes
    assert {archive for _, archive in outcomes} == {str(flipped)}


def test_files_that_all_touch_all_damaged_blocks(tmp_path: Path) -> None:
    """The report had files times blocks lines, and the index was searched once per block."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(1500):
        (tree / f"{number}").write_bytes(random.Random(number).randbytes(16384))
    pack(tmp_path / "a.gomp", tree, block_size=16384)
    with Archive(tmp_path / "a.gomp") as archive:
        size = archive.segments[0].blocks.uncompressed_size
        offsets = [*archive.segments[0].blocks.archive_offsets]
    forge_index(
        tmp_path / "a.gomp",
        f"UPDATE extent SET stream_offset = 0, size = {size}",
        f"UPDATE inode SET size = {size} WHERE mode & 61440 = 32768",
    )
    for offset in offsets:
        flip(tmp_path / "a.gomp", offset)
    with Archive(tmp_path / "a.gomp") as archive:
        report = verify_archive(archive)
    assert len(report.damages) == 1500
    assert sum(len(damage.paths) for damage in report.damages) == 1 << 20
    assert f"damaged blocks affect files {1500 * 1500} times" in str(report.problems)
