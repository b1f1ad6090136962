"""A footer inside a packed file is never mistaken for the archive's own, wherever the archive is cut or damaged.

The attacker owns one file of the tree, or one attribute of a file. It contains a whole archive with a setuid-root
program, at the right offsets, with valid footers at every multiple of 64.
"""

from __future__ import annotations

import os
import random
import stat
import time
from pathlib import Path
from uuid import UUID

import pytest
from hostile_content import EVIL_NAME, footer_ends, hostile_content, payload_offset
from test_packer import FailingSource, MemoryEntry
from tree_helpers import add, list_archive, list_directory, pack
from xxhash import xxh3_64_intdigest

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError, PackError
from gompfs.format import SUPERBLOCK_SIZE, Footer, Superblock, align
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive

STORED = Codec.STORED
BLOCK_SIZE = 64 << 10


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The attacker's file comes first; the other files make the archive long enough to be cut."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "aaa").write_bytes(bytes(BLOCK_SIZE))
    (root / "other").write_bytes(random.Random(3).randbytes(300_000))
    return root


@pytest.fixture
def packed(tree: Path, tmp_path: Path) -> tuple[Path, bytes]:
    """A hostile archive of one generation, and the attacker's content."""
    content = hostile_content(BLOCK_SIZE, payload_offset(SUPERBLOCK_SIZE))
    (tree / "aaa").write_bytes(content)
    pack(tmp_path / "a.gomp", tree, codec=STORED, version=1)
    whole = (tmp_path / "a.gomp").read_bytes()
    assert whole.find(content) == payload_offset(SUPERBLOCK_SIZE)
    return tmp_path / "a.gomp", content


@pytest.fixture
def added(tmp_path: Path, tree: Path) -> tuple[Path, bytes, int]:
    """A harmless archive to which a hostile tree was added, the attacker's content, and the size before adding."""
    archive = tmp_path / "a.gomp"
    (tmp_path / "first").write_bytes(random.Random(4).randbytes(100_000))
    pack(archive, tmp_path / "first", version=1)
    size = archive.stat().st_size
    content = hostile_content(BLOCK_SIZE, payload_offset(size), generation=2, previous_footer=size - 64)
    (tree / "aaa").write_bytes(content)
    add(archive, tree, codec=STORED)
    assert archive.read_bytes().find(content) == payload_offset(size)
    return archive, content, size


def cuts(content: bytes, archive_offset: int, size: int) -> list[int]:
    """Returns sizes to cut at: after some of the embedded footers, at 70 %, and random ones."""
    ends = list(footer_ends(content, archive_offset))
    assert len(ends) > 500
    return [*ends[:3], *random.Random(5).sample(ends, 12), ends[-1], size * 7 // 10, ends[0] + 1, ends[0] + 100]


def test_a_whole_archive_with_a_hostile_file_is_read(packed: tuple[Path, bytes], tree: Path) -> None:
    with Archive(packed[0]) as archive:
        assert archive.warnings == []
        assert list_archive(archive) == list_directory(tree)


def test_a_cut_pack_is_refused(packed: tuple[Path, bytes]) -> None:
    archive, content = packed
    whole = archive.read_bytes()
    for size in cuts(content, payload_offset(SUPERBLOCK_SIZE), len(whole)):
        archive.write_bytes(whole[:size])
        with pytest.raises(ArchiveFormatError, match="no valid footer"):
            Archive(archive)
        with pytest.raises((ArchiveFormatError, PackError)):
            add(archive, archive.parent / "tree/other")
        assert archive.read_bytes() == whole[:size]


def test_a_cut_add_shows_the_generation_before(added: tuple[Path, bytes, int]) -> None:
    archive, content, old_size = added
    whole = archive.read_bytes()
    for size in cuts(content, payload_offset(old_size), len(whole)):
        archive.write_bytes(whole[:size])
        with Archive(archive) as opened:
            assert set(list_archive(opened)) == {b"", b"first"}
            (warning,) = opened.warnings
            assert f"generation 1; the {size - old_size} bytes after it are ignored" in warning
            assert "gompfs repair" in warning


def test_one_flipped_bit_in_the_last_footer(added: tuple[Path, bytes, int]) -> None:
    archive, _, _ = added
    whole = archive.read_bytes()
    for bit in range(0, 64 * 8, 29):
        damaged = bytearray(whole)
        damaged[-64 + bit // 8] ^= 1 << bit % 8
        archive.write_bytes(damaged)
        with Archive(archive) as opened:
            assert set(list_archive(opened)) == {b"", b"first"}
            assert opened.warnings


def test_one_flipped_bit_in_the_only_footer(packed: tuple[Path, bytes]) -> None:
    archive, _ = packed
    damaged = bytearray(archive.read_bytes())
    damaged[-20] ^= 4
    archive.write_bytes(damaged)
    with pytest.raises(ArchiveFormatError, match="no valid footer"):
        Archive(archive)


@pytest.mark.parametrize("kind", ["cut", "flipped"])
def test_no_command_shows_the_attackers_archive(
    added: tuple[Path, bytes, int], tmp_path: Path, kind: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    archive, content, old_size = added
    if kind == "cut":
        os.truncate(archive, next(footer_ends(content, payload_offset(old_size))))
    else:
        with open(archive, "r+b") as file:
            file.seek(-20, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
    os.chdir(tmp_path)
    for command in (["ls", "-lR"], ["info"], ["verify"], ["stats", "a.gomp", "wordcount"], ["extract"]):
        rest = command[1:] if "a.gomp" in command else [*command[1:], "a.gomp"]
        status = run([command[0], *rest, *(["-C", "out"] if command == ["extract"] else [])])
        captured = capfdbinary.readouterr()
        assert EVIL_NAME not in captured.out, command
        assert b"gompfs repair" in captured.out + captured.err, command
        assert status == (command == ["verify"])
    assert run(["cat", "a.gomp", "evil"]) == 1
    assert sorted(os.listdir(tmp_path / "out")) == ["first"]
    assert not any(path.stat().st_mode & stat.S_ISUID for path in (tmp_path / "out").rglob("*"))


def test_footers_in_an_attribute(tmp_path: Path) -> None:
    """Values of extended attributes are stored in the index itself, and a cut may fall inside of one."""
    (tmp_path / "first").write_bytes(random.Random(4).randbytes(100_000))
    pack(tmp_path / "first.gomp", tmp_path / "first", version=1)
    old = (tmp_path / "first.gomp").read_bytes()
    value = bytearray(random.Random(6).randbytes(60_000))

    def make() -> bytearray:
        """Returns the archive after adding an entry with that attribute."""
        archive = tmp_path / "a.gomp"
        archive.write_bytes(old)
        entry = MemoryEntry(b"file", stat.S_IFREG | 0o644, size=1, content=b"x", xattrs={b"user.x": bytes(value)})
        source = FailingSource(OSError())
        source.entries = lambda: iter([entry])  # type: ignore[method-assign]
        add_to_archive(archive, [source], PackOptions(stats=False, mtime_ns=1), engine=select_engine("cpu"))
        return bytearray(archive.read_bytes())

    whole = make()
    ends = []
    start = whole.find(value[8192:8256]) // 4096 * 4096
    # SQLite splits a long value into pages. Find the value's bytes in the index, then put a footer at each multiple of
    # 64.
    for place in range(start + 64, start + 40_960, 64):
        position = value.find(whole[place : place + 64])
        if position >= 0:
            checksum = xxh3_64_intdigest(bytes(whole[start:place]))
            footer = Footer(2, start, place - start, checksum, len(old) - 64).to_bytes()
            whole[place : place + 64] = value[position : position + 64] = footer
            ends.append(place + 64)
    assert len(ends) > 300
    assert make()[: ends[-1]] == whole[: ends[-1]]
    for end in ends[::40]:
        (tmp_path / "a.gomp").write_bytes(whole[:end])
        with Archive(tmp_path / "a.gomp") as opened:
            assert set(list_archive(opened)) == {b"", b"first"}


class TestDamagedWalk:
    """Damage on the forward walk from segment to segment."""

    def test_a_lost_page_with_the_header_of_the_attackers_block(self, tmp_path: Path, tree: Path) -> None:
        """After a page of zeros may follow the content of a packed file, so the walk ends at the zeros."""
        archive = tmp_path / "a.gomp"
        (tmp_path / "first").write_bytes(random.Random(4).randbytes(100_000))
        pack(archive, tmp_path / "first", version=1)
        size = archive.stat().st_size
        first = hostile_content(BLOCK_SIZE, payload_offset(size))
        (tree / "aaa").write_bytes(first)
        walked_first = (size, 32 + BLOCK_SIZE)
        with Archive(archive) as opened:
            (segment,) = opened.segments
            table = segment.blocks
            known = list(zip(table.archive_offsets.tolist(), table.compressed_sizes.tolist(), strict=True))
        second = hostile_content(
            BLOCK_SIZE,
            payload_offset(size + 32 + BLOCK_SIZE),
            generation=2,
            previous_footer=size - 64,
            walked=[*known, walked_first],
        )
        (tree / "aab").write_bytes(second)
        add(archive, tree, codec=STORED)
        whole = archive.read_bytes()
        header = size + 32 + BLOCK_SIZE
        page = header // 4096 * 4096
        for end in list(footer_ends(second, payload_offset(header)))[:3]:
            archive.write_bytes(whole[:page] + bytes(4096) + whole[page + 4096 : end] + bytes(1000))
            with Archive(archive) as opened:
                assert set(list_archive(opened)) == {b"", b"first"}

    def test_a_damaged_size_that_leads_into_the_attackers_file(self, added: tuple[Path, bytes, int]) -> None:
        archive, _, old_size = added
        whole = bytearray(archive.read_bytes())
        for size in range(0, BLOCK_SIZE, 1008):
            damaged = bytearray(whole[:-64])
            damaged[old_size + 8 : old_size + 12] = size.to_bytes(4, "little")
            archive.write_bytes(damaged)
            with Archive(archive) as opened:
                assert set(list_archive(opened)) == {b"", b"first"}

    def test_many_blocks_are_walked_through_in_little_time(self, tmp_path: Path) -> None:
        """20,000 blocks, 250 MB, take about 0.1 s; the limit is higher for a busy machine."""
        payload_size = 12_500
        header = b"GBLK" + bytes(4) + payload_size.to_bytes(4, "little") + BLOCK_SIZE.to_bytes(4, "little") + bytes(16)
        with open(tmp_path / "sparse.gomp", "wb") as file:
            file.write(Superblock(BLOCK_SIZE, UUID(int=1)).to_bytes())
            for _ in range(20_000):
                file.seek(align(file.tell(), 16))
                file.write(header)
                file.seek(payload_size, os.SEEK_CUR)
            file.write(b"torn")
        started = time.monotonic()
        with pytest.raises(ArchiveFormatError, match="no valid footer"):
            Archive(tmp_path / "sparse.gomp")
        assert time.monotonic() - started < 2
