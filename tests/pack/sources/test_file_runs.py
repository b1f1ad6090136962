"""Files that come in runs are stored as files that come one by one; the contents of files in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

import pytest

from gompfs._native.sources import (
    ContentCopier,
    Contents,
    FileLoader,
    KnownContents,
    LoadedFiles,
    OpenDirectory,
    Place,
)
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive
from gompfs.pack.sources import SourceEntry
from gompfs.pack.sources.directory import DirectorySource
from gompfs.pack.sources.file_run import FileRun
from gompfs.text import PROBE_SIZE

TEXT = b"some words of a text\n"


def load(folder: Path, *names: str, archived: dict[bytes, tuple[int, int, int]] | None = None) -> LoadedFiles:
    """Returns files of a folder that can be in one run."""
    loader = FileLoader(4 << 20, 64 << 20, 2, [])
    announced = loader.load(
        OpenDirectory(os.open(folder, os.O_RDONLY)), [name.encode() for name in names], archived or {}
    )
    taken = announced.take()
    assert isinstance(taken, LoadedFiles)
    assert announced.take() is None
    return taken


def contents_of(files: LoadedFiles) -> Contents:
    """Returns the contents of files that are all different."""
    return KnownContents(gettempdir()).place(files, 1, None, 2).new_in_stream


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of more files than are flushed to the index at once, some of which cannot be in a run."""
    root = tmp_path_factory.mktemp("runs")
    for folder in ("", "directory", "directory/below", "other"):
        (root / folder).mkdir(exist_ok=True)
        for number in range(1100):
            content = TEXT * (number % 40) if number % 3 else os.urandom(number)
            (root / folder / f"{number:04}").write_bytes(content)
        os.link(root / folder / "0500", root / folder / "0500-link")
        os.truncate(root / folder / "0600", 1 << 20)
        (root / folder / "0700-link").symlink_to("0700")
        with suppress(OSError):  # the file system has no extended attributes
            for number in range(300, 900, 7):
                os.setxattr(root / folder / f"{number:04}", "user.number", b"%d" % number)
                os.setxattr(root / folder / f"{number:04}", "user.empty", b"")
        os.mkfifo(root / folder / "0800-fifo")
    (root / "large").write_bytes(TEXT * 210_000)
    (root / "large-again").write_bytes(TEXT * 210_000)
    return root


OPTIONS = {
    "default": PackOptions(),
    "blocks": PackOptions(Codec.GOMPRESSO_BIT),
    "parts": PackOptions(Codec.GOMPRESSO_BIT, part_size=100_000),
    "values": PackOptions(owner=5, group=6, mtime_ns=-7),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_bytes_as_one_by_one(
    tree: Path, tmp_path: Path, options: PackOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = select_engine("cpu")
    assert any(isinstance(item, FileRun) for item in open_source(tree).items())
    report = pack_archive([open_source(tree)], tmp_path / "runs", options, engine=engine)
    in_runs = DirectorySource.items

    def one_by_one(self: DirectorySource) -> Iterator[SourceEntry]:
        for item in in_runs(self):
            if isinstance(item, FileRun):
                yield from item.entries()
            else:
                yield item

    monkeypatch.setattr(DirectorySource, "items", one_by_one)
    expected = pack_archive([open_source(tree)], tmp_path / "single", options, engine=engine)
    assert (tmp_path / "runs").read_bytes() == (tmp_path / "single").read_bytes()
    assert (report.num_entries, report.size, report.num_duplicates) == (
        expected.num_entries,
        expected.size,
        expected.num_duplicates,
    )


def test_a_file_in_a_run_cannot_replace_a_directory(tmp_path: Path) -> None:
    for tree, path in (("old", "a/b/c"), ("new", "a/b")):
        (tmp_path / tree / path).parent.mkdir(parents=True)
        (tmp_path / tree / path).write_text("x")
    engine = select_engine("cpu")
    pack_archive([open_source(tmp_path / "old")], tmp_path / "archive", PackOptions(), engine=engine)
    with pytest.raises(Exception, match="a/b: the archive has a directory at this path"):
        add_to_archive(tmp_path / "archive", [open_source(tmp_path / "new")], PackOptions(), engine=engine)


def test_a_run_ends_at_4_mib(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}").write_bytes(bytes(1_500_000))
    runs = [item for item in open_source(tmp_path).items() if isinstance(item, FileRun)]
    assert [(len(run.files), run.files.size) for run in runs] == [(3, 4_500_000), (2, 3_000_000)]


def test_split_off(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).write_text(name * ord(name))
    files = load(tmp_path, *"abcd")
    rest = files.split_off(3)
    assert [(len(part), part.size) for part in (files, rest)] == [(3, 97 + 98 + 99), (1, 100)]
    assert [name for name, *_ in rest.describe()] == [b"d"]
    assert len(files.split_off(3)) == 0


def test_contents_are_copied_from_any_offset(tmp_path: Path) -> None:
    pieces = [os.urandom(size) for size in (3, 1, 700, 2)]
    for number, piece in enumerate(pieces):
        (tmp_path / str(number)).write_bytes(piece)
    contents = contents_of(load(tmp_path, *"0123"))
    expected = b"".join(pieces)
    assert (len(contents), contents.size) == (4, len(expected))
    copier = ContentCopier()
    copies = []
    for offset in range(len(expected) + 1):
        for size in (0, 1, 2, 5, len(expected) - offset):
            copies.append((offset, bytearray(min(size, len(expected) - offset))))
            copier.copy(contents, offset, memoryview(copies[-1][1]))
    copier.wait()
    for offset, out in copies:
        assert out == expected[offset : offset + len(out)]
    for offset, size in ((len(expected), 1), (len(expected) + 1, 0), (2, len(expected) - 1)):
        with pytest.raises(IndexError):
            copier.copy(contents, offset, memoryview(bytearray(size)))


def test_memory_stays_until_contents_are_copied(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(1000))
    contents = contents_of(load(tmp_path, "a"))
    out = bytearray(1000)
    copier = ContentCopier()
    copier.copy(contents, 0, memoryview(out))
    with pytest.raises(BufferError):
        out.clear()
    copier.wait()
    out.clear()
    copier.copy(contents, 0, memoryview(bytearray(1000)))
    del contents, copier  # ends the copy


def test_text_has_no_nul_near_its_beginning(tmp_path: Path) -> None:
    for name, nul in (("a", PROBE_SIZE - 1), ("b", PROBE_SIZE), ("c", 0)):
        (tmp_path / name).write_bytes(b"x" * nul + b"\0" + name.encode() * PROBE_SIZE)
    (tmp_path / "d").touch()
    placed = KnownContents(gettempdir()).place(load(tmp_path, *"abcd"), 10, 20, 2)
    size = 2 * PROBE_SIZE
    assert placed.in_stream == [(10, 0, 0, size), (12, 0, size, PROBE_SIZE + 1)]
    assert placed.in_text == [(11, 20)]
    assert placed.binary == [10, 12]
    assert (len(placed.new_in_stream), len(placed.new_in_text), placed.num_duplicates) == (2, 1, 0)


def test_equal_contents_are_placed_once(tmp_path: Path) -> None:
    for name, content in zip("abcd", ("one", "two", "one", "known"), strict=True):
        (tmp_path / name).write_text(content)
    known = KnownContents(gettempdir())
    assert known.add_piece(b"known", 1) == [(0, 5)]
    known.add(hashlib.sha256(b"known").digest(), Place.STREAM, known.end_content())
    placed = known.place(load(tmp_path, *"abcd"), 1, None, 2)
    assert placed.in_stream == [(1, 0, 5, 3), (2, 0, 8, 3), (3, 0, 5, 3), (4, 0, 0, 5)]
    assert (placed.new_in_stream.size, placed.num_duplicates, placed.binary) == (6, 2, [])
    assert known.find(hashlib.sha256(b"two").digest()) == (Place.STREAM, 2)
    assert known.runs(2) == [(8, 3)]
    with pytest.raises(IndexError):
        known.runs(3)
    assert known.find(hashlib.sha256(b"three").digest()) is None
    with pytest.raises(ValueError, match="32 bytes"):
        known.find(b"short")


def test_files_that_the_archive_has_unchanged_are_not_read(tmp_path: Path) -> None:
    """They need the size and the time to the nanosecond, and one name."""
    for name in ("same", "size", "later", "linked", "other", "empty"):
        (tmp_path / name).write_bytes(b"" if name == "empty" else b"content of it")
        os.utime(tmp_path / name, ns=(0, 1_700_000_000_123_456_789))
    os.utime(tmp_path / "later", ns=(0, 1_700_000_000_123_456_790))
    os.setxattr(tmp_path / "same", "user.kept", b"yes")
    sizes = {b"same": 13, b"size": 12, b"later": 13, b"empty": 0}
    archived = {name: (size, 1_700_000_000_123_456_789, 70 + size) for name, size in sizes.items()}
    files = load(tmp_path, "same", "size", "later", "other", "empty", archived=archived)
    described = {name: (content and bytes(content), ino) for name, _, _, content, _, ino in files.describe()}
    assert described == {
        b"same": (None, 83),
        b"size": (b"content of it", 0),
        b"later": (b"content of it", 0),
        b"other": (b"content of it", 0),
        b"empty": (None, 70),
    }
    assert (files.size, files.size_read) == (4 * 13, 3 * 13)
    assert files.names() == [b"same", b"size", b"later", b"other", b"empty"]
    assert files.xattr_rows(5) == [(5, b"user.kept", b"yes")]
    placed = KnownContents(gettempdir()).place(files, 10, None, 2)
    assert placed.in_archive == [(10, 83), (14, 70)]
    assert placed.in_stream == [(11, 0, 0, 13), (12, 0, 0, 13), (13, 0, 0, 13)]
    assert (placed.num_unchanged, placed.num_duplicates) == (2, 2)


def test_times_before_1970_and_beyond_what_an_archive_stores(tmp_path: Path) -> None:
    for name, mtime_ns in (("early", -1_500_000_001), ("edge", -2_000_000_000)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, ns=(0, mtime_ns))
    files = load(
        tmp_path, "early", "edge", archived={b"early": (1, -1_500_000_001, 3), b"edge": (1, -2_000_000_001, 4)}
    )
    assert [ino for *_, ino in files.describe()] == [3, 0]


def test_contents_of_the_archive_are_known(tmp_path: Path) -> None:
    for name, content in zip("abcd", ("one", "two", "one", ""), strict=True):
        (tmp_path / name).write_text(content)
    files = load(tmp_path, *"abcd")
    known = KnownContents(gettempdir())
    assert known.unknown(files) == [(b"a", 3), (b"b", 3), (b"c", 3)]
    known.add_piece(b"other", 1)
    known.end_content()
    assert known.add_piece(b"two", 1) == [(0, 3)]
    known.add(hashlib.sha256(b"two").digest(), Place.STREAM, known.end_content())
    known.add(hashlib.sha256(b"one").digest(), Place.ARCHIVE, 7)
    assert known.unknown(files) == []
    assert known.find(hashlib.sha256(b"two").digest()) == (Place.STREAM, 1)
    placed = known.place(files, 10, 0, 2)
    assert (placed.in_archive, placed.in_stream) == ([(10, 7), (12, 7)], [(11, 0, 5, 3)])
    assert (placed.num_duplicates, placed.num_unchanged, placed.binary) == (1, 0, [])
