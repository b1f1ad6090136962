"""Memory and limits of archives with millions of files, on some thousands."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tracemalloc
from pathlib import Path
from tempfile import gettempdir

import pytest
from tree_helpers import add, pack

from gompfs._native.index import columns_of, image_of, write_image_of
from gompfs._native.sources import KnownContents, PathTable, Place
from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import PackError
from gompfs.index.schema import tables
from gompfs.index.writer import IndexWriter
from gompfs.model import ROOT_INO, Extent, Inode
from gompfs.options import PackOptions
from gompfs.pack import open_source, pack_archive

NUM_KEYS = 30_000  # their records do not fit into the memory that comes before the file
BYTES_OF_KEY = 22


def test_numbers_of_paths() -> None:
    table = PathTable(gettempdir())
    for number in range(NUM_KEYS):
        table.set(b"path/%d" % number, number + 1)
    for number in range(0, NUM_KEYS, 7):
        table.set(b"path/%d" % number, 0 if number % 2 else 1 << 61)
    assert table.memory_size <= BYTES_OF_KEY * NUM_KEYS
    for number in range(NUM_KEYS):
        expected = number + 1 if number % 7 else 0 if number % 2 else 1 << 61
        assert table.get(b"path/%d" % number) == expected
    assert table.get(b"path") == 0


def test_places_of_contents() -> None:
    known = KnownContents(gettempdir())
    hashes = [hashlib.sha256(b"%d" % number).digest() for number in range(NUM_KEYS)]
    places = [Place.STREAM, Place.TEXT, Place.ARCHIVE]
    for number, sha256 in enumerate(hashes):
        known.add(sha256, places[number % 3], number)
    assert known.memory_size <= BYTES_OF_KEY * NUM_KEYS
    assert [known.find(sha256) for sha256 in hashes] == [(places[n % 3], n) for n in range(NUM_KEYS)]
    assert known.find(bytes(32)) is None


def tar_of(folder: Path, num_files: int) -> Path:
    """Returns a tar of files that differ, in 4 directories; some are binary."""
    path = folder / f"{num_files}.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(num_files):
            member = tarfile.TarInfo(f"directory-{number % 4}/a-file-of-some-name-{number:06d}.txt")
            content = b"\0" * (number % 2) + b"%06d text\n" % number
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_packing_keeps_nothing_in_python_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the index wait in batches, which are made small here."""
    monkeypatch.setattr("gompfs.index.writer._BATCH", 256)
    monkeypatch.setattr("gompfs.index.writer._EXTENTS", 256)
    monkeypatch.setattr("gompfs.pack.text_parts._INODES_AT_ONCE", 256)
    monkeypatch.setattr("gompfs.pack.text_parts._BATCH_BYTES", 4096)
    counts, peaks = (500, 1500, 4000), []
    for count in counts:
        source = open_source(tar_of(tmp_path, count))
        tracemalloc.start()
        try:
            options = PackOptions(check=False)
            pack_archive([source], tmp_path / f"{count}.gomp", options, engine=select_engine("cpu", 2))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    # The stored index itself takes some bytes for each file. A set of paths would take more than 100.
    assert (peaks[2] - peaks[1]) / (counts[2] - counts[1]) < 60, peaks


def write_index(folder: Path, num_files: int) -> Path:
    """Writes an index with SQLite. Some names and targets are long, so that rows need pages of their own."""
    path = folder / "index"
    path.touch()
    writer = IndexWriter(path)
    writer.add_inode(Inode(ROOT_INO, 0o40755, 0, 0, 0, 0, 1, 0, None))
    for ino in range(2, num_files + 2):
        target = b"t" * (ino % 4095 + 1)
        is_link = ino % 50 == 0
        mode, size = (0o120777, len(target)) if is_link else (0o100644, ino % 300 * ino)
        writer.add_inode(Inode(ino, mode, ino % 3, 0, size, 10**18 + ino, 1, 0, target if is_link else None))
        writer.add_name(ROOT_INO, b"%d-" % ino + b"n" * (ino % 200), ino)
        if size and not is_link:
            writer.add_extents(ino, [Extent(0, ino << 20, size)])
    writer.finish()
    return path


def test_images_are_the_same_in_memory_and_in_files(tmp_path: Path) -> None:
    with open(write_index(tmp_path, 12_000), "rb") as file:
        columns, ends = columns_of(file.fileno())
        assert file.seek(0, os.SEEK_END) > 2 << 20
    assert ends[-1] == len(columns)
    with open(tmp_path / "image", "w+b") as file:
        write_image_of(columns, tables(), file.fileno())
        assert file.read() == image_of(columns, tables())
        assert columns_of(file.fileno())[0] == columns


def test_the_most_blocks_of_a_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(os.urandom(3 << 16))
    monkeypatch.setattr("gompfs.index.written_blocks.MAX_BLOCKS", 3)
    pack(tmp_path / "three.gomp", tmp_path / "file", block_size=1 << 16)
    monkeypatch.setattr("gompfs.index.written_blocks.MAX_BLOCKS", 2)
    with pytest.raises(PackError, match="at most 2 blocks"):
        pack(tmp_path / "two.gomp", tmp_path / "file", block_size=1 << 16)
    assert not (tmp_path / "two.gomp").exists()


def test_the_most_generations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"content")
    archive = tmp_path / "archive.gomp"
    pack(archive, tmp_path / "file")
    monkeypatch.setattr("gompfs.pack.generation.MAX_GENERATION", 2)
    add(archive, tmp_path / "file")
    before = archive.read_bytes()
    with pytest.raises(PackError, match="2 generations"):
        add(archive, tmp_path / "file")
    assert archive.read_bytes() == before
    with Archive(archive) as opened:
        assert opened.footer.generation == 2
