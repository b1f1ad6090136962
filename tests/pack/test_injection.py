"""No byte of a packed file is taken for a header or footer of an archive, wherever the archive is cut.

The attacker owns one file of a tree that is added, and knows the archive before the add: its UUID, and all offsets.
"""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest
from hostile_chain import BLOCK_SIZE, EVIL_NAME, HostileChain, hostile_chain, payload_offset
from tree_helpers import add, list_archive, list_directory, pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.errors import ArchiveFormatError
from gompfs.format import GENERATION_HEADER_SIZE, SUPERBLOCK_SIZE, GenerationHeader, Superblock, align
from gompfs.pack.repair import repair_archive

STORED = Codec.STORED
# What the attacker's generations pretend to be: generation 1; generation 2, with the genuine header; generation 3.
PRETENDED = (1, 2, 3)


class Added:
    """An archive to which a hostile tree was added."""

    def __init__(self, folder: Path, pretended: int) -> None:
        self.archive, self.tree = folder / "a.gomp", folder / "tree"
        (folder / "first").write_bytes(random.Random(4).randbytes(100_000))
        pack(self.archive, folder / "first")
        self.old = self.archive.read_bytes()
        with Archive(self.archive) as opened:
            uuid, footer_offset = opened.superblock.uuid, len(self.old) - 96
        self.start = align(len(self.old), GENERATION_HEADER_SIZE)
        place = payload_offset(self.start + GENERATION_HEADER_SIZE)
        start, previous = {1: (0, 0), 2: (self.start, footer_offset), 3: (place, place)}[pretended]
        self.chain: HostileChain = hostile_chain(
            BLOCK_SIZE, place, uuid, first=pretended, start=start, previous_footer=previous
        )
        self.tree.mkdir()
        (self.tree / "aaa").write_bytes(self.chain.content)
        (self.tree / "other").write_bytes(random.Random(3).randbytes(300_000))
        add(self.archive, self.tree, codec=STORED)
        self.whole = self.archive.read_bytes()
        assert self.whole.find(self.chain.content) == place


@pytest.fixture(params=PRETENDED)
def added(request: pytest.FixtureRequest, tmp_path: Path) -> Added:
    return Added(tmp_path, request.param)


def test_a_whole_archive_with_a_hostile_file_is_read(added: Added) -> None:
    with Archive(added.archive) as archive:
        assert archive.warnings == []
        assert set(list_archive(archive)) == {b"first", *list_directory(added.tree)}


def test_a_cut_add_shows_the_generation_before(added: Added) -> None:
    """Cut where the attacker's footers and headers end, with the header as add leaves it, or as it was committed."""
    uuid = Superblock.from_bytes(added.whole[:SUPERBLOCK_SIZE]).uuid
    for header in (added.whole[added.start : added.start + 64], GenerationHeader(2, uuid).to_bytes(), bytes(64)):
        whole = added.whole[: added.start] + header + added.whole[added.start + 64 :]
        for end in (*added.chain.ends, added.chain.ends[0] + 1, added.chain.ends[-1] + 100):
            added.archive.write_bytes(whole[:end])
            with Archive(added.archive) as archive:
                assert set(list_archive(archive)) == {b"", b"first"}
                (warning,) = archive.warnings
                assert f"generation 1; the {end - len(added.old)} bytes after it are ignored" in warning
            steps = list(repair_archive(added.archive, discard=True))
            assert len(steps) == 1
            assert added.archive.read_bytes() == added.old


@pytest.mark.parametrize("added", [2], indirect=True)
def test_a_damaged_header_is_not_written_again_from_a_packed_file(added: Added) -> None:
    """One bit of the genuine header flips, also to what the attacker's has, and the file is cut at his footers.

    Uncut, the same header is written again: with the genuine position of the index, which its footers tell.
    """
    content = bytearray(added.whole)
    for bit in (*range(0, 8 * GENERATION_HEADER_SIZE, 23), *range(8 * 32, 8 * 34)):  # 32: the position of the index
        place, mask = added.start + bit // 8, 1 << bit % 8
        content[place] ^= mask
        for end in added.chain.ends:
            added.archive.write_bytes(content[:end])
            (step,) = repair_archive(added.archive, discard=True)
            assert "are not a complete generation" in step
            assert added.archive.read_bytes() == added.old
        added.archive.write_bytes(content)
        assert list(repair_archive(added.archive)) == ["generation 2: its header is damaged: it was written again"]
        assert added.archive.read_bytes() == added.whole
        content[place] ^= mask


def test_a_cut_pack_is_refused(tmp_path: Path) -> None:
    """The author of a file of the first pack does not know the UUID, but may guess it."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/other").write_bytes(random.Random(3).randbytes(300_000))
    place = payload_offset(SUPERBLOCK_SIZE)
    (tmp_path / "tree/aaa").write_bytes(bytes(BLOCK_SIZE))
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=STORED)
    with Archive(tmp_path / "a.gomp") as archive:
        uuid = archive.superblock.uuid
    chain = hostile_chain(BLOCK_SIZE, place, uuid)
    content = bytearray((tmp_path / "a.gomp").read_bytes())
    content[place : place + BLOCK_SIZE] = chain.content
    for end in chain.ends:
        (tmp_path / "a.gomp").write_bytes(content[:end])
        with pytest.raises(ArchiveFormatError, match="truncated"):
            Archive(tmp_path / "a.gomp")


def test_the_fake_generation_would_be_shown_if_the_chain_led_there(added: Added) -> None:
    """The attacker's trailers are complete: what protects readers is that they do not look there."""
    place = added.whole.find(added.chain.content)
    index_offset = added.chain.content.find(b"GBLK", 64) + place
    content = bytearray(added.whole)
    footer = added.chain.content.find(b"GOMPEND2") + place
    size = int.from_bytes(content[footer + 48 : footer + 56], "little")
    superblock = Superblock.from_bytes(content[:64])._replace(index_offset=index_offset, index_size=size)
    content[:64] = superblock.to_bytes()
    content[added.chain.ends[-1] - GENERATION_HEADER_SIZE : added.chain.ends[-1]] = bytes(GENERATION_HEADER_SIZE)
    added.archive.write_bytes(content)
    if content[footer + 8] == 1:  # it pretends to be generation 1
        with Archive(added.archive) as archive:
            assert set(list_archive(archive)) == {b"", EVIL_NAME}
            assert archive.footer.generation == 2
    else:
        with pytest.raises(ArchiveFormatError):
            Archive(added.archive)


def test_no_command_shows_the_attackers_archive(
    added: Added, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    os.truncate(added.archive, added.chain.ends[1])
    os.chdir(tmp_path)
    for command in (["ls", "-lR"], ["info"], ["verify"], ["extract"], ["repack"]):
        rest = {"extract": ["-C", "out"], "repack": ["new.gomp"]}.get(command[0], [])
        status = run([*command, "a.gomp", *rest])
        captured = capfdbinary.readouterr()
        assert EVIL_NAME not in captured.out, command
        assert b"gompfs repair" in captured.out + captured.err, command
        assert status == (command == ["verify"])
    assert sorted(os.listdir(tmp_path / "out")) == ["first"]
    assert not any(path.stat().st_mode & stat.S_ISUID for path in (tmp_path / "out").rglob("*"))
