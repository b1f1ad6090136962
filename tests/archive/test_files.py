"""The result of `gompfs.open` behaves as the functions of the same names in `os` and `io` do on the packed tree."""

from __future__ import annotations

import io
import itertools
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tree_helpers import pack

import gompfs
from gompfs import errors as gompfs_errors
from gompfs.codec import BLOCK_HEADER_SIZE
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError, CorruptBlockError, EntryTypeError, OptionError, StatsUnavailableError
from gompfs.files import ArchiveFiles
from gompfs.options import PackOptions
from gompfs.pack import open_source, pack_archive

ATTRIBUTES = ("st_mode", "st_uid", "st_gid", "st_nlink", "st_mtime_ns", "st_mtime")


@pytest.fixture
def files(sound_archive: Path) -> Iterator[ArchiveFiles]:
    with gompfs.open(sound_archive) as files:
        yield files


def test_listing(files: ArchiveFiles, tree: Path) -> None:
    for path in ("", "/", "small", "small/deep/", "/link"):
        inside = tree / path.strip("/")
        assert files.listdir(path) == sorted(os.listdir(inside))
        assert files.listdir(os.fsencode(path)) == sorted(os.listdir(os.fsencode(inside)))
    assert files.listdir(Path("small/deep")) == ["deeper"]
    assert files.listdir() == files.listdir("/")


def test_attributes(files: ArchiveFiles, tree: Path) -> None:
    for path in tree.rglob("*"):
        name = str(path.relative_to(tree))
        found, expected = files.stat(name, follow_symlinks=False), os.lstat(path)
        assert [getattr(found, field) for field in ATTRIBUTES] == [getattr(expected, field) for field in ATTRIBUTES]
        if not path.is_dir():
            assert found.st_size == expected.st_size
        assert found.st_mtime_ns == found.st_atime_ns == found.st_ctime_ns
        assert found[stat.ST_MTIME] == expected[stat.ST_MTIME]
    assert files.stat("link").st_ino == files.stat("small/deep").st_ino
    assert files.stat("big/text").st_ino == files.stat("text-too").st_ino
    assert stat.S_ISDIR(files.stat().st_mode)


def test_times_before_1970(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/old").touch()
    os.utime(tmp_path / "tree/old", ns=(0, -1_500_000_001))
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    with gompfs.open(tmp_path / "a.gomp") as files:
        found, expected = files.stat("old"), os.stat(tmp_path / "tree/old")
        assert (found.st_mtime_ns, found.st_mtime, found[8]) == (-1_500_000_001, expected.st_mtime, expected[8])


def test_links(files: ArchiveFiles, tree: Path) -> None:
    for name in ("link", "absolute", "loop"):
        assert files.readlink(name) == os.readlink(tree / name)
        assert files.readlink(os.fsencode(name)) == os.fsencode(os.readlink(tree / name))
    with pytest.raises(EntryTypeError, match="big/text"):
        files.readlink("big/text")


def test_walking(files: ArchiveFiles, tree: Path) -> None:
    def seen(walk: Iterator[tuple[str, list[str], list[str]]], root: str) -> list[tuple[str, list[str], list[str]]]:
        return [(os.path.relpath(place, root), sorted(below), sorted(others)) for place, below, others in walk]

    # os.walk lists links to directories as directories, although it does not follow them.
    links = {name for name in os.listdir(tree) if (tree / name).is_symlink()}
    expected = []
    for place, below, others in seen(os.walk(tree), str(tree)):
        moved = links & set(below) if place == "." else set()
        expected.append((place, sorted(set(below) - moved), sorted(set(others) | moved)))
    assert sorted(seen(files.walk("/"), "/")) == sorted(expected)
    assert list(files.walk("small/deep")) == [("small/deep", ["deeper"], []), ("small/deep/deeper", [], ["leaf"])]
    assert [place for place, _, _ in files.walk(b"small")] == [b"small", b"small/deep", b"small/deep/deeper"]
    visited = []
    for place, below, _ in files.walk():
        visited.append(place)
        if "small" in below:
            below.remove("small")
    assert visited == ["", "big"]


def test_a_directory_with_two_names(forge) -> None:
    path = forge("INSERT INTO dirent SELECT max(ino), CAST('again' AS BLOB), 1 FROM inode WHERE mode & 61440 = 16384")
    with gompfs.open(path) as files, pytest.raises(ArchiveFormatError, match="two names"):
        list(files.walk())


def test_binary_reading(files: ArchiveFiles, tree: Path) -> None:
    rng = random.Random(3)
    for name in ("big/noise", "big/text", "sparse", "small/11", "text-too"):
        with files.open(name, "rb") as found, open(tree / name, "rb") as expected:
            size = os.path.getsize(tree / name)
            for _ in range(150):
                match rng.randrange(6):
                    case 0:
                        place = rng.randrange(size + 1000)
                        assert found.seek(place) == expected.seek(place)
                    case 1:
                        place = -rng.randrange(size)
                        assert found.seek(place, os.SEEK_END) == expected.seek(place, os.SEEK_END)
                    case 2:
                        count = rng.choice((0, 1, 100, 70_000, 400_000))
                        assert found.read(count) == expected.read(count)
                    case 3:
                        assert found.readline(5000) == expected.readline(5000)
                    case 4:
                        ours, theirs = bytearray(30_000), bytearray(30_000)
                        assert found.readinto(ours) == expected.readinto(theirs)
                        assert ours == theirs
                    case 5:
                        step = rng.randrange(1000)
                        assert found.seek(step, os.SEEK_CUR) == expected.seek(step, os.SEEK_CUR)
                assert found.tell() == expected.tell()
            found.seek(10)
            expected.seek(10)
            assert found.read() == expected.read()
            assert found.read(1) == b""
        assert files.read(name) == (tree / name).read_bytes()


def test_text_reading(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    place = tmp_path / "tree/text"
    place.write_bytes("Grüße\r\naus\nKöln\r".encode() * 20_000)
    (tmp_path / "tree/latin").write_bytes("Köln\n".encode("latin-1"))
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    with gompfs.open(tmp_path / "a.gomp") as files:
        for newline in (None, "", "\n"):
            with (
                files.open("text", encoding="utf-8", newline=newline) as found,
                open(place, encoding="utf-8", newline=newline) as expected,
            ):
                assert list(found) == list(expected)
        assert files.open("latin", "rt", encoding="latin-1").read() == "Köln\n"
        assert files.open("latin", encoding="utf-8", errors="replace").readline() == "K\ufffdln\n"
        with pytest.raises(UnicodeDecodeError):
            files.open("latin", encoding="utf-8").read()


def test_files_are_for_reading_and_seeking(files: ArchiveFiles, tmp_path: Path) -> None:
    with files.open("big/text", "rb") as file:
        assert (file.readable(), file.seekable(), file.writable(), file.name) == (True, True, False, "big/text")
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"x")
        with pytest.raises(OSError, match="before the start"):
            file.seek(-1)
        with open(tmp_path / "copy", "wb") as target:
            shutil.copyfileobj(file, target)
    assert (tmp_path / "copy").read_bytes() == files.read("big/text")
    with pytest.raises(ValueError, match="closed"):
        file.read()
    for mode in ("w", "wb", "a", "r+", "rb+", "x"):
        with pytest.raises(OSError, match="read-only"):
            files.open("big/text", mode)


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda files: files.listdir("nothing"), FileNotFoundError),
        (lambda files: files.listdir("big/text"), NotADirectoryError),
        (lambda files: files.stat("big/text/x"), NotADirectoryError),
        (lambda files: list(files.walk("nothing")), FileNotFoundError),
        (lambda files: list(files.walk("sparse")), NotADirectoryError),
        (lambda files: files.open("nothing"), FileNotFoundError),
        (lambda files: files.open("small"), IsADirectoryError),
        (lambda files: files.read("link"), IsADirectoryError),
        (lambda files: files.stats("wordcount", file="nothing"), FileNotFoundError),
        (lambda files: files.stats("wordcount", file="small"), IsADirectoryError),
        (lambda files: files.stats("no such"), OptionError),
        (lambda files: files.stats("word"), OptionError),
        (lambda files: files.stats("files/small/01/inverted_index"), OptionError),
        (lambda files: files.stats("metrics"), OptionError),
        (lambda files: files.stats("wordcount", top=-1), ValueError),
        (lambda files: files.stats("wordcount", file="big/noise"), StatsUnavailableError),
    ],
)
def test_errors(files: ArchiveFiles, tree: Path, ask, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        ask(files)
    assert caught.value.archive == str(files.archive.path)  # type: ignore[attr-defined]


def test_a_loop_of_links_has_the_number_that_the_kernel_gives(files: ArchiveFiles, tree: Path) -> None:
    with pytest.raises(OSError, match=r"[Tt]oo many levels") as expected:
        os.stat(tree / "loop")
    with pytest.raises(OSError, match="too many levels") as found:
        files.stat("loop")
    assert found.value.errno == expected.value.errno


def test_opening_a_file_that_is_not_an_archive(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        gompfs.open(tmp_path / "missing")
    (tmp_path / "other").write_bytes(b"something")
    with pytest.raises(ArchiveFormatError):
        gompfs.open(tmp_path / "other")


def test_a_damaged_block(archive_copy: Path) -> None:
    with gompfs.open(archive_copy) as files:
        archive = files.archive
        (extent, *_) = archive.extents(files.stat("big/noise").st_ino)
        number = extent.stream_offset // archive.block_size + 2
        place = int(archive.segments[0].blocks.archive_offsets[number]) + BLOCK_HEADER_SIZE + 5
    content = bytearray(archive_copy.read_bytes())
    content[place] ^= 1
    archive_copy.write_bytes(content)
    with gompfs.open(archive_copy) as files, files.open("big/noise", "rb") as file:
        assert len(file.read(1000)) == 1000
        with pytest.raises(CorruptBlockError, match=f"big/noise: block {number}"):
            file.read()
        with pytest.raises(OSError, match="checksum"):
            files.read("big/noise")
        assert files.read("big/zeros") == bytes(300_000)


def test_a_closed_archive(sound_archive: Path) -> None:
    files = gompfs.open(sound_archive)
    file = files.open("big/text", "rb")
    text = files.open("big/text")
    files.close()
    files.close()
    for ask in (files.listdir, files.stat, lambda: files.read("big/text"), file.read, text.read):
        with pytest.raises(ValueError, match="the archive is closed"):
            ask()


def test_many_threads(files: ArchiveFiles, tree: Path) -> None:
    names = [str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    contents = {name: (tree / name).read_bytes() for name in names}
    shared = files.open("big/text", "rb")

    def read(seed: int) -> int:
        rng = random.Random(seed)
        for _ in range(100):
            name = rng.choice(names)
            with files.open(name, "rb") as file:
                start = rng.randrange(len(contents[name]) + 1)
                file.seek(start)
                assert file.read(20_000) == contents[name][start : start + 20_000]
            assert files.stat(name).st_size == len(contents[name])
            assert len(shared.read(100)) == 100
            assert files.listdir("small/deep") == ["deeper"]
        return seed

    with ThreadPoolExecutor(8) as executor:
        assert list(executor.map(read, range(8))) == list(range(8))
    assert shared.tell() == 8 * 100 * 100


def test_statistics(tmp_path: Path) -> None:
    rng = random.Random(5)
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(20):
        (tree / f"{number:02d}").write_text(" ".join(rng.choices(["to", "be", "or", "not", "grün"], k=200)))
    sources = [open_source(tree)]
    pack_archive(sources, tmp_path / "a.gomp", PackOptions(), engine=select_engine("cpu"))
    words = [path.read_text().split() for path in sorted(tree.iterdir())]
    counts = Counter(word for text in words for word in text)
    pairs = Counter(pair for text in words for pair in itertools.pairwise(text))
    with gompfs.open(tmp_path / "a.gomp") as files:
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0].encode()))
        assert [(line["word"], line["count"]) for line in files.stats("wordcount")] == ranked
        assert len(list(files.stats("wordcount", top=2))) == 2
        in_one = {line["word"]: line["count"] for line in files.stats("sort", file="/03")}
        assert in_one == Counter(words[3]) == {x["word"]: x["count"] for x in files.stats("files/03/wordcount")}
        found = {tuple(line["words"]): line["count"] for line in files.stats("sequence_count", ngram_length=2)}
        assert found == pairs
        holding = {line["file"]: line["count"] for line in files.stats("word/grün")}
        assert holding == {f"{n:02d}": text.count("grün") for n, text in enumerate(words)}
        assert {"file", "count"} == set(next(files.stats("phrase/to be")))
        (info,) = files.stats("info")
        assert info["entries"] == 21
        assert info["uuid"] == files.archive.superblock.uuid_text


@pytest.mark.parametrize("mode", ["zz", "", "rr", "rw", "b", "rbt", "+"])
def test_modes_that_do_not_exist(sound_archive: Path, mode: str) -> None:
    """Invalid modes gave OSError (EROFS), as if they were for writing, instead of ValueError."""
    with gompfs.open(sound_archive) as files, pytest.raises(ValueError, match="mode"):
        files.open("big/text", mode)


def test_errors_have_the_attributes_of_an_oserror(sound_archive: Path) -> None:
    """`filename` and `strerror` were None."""
    with gompfs.open(sound_archive) as files:
        with pytest.raises(FileNotFoundError) as caught:
            files.open("nowhere")
        assert (caught.value.filename, caught.value.errno) == ("nowhere", 2)
        assert caught.value.strerror == "no such file or directory"
        with pytest.raises(IsADirectoryError) as caught_too:
            files.open("big")
        assert caught_too.value.filename == "big"


def test_an_archive_that_is_closed(sound_archive: Path) -> None:
    files = gompfs.open(os.fsencode(sound_archive))
    assert repr(files) == f"<ArchiveFiles of the archive {str(sound_archive)!r}>"
    files.close()
    assert "closed" in repr(files)
    with pytest.raises(ValueError, match="closed"), files:
        pass


def test_exists_isdir_isfile(sound_archive: Path) -> None:
    with gompfs.open(sound_archive) as files:
        assert [files.exists(path) for path in ("big", b"link", "loop", "nowhere", "sparse/x")] == [
            True, True, False, False, False,
        ]  # fmt: skip
        assert (files.isdir("link"), files.isfile("link"), files.isfile("sparse")) == (True, False, True)
        assert not files.isdir("nowhere")


def test_errors_are_in_the_package() -> None:
    """`except gompfs.GompfsError` needed an import of gompfs.errors."""
    assert gompfs.GompfsError is ArchiveFormatError.__mro__[1]
    known = {name for name, value in vars(gompfs_errors).items() if isinstance(value, type) and name != "Any"}
    assert {name for name in gompfs.__all__ if name.endswith("Error")} == known
    assert dir(gompfs) == sorted(gompfs.__all__)
    code = "import gompfs, sys; assert 'gompfs.errors' not in sys.modules; gompfs.GompfsError"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
    with pytest.raises(AttributeError):
        gompfs.nothing  # noqa: B018


def test_the_index_as_a_database(files: ArchiveFiles) -> None:
    connection = files.sqlite()
    names = {bytes(name) for (name,) in connection.execute("SELECT name FROM dirent WHERE parent = 1")}
    assert names == set(files.listdir(b""))
    sizes = connection.execute("SELECT SUM(size) FROM inode WHERE mode & 61440 = 32768").fetchall()
    assert sizes == [(files.archive.index.totals()[1],)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM inode")
    connection.close()
    files.close()
    with pytest.raises(ValueError, match="closed"):
        files.sqlite()
