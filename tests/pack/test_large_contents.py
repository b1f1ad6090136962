"""Large files: read and hashed in pieces by several threads, compared piece by piece with what is stored."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import random
import stat
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memory_source import MemoryEntry
from tree_helpers import list_archive, list_directory, pack

from gompfs._native.sources import PieceHashes, Place, read_range
from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.pack import open_source
from gompfs.pack.large_contents import LargeContents
from gompfs.verify import verify_archive

MIB = 1 << 20
PIECE = 256 << 10
CONTENT = random.Random(1).randbytes(3 * MIB + 1234)


def expected_digests(content: bytes) -> bytes:
    pieces = [content[start : start + PIECE] for start in range(0, len(content), PIECE)]
    return b"".join(hashlib.sha256(piece).digest() for piece in pieces)


@settings(deadline=None)
@given(st.lists(st.integers(0, len(CONTENT)), max_size=6), st.integers(1, 4))
@example([PIECE, PIECE, 2 * PIECE], 4)
@example([PIECE - 1, PIECE + 1, len(CONTENT)], 2)
def test_hashes_are_those_of_hashlib(cuts: list[int], num_threads: int) -> None:
    hashes = PieceHashes()
    positions = [0, *sorted(cuts), len(CONTENT)]
    for start, end in itertools.pairwise(positions):
        hashes.append(memoryview(CONTENT)[start:end], num_threads)
        assert len(hashes.digests) == end // PIECE * 32
    hashes.finish()
    assert hashes.digests == expected_digests(CONTENT)


def test_hashes_of_nothing() -> None:
    hashes = PieceHashes()
    hashes.append(b"", 2)
    hashes.finish()
    assert hashes.digests == b""


@pytest.mark.parametrize("num_threads", [1, 4])
@pytest.mark.parametrize("offset", [0, 1, MIB + 7, len(CONTENT) - 5, len(CONTENT) + 10])
def test_a_range_of_a_file(tmp_path: Path, offset: int, num_threads: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    memory = memoryview(bytearray(b"\xff" * (2 * MIB + 11)))
    with open(path, "rb") as file:
        missing = read_range(file.fileno(), offset, memory, num_threads)
    found = CONTENT[offset : offset + len(memory)]
    assert missing == len(memory) - len(found)
    assert memory == found + bytes(missing)


def test_a_range_that_cannot_be_read(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(IsADirectoryError):
            read_range(directory, 0, memoryview(bytearray(4 * MIB)), 2)
    finally:
        os.close(directory)
    with open("/proc/self/mem", "rb") as file:  # nothing is mapped at address 0
        with pytest.raises(OSError, match=os.strerror(errno.EIO)) as caught:
            read_range(file.fileno(), 0, memoryview(bytearray(MIB)), 1)
        assert caught.value.errno == errno.EIO


class Counted(MemoryEntry):
    """A file that can be read again, and counts the bytes that are read."""

    num_read = 0

    @property
    def can_reopen(self) -> bool:
        return True

    def read_at(self, file_offset: int, size: int) -> bytes:
        self.num_read += size
        return super().read_at(file_offset, size)


def entry(content: bytes) -> Counted:
    return Counted(b"name", stat.S_IFREG | 0o644, size=len(content), content=content)


def known(*contents: bytes) -> LargeContents:
    """Each is a file of text, with its position in the arguments as number."""
    all_known = LargeContents()
    for number, content in enumerate(contents):
        hashes = PieceHashes()
        hashes.append(content, 2)
        all_known.add(len(content), hashes, Place.TEXT, number)
    return all_known


def flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


def test_equal_contents_are_found() -> None:
    other = flipped(CONTENT, 2 * MIB)
    contents = known(other, CONTENT, CONTENT[:-1])
    assert contents.find(entry(CONTENT)) == (Place.TEXT, 1)
    assert contents.find(entry(other)) == (Place.TEXT, 0)
    assert contents.find(entry(CONTENT[:-1])) == (Place.TEXT, 2)
    assert contents.find(entry(CONTENT[:-2])) is None
    assert known(CONTENT, other, CONTENT).find(entry(CONTENT)) == (Place.TEXT, 2)


@pytest.mark.parametrize(
    ("position", "num_read"),
    [
        *((0, PIECE), (PIECE - 1, PIECE), (PIECE, 16 * MIB + PIECE)),
        *((17 * MIB, 32 * MIB + PIECE), (40 * MIB - 1, 40 * MIB)),
    ],
)
def test_a_file_is_read_up_to_the_piece_that_differs(position: int, num_read: int) -> None:
    content = random.Random(2).randbytes(40 * MIB)
    read = entry(flipped(content, position))
    assert known(content).find(read) is None
    assert read.num_read == num_read


def test_a_file_of_another_size_is_not_read() -> None:
    read = entry(CONTENT)
    assert known(CONTENT[:-1]).find(read) is None
    assert read.num_read == 0


def test_a_file_that_becomes_shorter_is_not_equal() -> None:
    read = entry(CONTENT)
    read.size += MIB
    assert known(CONTENT + bytes(MIB)).find(read) is None


def test_large_files_of_one_size(tmp_path: Path) -> None:
    """Files that differ in one byte, at both ends and between, and two that are equal, one of them with holes."""
    tree = tmp_path / "tree"
    tree.mkdir()
    content = CONTENT + bytes(9 * MIB) + CONTENT
    for number, position in enumerate((0, len(content) // 2, len(content) - 1)):
        (tree / f"a{number}").write_bytes(flipped(content, position))
    for name in ("b", "c"):
        (tree / name).write_bytes(content)
    with open(tree / "d", "wb") as file:
        file.write(CONTENT)
        file.seek(9 * MIB, os.SEEK_CUR)
        file.write(CONTENT)
    report = pack(tmp_path / "a.gomp", tree)
    assert report.num_duplicates == 2
    assert len(CONTENT) < report.stream_size <= 4 * len(content) - 5 * len(CONTENT)  # zeros are stored again
    with Archive(tmp_path / "a.gomp") as archive:
        assert list_archive(archive) == list_directory(tree)


@pytest.mark.parametrize("content", [CONTENT + CONTENT, b"text " * MIB], ids=["bytes", "text"])
def test_equal_large_files_beside_text(tmp_path: Path, content: bytes) -> None:
    """The second one is text, or listed as a file that is not, as the first one is."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("a", "b"):
        (tree / name).write_bytes(content)
    (tree / "c").write_bytes(b"words\n" * 99)
    assert pack(tmp_path / "a.gomp", tree, codec=Codec.GOMPRESSO_TADOC).num_duplicates == 1
    with Archive(tmp_path / "a.gomp") as archive:
        assert list_archive(archive) == list_directory(tree)
        assert verify_archive(archive).problems == []


def test_a_large_file_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT * 2)
    source = open_source(path)
    for each in source.entries():
        if each.has_content:
            os.truncate(path, len(CONTENT))
            memory = memoryview(bytearray(b"\xff" * each.size))
            with each.open() as file:
                for start in range(0, each.size, MIB):  # there is one warning for all reads
                    count = min(MIB, each.size - start)
                    assert file.readinto(memory[start : start + MIB]) == count  # type: ignore[attr-defined]
                assert file.readinto(memory[:10]) == 0  # type: ignore[attr-defined]
    assert memory == CONTENT + bytes(len(CONTENT))
    assert source.warnings == [
        f"{path}: file shrank by {len(CONTENT)} bytes; padded with zeros",
        f"{path}: file changed as we read it",
    ]
