"""How much of an archive is read to find the contents of new files in it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tree_helpers import add, pack, write_files

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import PackReport, add_to_archive, archived_contents, archived_large, open_source
from gompfs.pack.archived_contents import ArchivedContents, ReadingLimit

MIB = 1 << 20


def counts(report: PackReport) -> tuple[int, int, int]:
    return report.num_unchanged, report.num_archived, report.stream_size


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the sizes of the contents of the archive that were read, once they are."""
    sizes: list[int] = []
    real = ArchivedContents._read

    def note(self: ArchivedContents, files: list[tuple[int, int]]) -> None:
        sizes.extend(size for _, size in files)
        real(self, files)

    monkeypatch.setattr(ArchivedContents, "_read", note)
    return sizes


@pytest.fixture
def many(tmp_path: Path) -> Callable[..., Path]:
    """Makes an archive of many files of some sizes, which are random bytes."""

    def make(sizes: list[int], codec: Codec = Codec.STORED) -> Path:
        rng = random.Random(3)
        write_files(tmp_path / "many", {f"{number:04}": rng.randbytes(size) for number, size in enumerate(sizes)})
        pack(tmp_path / "a.gomp", tmp_path / "many", codec=codec)
        return tmp_path / "a.gomp"

    return make


def test_only_files_of_the_size_are_read(many: Callable[..., Path], read: list[int], tmp_path: Path) -> None:
    sizes = [3, 500_000, 700_000] * 20
    archive = many(sizes)
    (tmp_path / "new").write_bytes(b"abc")
    assert add(archive, tmp_path / "new").stream_size == 3
    assert read == [3] * 20
    read.clear()
    (tmp_path / "newer").write_bytes(b"abcd")
    assert add(archive, tmp_path / "newer").stream_size == 4
    assert read == []


def test_each_content_is_read_at_most_once(many: Callable[..., Path], read: list[int], tmp_path: Path) -> None:
    """Files that come one by one: soon whole ranges are read."""
    archive = many([2000 + number % 7 for number in range(2000)])
    for path in (tmp_path / "many").iterdir():
        os.utime(path, ns=(1, 1))
    order = sorted(os.listdir(tmp_path / "many"))
    random.Random(4).shuffle(order)
    sources = [open_source(tmp_path / "many" / name, alone=False) for name in order]
    report = add_to_archive(archive, sources, PackOptions(Codec.STORED), engine=select_engine("cpu"))
    assert counts(report) == (0, 2000, 0)
    assert len(read) == 2000


def test_what_is_read_is_limited(
    many: Callable[..., Path], read: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many files of a size, that at the same path is read, and few others: those after it."""
    archive = many([100_000] * 200)
    monkeypatch.setattr(archived_contents, "_FREE_COST", 2 * MIB)
    contents = [(tmp_path / f"many/{number:04}").read_bytes() for number in (100, 104, 99)]
    write_files(tmp_path / "new", dict(zip(("0100", "after", "before"), contents, strict=True)))
    report = add(archive, tmp_path / "new")
    assert counts(report) == (0, 2, 100_000)
    assert 3 <= len(read) < 60
    # More files allow to read more.
    rng = random.Random(5)
    write_files(tmp_path / "other", {f"x{number}": rng.randbytes(100_000) for number in range(40)})
    write_files(tmp_path / "other", {"y": (tmp_path / "many/0001").read_bytes()})
    read.clear()
    assert counts(add(archive, tmp_path / "other")) == (0, 1, 40 * 100_000)
    assert len(read) <= 242


def test_many_tiny_files_of_one_size(many: Callable[..., Path], read: list[int], tmp_path: Path) -> None:
    """Some of those that are in one range of the stream are read."""
    archive = many([3] * 20_000)
    (tmp_path / "new").write_bytes((tmp_path / "many/0007").read_bytes())
    assert counts(add(archive, tmp_path / "new")) == (0, 1, 0)
    assert 10_000 < len(read) < 18_000


def test_a_tree_that_was_moved_is_found_in_its_order(
    many: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the archive has more files of one size than are read at first."""
    monkeypatch.setattr(archived_contents, "_FREE_COST", 5 * MIB)
    archive = many([20_000] * 1000)
    os.rename(tmp_path / "many", tmp_path / "moved")
    moved = [open_source(tmp_path / "moved", prefix="moved")]
    report = add_to_archive(archive, moved, PackOptions(Codec.STORED), engine=select_engine("cpu"))
    assert counts(report) == (0, 1000, 0)


def test_files_with_equal_bytes_are_read_once(tmp_path: Path, read: list[int]) -> None:
    write_files(tmp_path / "in", {f"{number}": b"\0 the same" * 1000 for number in range(50)})
    pack(tmp_path / "a.gomp", tmp_path / "in")
    (tmp_path / "new").write_bytes(b"\0 the same" * 1000)
    assert counts(add(tmp_path / "a.gomp", tmp_path / "new")) == (0, 1, 0)
    assert read == [10_000]


def test_heads_of_large_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archived_large, "MAX_WHOLE_SIZE", 1000)
    monkeypatch.setattr("gompfs.pack.contents.MAX_WHOLE_SIZE", 1000)
    rng = random.Random(6)
    same_head = rng.randbytes(archived_large._HEAD_SIZE)
    size = archived_large._HEAD_SIZE + 1000
    contents = {f"{number}": rng.randbytes(size) for number in range(5)}
    contents |= {f"h{number}": same_head + rng.randbytes(1000) for number in range(3)}
    write_files(tmp_path / "in", contents)
    options, engine = PackOptions(Codec.STORED), select_engine("cpu")
    pack(tmp_path / "a.gomp", tmp_path / "in", codec=Codec.STORED)
    heads: list[int] = []
    real = archived_large.LargeArchivedContents._head

    def note(self: archived_large.LargeArchivedContents, index: int) -> bytes | None:
        heads.append(index)
        return real(self, index)

    monkeypatch.setattr(archived_large.LargeArchivedContents, "_head", note)
    new = {"new/a": contents["2"], "new/b": contents["h1"], "new/c": same_head + rng.randbytes(1000)}
    write_files(tmp_path, new)
    os.link(tmp_path / "new/a", tmp_path / "a2")  # files with several names do not come in runs
    os.link(tmp_path / "new/b", tmp_path / "b2")
    os.link(tmp_path / "new/c", tmp_path / "c2")
    report = add_to_archive(tmp_path / "a.gomp", [open_source(tmp_path / "new")], options, engine=engine)
    assert counts(report) == (0, 2, size)
    assert sorted(heads) == list(range(8))
    with Archive(tmp_path / "a.gomp") as opened:
        for name in "abc":
            assert opened.read(opened.resolve(name).ino, 0, MIB) == new[f"new/{name}"]


def test_the_limit() -> None:
    limit = ReadingLimit()
    free = archived_contents._FREE_COST
    assert limit.take(np.array([free])) == 1
    assert limit.is_reached
    assert limit.take(np.array([1])) == 0
    limit.allow_for(MIB)
    assert not limit.is_reached
    assert limit.take(np.array([MIB, 7 * MIB, 8 * MIB, 8 * MIB + 1])) == 3
    assert limit.take(np.array([1, 2])) == 0
