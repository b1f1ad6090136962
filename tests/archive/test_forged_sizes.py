"""Files that claim more bytes than any memory has: reading them into memory is refused before it is used."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import duckdb  # noqa: F401  # another module made with nanobind, which must not translate exceptions of gompfs
import pytest

import gompfs
from gompfs import memory
from gompfs.arrays import reader
from gompfs.errors import CorruptIndexError, OptionError
from gompfs.filesystem import GompfsFileSystem
from gompfs.torch import ArchiveDataset

Forge = Callable[..., Path]
LEAF = "small/deep/deeper/leaf"
OF_LEAF = "(SELECT ino FROM dirent WHERE name = x'6c656166')"
SIZE = 1 << 33


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much less memory is free than the forged file claims, but the machine can promise so much."""
    monkeypatch.setattr(memory, "free_memory", lambda: 1 << 28)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "read",
    [
        lambda path: gompfs.open(path).read_many([LEAF]),
        lambda path: gompfs.open(path).read(LEAF),
        lambda path: gompfs.open(path).open(LEAF, "rb").read(),
        lambda path: GompfsFileSystem(str(path)).cat_file(LEAF),
        lambda path: ArchiveDataset(path, [LEAF], output="bytes")[0],
    ],
    ids=["read_many", "read", "open", "fsspec", "dataset"],
)
def test_a_file_larger_than_the_free_memory(forge: Forge, read: Callable[[Path], object]) -> None:
    """The system may promise the memory; then it killed the process while zeros were written to it."""
    path = forge(f"UPDATE inode SET size = {SIZE} WHERE ino = {OF_LEAF}")
    with pytest.raises(MemoryError, match=r"268,435,456 are free"):
        read(path)


@pytest.mark.usefixtures("little_memory")
def test_ranges_of_a_large_file_are_read(forge: Forge) -> None:
    path = forge(f"UPDATE inode SET size = {SIZE} WHERE ino = {OF_LEAF}")
    with gompfs.open(path) as files:
        begin, end = files.read_many([(LEAF, 0, 10), (LEAF, SIZE - 5, None)])
        assert (begin.tobytes(), end.tobytes()) == (b"the leaf\0\0", bytes(5))


def test_free_memory_is_what_the_system_says() -> None:
    """As the kernel says at another moment: memory that programs may get, and free swap."""
    rows = [line.split() for line in Path("/proc/meminfo").read_text().splitlines()]
    kilobytes = {row[0]: int(row[1]) for row in rows}
    free = (kilobytes["MemAvailable:"] + kilobytes["SwapFree:"]) << 10
    assert 0.7 * memory.free_memory() <= free
    memory.check_memory_for(min(memory.free_memory() // 2, 1 << 30))
    with pytest.raises(MemoryError):
        memory.check_memory_for(1 << 50)


def test_the_limit_of_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_GROUP_LIMIT", str(tmp_path / "memory.max"))
    without = memory.free_memory()
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory() > without // 2
    (tmp_path / "memory.max").write_text("70000000\n")
    assert memory.free_memory() == 70_000_000
    with pytest.raises(MemoryError):
        memory.check_memory_for(70_000_001)


def _with_many_extents(forge: Forge, count: int) -> Path:
    """Returns an archive with a file of extents of one byte each."""
    return forge(
        f"INSERT INTO inode VALUES (90000, 33188, 0, 0, {count}, 0, 1, 0, NULL)",
        "INSERT INTO dirent VALUES (1, x'6d616e79', 90000)",
        f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1})"
        " INSERT INTO extent SELECT 90000, i, i % 1000, 1 FROM n",
    )


def test_pieces_that_take_more_memory_than_the_output(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte that is an extent of its own takes many bytes in a plan: 10,000 names of such a file took all memory."""
    path = _with_many_extents(forge, 5000)
    with gompfs.open(path) as files:
        expected = files.read("many") * 20
        monkeypatch.setattr(reader, "ALWAYS_FREE", 1 << 20)
        assert files.read_many([90000] * 20).data.tobytes() == expected
        monkeypatch.setattr(reader, "free_memory", lambda: 10 << 20)
        with pytest.raises(MemoryError):
            files.read_many([90000] * 20)


def test_lines_of_a_file_with_a_huge_hole(forge: Forge) -> None:
    """Finding lines read the zeros of holes in batches of 64 MiB: without end, for a file of 2^60 bytes."""
    size = 1 << 60
    path = forge(f"UPDATE inode SET size = {size} WHERE ino = {OF_LEAF}")
    with gompfs.open(path) as files:
        of_text = files.read("big/text").split(b"\n")
    of_text = of_text if of_text[-1] else of_text[:-1]
    dataset = ArchiveDataset(path, [LEAF, "big/text", LEAF], lines=True, output="bytes")
    assert len(dataset) == 2 + len(of_text)
    numbers = random.Random(3).choices(range(len(of_text)), k=50)
    assert dataset.__getitems__([1 + number for number in numbers]) == [of_text[number] for number in numbers]
    with pytest.raises(MemoryError):
        dataset[0]
    dataset.close()


def test_lines_with_holes_are_those_of_the_whole_content(forge: Forge, tree: Path) -> None:
    path = forge()
    content = (tree / "sparse").read_bytes()
    dataset = ArchiveDataset(path, ["sparse", LEAF], lines=True, output="bytes")
    expected = content.split(b"\n")
    assert dataset.__getitems__(range(len(dataset))) == [*(expected if expected[-1] else expected[:-1]), b"the leaf"]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("UPDATE inode SET size = 9223372036854775807 WHERE mode & 61440 = 32768", OptionError),
        (f"UPDATE extent SET stream_offset = 9223372036854775807 WHERE ino = {OF_LEAF}", CorruptIndexError),
    ],
)
def test_lines_of_impossible_files(forge: Forge, statement: str, error: type[Exception]) -> None:
    path = forge(statement)
    with pytest.raises(error) as caught:
        ArchiveDataset(path, lines=True, output="bytes")
    assert str(path) in str(caught.value) or error is OptionError


def test_too_many_lines(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dataset needs some memory for each line, and a small archive may have very many."""
    path = forge()
    monkeypatch.setattr(memory, "ALWAYS_FREE", 1000)
    monkeypatch.setattr(memory, "free_memory", lambda: 3 << 20)
    with pytest.raises(MemoryError):
        ArchiveDataset(path, ["big/text"] * 5, lines=True, output="bytes")
