"""Archives through fsspec: fsspec's own test suite, programs that use fsspec, and the requests to a remote archive."""

from __future__ import annotations

import importlib
import os
import pickle
import random
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.bag
import duckdb
import fsspec
import pandas
import pyarrow.csv
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.tests import abstract
from range_server import serving
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.errors import ArchiveFormatError
from gompfs.integrations.filesystem import GompfsFileSystem
from gompfs.remote.chunk_cache import CHUNK_SIZE
from gompfs.remote.remote_file import open_in

BLOCK_SIZE = 16 << 10


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Registers the file system as the entry point of an installed gompfs does. Closes everything after each test."""
    fsspec.register_implementation("gompfs", GompfsFileSystem, clobber=True)
    yield
    for opened in list(GompfsFileSystem._cache.values()):
        opened.close()
    assert not GompfsFileSystem._cache
    fsspec.filesystem("memory").store.clear()


class PackedWhenRead:
    """Creates files in a local directory, and answers all other calls from an archive of that directory."""

    _CHANGES = ("mkdir", "makedirs", "touch", "pipe", "rm")

    def __init__(self, root: Path) -> None:
        self._root = root
        self._local = LocalFileSystem(auto_mkdir=True)
        self._packed: Any = None

    def __getattr__(self, name: str) -> Any:
        if name not in self._CHANGES:
            if self._packed is None:
                pack(self._root / "a.gomp", self._root / "tree", force=True)
                self._packed = fsspec.filesystem("gompfs", fo=str(self._root / "a.gomp"), skip_instance_cache=True)
            return getattr(self._packed, name)

        def change(path: str, *arguments: Any, **options: Any) -> Any:
            self._packed = None
            return getattr(self._local, name)(str(self._root / "tree" / path), *arguments, **options)

        return change


class TestReadOnlyPartOfTheSuite(abstract.AbstractFixtures, abstract.AbstractGetTests):
    """fsspec's own tests of reading."""

    @pytest.fixture
    def fs(self, tmp_path: Path) -> PackedWhenRead:
        return PackedWhenRead(tmp_path)

    @pytest.fixture
    def fs_path(self) -> str:
        return "base"  # fsspec's recursive copies get wrong names from a root without a slash


@pytest.fixture
def fs(sound_archive: Path) -> GompfsFileSystem:
    return fsspec.filesystem("gompfs", fo=str(sound_archive))


def test_the_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    place = project["project"]["entry-points"]["fsspec.specs"]["gompfs"]
    module, _, name = place.rpartition(".")
    assert getattr(importlib.import_module(module), name) is GompfsFileSystem


def test_the_tree(fs: GompfsFileSystem, tree: Path) -> None:
    for path in ["", "small", "small/deep", "big"]:
        expected = sorted(os.path.join(path, name) for name in os.listdir(tree / path))
        found = {info["name"]: info for info in fs.ls(path)}
        assert list(found) == expected == fs.ls(path, detail=False)
        for name, info in found.items():
            follows = (tree / name).is_file()  # links to directories are reported as links
            assert info["mtime"] == pytest.approx(os.stat(tree / name, follow_symlinks=follows).st_mtime)
            assert info["islink"] == (tree / name).is_symlink()
    assert fs.find("") == sorted(
        str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() or path.is_symlink()
    )
    assert fs.glob("small/d*/**/leaf") == ["small/deep/deeper/leaf"]
    assert fs.du("big") == sum(path.stat().st_size for path in (tree / "big").iterdir())
    assert all((fs.isdir("small"), fs.isdir("link"), fs.isfile("text-too"), not fs.exists("nothing")))
    assert fs.info("link")["destination"] == "small/deep"
    assert fs.info("")["type"] == "directory"
    changed = datetime.fromtimestamp((tree / "big/text").stat().st_mtime, UTC)
    assert abs(fs.modified("big/text") - changed) < timedelta(microseconds=2)
    assert fs.ukey("big/text") == fs.ukey("text-too") != fs.ukey("big/noise")


def test_contents(fs: GompfsFileSystem, tree: Path) -> None:
    content = (tree / "big/noise").read_bytes()
    assert fs.cat("big/noise") == content
    assert fs.cat_file("big/noise", 100_000, 200_000) == content[100_000:200_000]
    assert fs.cat_file("big/noise", -50, None) == content[-50:]
    assert fs.tail("big/noise", 10) == content[-10:]
    names = ["small/01", "small/02", "small/deep/deeper/leaf"]
    assert fs.cat(names) == {name: (tree / name).read_bytes() for name in names}
    parts = [(tree / name).read_bytes()[start : start + 3] for start, name in enumerate(names)]
    assert fs.cat_ranges(names, [0, 1, 2], [3, 4, 5]) == parts
    with fs.open("small/deep/deeper/leaf", "r") as file:
        assert file.read() == "the leaf"
    with fs.open("big/text", "rb") as file:
        file.seek(-5, os.SEEK_END)
        assert file.read() == (tree / "big/text").read_bytes()[-5:]


def test_errors(fs: GompfsFileSystem, tmp_path: Path) -> None:
    for ask in (fs.ls, fs.info, fs.cat_file, fs.open):
        with pytest.raises(FileNotFoundError):
            ask("nothing")
    with pytest.raises(IsADirectoryError):
        fs.cat_file("small")
    with pytest.raises(NotADirectoryError):
        fs.ls("big/text/below")
    for change in (
        lambda: fs.open("new", "wb"),
        lambda: fs.open("big/text", "ab"),
        lambda: fs.pipe("new", b"x"),
        lambda: fs.touch("new"),
        lambda: fs.mkdir("new"),
        lambda: fs.makedirs("new/one"),
        lambda: fs.rm("big", recursive=True),
        lambda: fs.rmdir("small"),
        lambda: fs.cp_file("big/text", "new"),
        lambda: fs.mv("big/text", "new"),
        lambda: fs.put_file(__file__, "new"),
    ):
        with pytest.raises(OSError, match=r"[Rr]ead-only"):
            change()
    with pytest.raises(ValueError, match="no archive given"):
        fsspec.filesystem("gompfs")
    with pytest.raises(FileNotFoundError):
        fsspec.filesystem("gompfs", fo=str(tmp_path / "missing.gomp"))
    with pytest.raises(FileNotFoundError):
        fsspec.open("gompfs://a::memory://missing.gomp").open()
    fsspec.filesystem("memory").pipe("/other", b"something")
    with pytest.raises(ArchiveFormatError, match="/other"):
        fsspec.filesystem("gompfs", fo="memory://other")


def test_directories_of_a_hostile_archive(forge) -> None:
    """A directory inside itself has no end. A directory with two names can be listed too many times."""
    path = forge("INSERT INTO dirent SELECT max(ino), CAST('again' AS BLOB), 1 FROM inode WHERE mode & 61440 = 16384")
    fs = fsspec.filesystem("gompfs", fo=str(path))
    for ask in (lambda: fs.find(""), lambda: list(fs.walk("")), lambda: fs.glob("**"), lambda: fs.du("")):
        with pytest.raises(ArchiveFormatError, match="two names"):
            ask()
    assert list(fs.walk("nothing")) == []
    with pytest.raises(FileNotFoundError):
        list(fs.walk("nothing", on_error="raise"))


def test_chained_urls(sound_archive: Path, tree: Path, tmp_path: Path) -> None:
    expected = (tree / "small/01").read_bytes()
    fsspec.filesystem("memory").put(str(sound_archive), "/in/c.gomp")
    (tmp_path / "outer").mkdir()
    os.link(sound_archive, tmp_path / "outer/c.gomp")
    pack(tmp_path / "outer.gomp", tmp_path / "outer")
    for url in (
        f"gompfs://small/01::file://{sound_archive}",
        f"gompfs://small/01::{sound_archive}",
        "gompfs://small/01::memory://in/c.gomp",
        f"gompfs://small/01::simplecache::file://{sound_archive}",
        f"blockcache::gompfs://small/01::file://{sound_archive}",
        f"gompfs://small/01::gompfs://c.gomp::file://{tmp_path}/outer.gomp",
    ):
        with fsspec.open(url) as file:
            assert file.read() == expected, url
    many = fsspec.open_files("gompfs://small/0*::memory://in/c.gomp")
    assert len(many) == 10
    with many[1] as file:
        assert file.read() == expected


def test_a_replaced_archive_is_seen_after_closing(archive_copy: Path, tmp_path: Path) -> None:
    fs = fsspec.filesystem("gompfs", fo=str(archive_copy))
    (tmp_path / "new").write_text("new")
    pack(archive_copy, tmp_path / "new", force=True)
    assert "new" not in fs.ls("", detail=False)
    fs.close()
    with pytest.raises(ValueError, match="closed"):
        fs.ls("")
    assert fsspec.filesystem("gompfs", fo=str(archive_copy)).ls("", detail=False) == ["new"]


def test_another_process_opens_it_anew(fs: GompfsFileSystem, sound_archive: Path, tree: Path) -> None:
    assert fsspec.filesystem("gompfs", fo=str(sound_archive)) is fs
    program = "import sys, pickle; print(pickle.load(sys.stdin.buffer).cat('small/deep/deeper/leaf').decode())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], input=pickle.dumps(fs), capture_output=True, check=True
    )
    assert done.stdout == b"the leaf\n"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of 4 MB of noise in one file, and of many small files, beside its tree.

    The index is larger than the first read at the end of the archive.
    """
    rng = random.Random(9)
    folder = tmp_path_factory.mktemp("large")
    tree = folder / "tree"
    for number in range(5000):
        path = tree / f"directory-{number // 100}/a-name-of-{number:04d}-{rng.randbytes(16).hex()}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(500))
    (tree / "noise").write_bytes(rng.randbytes(4_000_000))
    pack(folder / "large.gomp", tree, block_size=BLOCK_SIZE, dictionary_size=0)
    return folder / "large.gomp"


class TestRemote:
    def test_a_small_file_of_a_large_archive(self, large: Path) -> None:
        tree = large.parent / "tree"
        (path,) = (tree / "directory-7").glob("a-name-of-0712-*")
        name = f"directory-7/{path.name}"
        with Archive(large) as archive:
            index_size = archive.footer.index_size
        assert index_size > 64 << 10
        with serving(large.parent) as server, fsspec.open(f"gompfs://{name}::{server.url}/large.gomp") as file:
            opening = len(server.ranges)
            assert file.read() == (tree / name).read_bytes()
            assert len(server.ranges) <= opening + 1
        # The bytes sent are the beginning of the archive, the index and the blocks of the file, in whole chunks.
        assert opening <= 5
        assert server.bytes_sent <= index_size + 6 * CHUNK_SIZE
        assert large.stat().st_size > 4_000_000

    def test_what_follows_is_fetched_ahead_and_nothing_twice(self, large: Path) -> None:
        with serving(large.parent) as server:
            fs = fsspec.filesystem("gompfs", fo=f"{server.url}/large.gomp")
            assert fs.cat("noise") == (large.parent / "tree/noise").read_bytes()
            fs.find("", detail=True)
        assert len(server.ranges) < 40
        assert all(first % CHUNK_SIZE == 0 for first, _ in server.ranges)
        ordered = sorted(server.ranges)
        assert all(last < first for (_, last), (first, _) in pairwise(ordered))

    def test_the_whole_tree_over_http(self, sound_archive: Path, tree: Path) -> None:
        with serving(sound_archive.parent) as server:
            fs = fsspec.filesystem("gompfs", fo=f"{server.url}/{sound_archive.name}")
            for name in fs.find(""):
                if (tree / name).is_file():
                    assert fs.cat(name) == (tree / name).read_bytes(), name

    def test_a_server_without_ranges(self, large: Path) -> None:
        with serving(large.parent, serves_ranges=False) as server, pytest.raises(OSError, match="ignores ranges"):
            fsspec.filesystem("gompfs", fo=f"{server.url}/large.gomp")

    def test_a_missing_archive(self, tmp_path: Path) -> None:
        with serving(tmp_path) as server, pytest.raises(FileNotFoundError):
            fsspec.filesystem("gompfs", fo=f"{server.url}/missing.gomp")

    def test_an_archive_that_changes_meanwhile(self, large: Path) -> None:
        """What is cached stays readable; nothing of the new file is ever taken for the old one."""
        store = fsspec.filesystem("memory")
        content = large.read_bytes()
        store.pipe("/c.gomp", content)
        fs = fsspec.filesystem("gompfs", fo="memory://c.gomp")
        small = fs.glob("directory-7/a-name-of-0712-*")[0]
        cached = fs.cat(small)
        for other in (bytes(len(content)), b"short"):
            store.pipe("/c.gomp", other)
            with pytest.raises(OSError, match="was replaced"):
                fs.cat("noise")
            assert fs.cat(small) == cached

    def test_every_range_of_a_stored_file(self) -> None:
        content = random.Random(1).randbytes(350_000)
        store = fsspec.filesystem("memory")
        store.pipe("/x", content)
        stored = open_in(store, "/x")
        assert stored.size() == len(content)
        rng = random.Random(2)
        for _ in range(200):
            start, size = rng.randrange(len(content) + 100), rng.choice((0, 1, 100, 70_000, 200_000))
            stored.announce([(rng.randrange(len(content) + 100), rng.choice((0, 1, 100_000)))])
            assert stored.read(size, start) == content[start : start + size]
        stored.close()


class TestPrograms:
    @pytest.fixture
    def tables(self, tmp_path: Path) -> tuple[str, pandas.DataFrame]:
        rng = random.Random(11)
        numbers = [rng.randrange(1000) for _ in range(20_000)]
        table = pandas.DataFrame({"number": numbers, "name": [f"n-{number % 17}" for number in numbers]})
        (tmp_path / "tree/parts").mkdir(parents=True)
        table.to_csv(tmp_path / "tree/table.csv", index=False)
        table.to_parquet(tmp_path / "tree/table.parquet")
        for part in range(4):
            table[part::4].to_parquet(tmp_path / f"tree/parts/{part}.parquet")
        pack(tmp_path / "t.gomp", tmp_path / "tree", block_size=BLOCK_SIZE)
        fsspec.filesystem("memory").put(str(tmp_path / "t.gomp"), "/t.gomp")
        return f"file://{tmp_path}/t.gomp", table

    @pytest.mark.parametrize("remote", [False, True])
    def test_pandas(self, tables: tuple[str, pandas.DataFrame], remote: bool) -> None:
        archive = "memory://t.gomp" if remote else tables[0]
        pandas.testing.assert_frame_equal(pandas.read_csv(f"gompfs://table.csv::{archive}"), tables[1])
        pandas.testing.assert_frame_equal(pandas.read_parquet(f"gompfs://table.parquet::{archive}"), tables[1])

    @pytest.mark.parametrize("remote", [False, True])
    def test_duckdb(self, tables: tuple[str, pandas.DataFrame], remote: bool) -> None:
        connection = duckdb.connect()
        connection.register_filesystem(fsspec.filesystem("gompfs", fo="memory://t.gomp" if remote else tables[0]))
        expected = tables[1].groupby("name")["number"].sum().sort_index()
        for source in ("table.csv", "table.parquet", "parts/*.parquet"):
            rows = connection.sql(f"SELECT name, sum(number) FROM 'gompfs://{source}' GROUP BY 1 ORDER BY 1").fetchall()
            assert rows == list(expected.items())
        connection.close()

    def test_pyarrow(self, tables: tuple[str, pandas.DataFrame]) -> None:
        fs = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fsspec.filesystem("gompfs", fo="memory://t.gomp")))
        with fs.open_input_stream("table.csv") as stream:
            assert pyarrow.csv.read_csv(stream).to_pandas()["number"].tolist() == tables[1]["number"].tolist()
        columns = pyarrow.parquet.read_table("table.parquet", filesystem=fs, columns=["number"])
        assert columns["number"].to_pylist() == tables[1]["number"].tolist()
        assert pyarrow.dataset.dataset("parts", filesystem=fs).count_rows() == len(tables[1])

    def test_dask(self, tables: tuple[str, pandas.DataFrame]) -> None:
        lines = dask.bag.read_text(f"gompfs://table.csv::{tables[0]}", blocksize=50_000)
        assert lines.npartitions > 2
        assert lines.count().compute(scheduler="threads") == len(tables[1]) + 1
