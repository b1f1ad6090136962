"""Zip archives as sources: those of Info-ZIP and Python, and damaged or hostile ones."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tree_helpers import list_archive, list_source, pack

from gompfs.archive import Archive
from gompfs.errors import PackError
from gompfs.pack.sources import Source, open_source


def make_zip(members: list[tuple[str, bytes, int]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Makes a zip archive. Members are (name, content, mode with type bits)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10))
            info.create_system = 3
            info.external_attr = mode << 16
            info.compress_type = compression
            archive.writestr(info, content)
    return stream.getvalue()


@pytest.fixture
def source_of(tmp_path: Path) -> Callable[[bytes], Source]:
    def make(data: bytes) -> Source:
        (tmp_path / "archive.zip").write_bytes(data)
        return open_source(tmp_path / "archive.zip")

    return make


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_and_modes(source_of: Callable[[bytes], Source], compression: int) -> None:
    members = [
        ("d/", b"", stat.S_IFDIR | 0o750),
        ("d/run", b"#!/bin/sh\n" * 1000, stat.S_IFREG | 0o755),
        ("d/link", b"run", stat.S_IFLNK | 0o777),
        ("empty", b"", stat.S_IFREG | 0o600),
    ]
    source = source_of(make_zip(members, compression))
    seen = list_source(source)
    assert list(seen) == [b"", b"d", b"d/run", b"d/link", b"empty"]
    assert seen[b"d"].mode == stat.S_IFDIR | 0o750
    assert (seen[b"d/run"].mode, seen[b"d/run"].content) == (stat.S_IFREG | 0o755, b"#!/bin/sh\n" * 1000)
    assert seen[b"d/link"].target == b"run"
    assert (seen[b"empty"].mode, seen[b"empty"].content) == (stat.S_IFREG | 0o600, b"")
    assert source.warnings == []


def test_packed_and_read_back(tmp_path: Path) -> None:
    noise = os.urandom(5 << 20)
    data = make_zip([("big", noise, stat.S_IFREG | 0o644), ("ü", b"x", stat.S_IFREG | 0o644)])
    (tmp_path / "a.zip").write_bytes(data)
    pack(tmp_path / "a.gomp", tmp_path / "a.zip")
    with Archive(tmp_path / "a.gomp") as archive:
        contents = {path: seen.content for path, seen in list_archive(archive).items()}
    assert contents == {b"": None, b"big": noise, "ü".encode(): b"x"}


def test_names_stay_below_the_root(source_of: Callable[[bytes], Source]) -> None:
    names = ["/etc/passwd", "../up", "a/../../up", "ok/file"]
    source = source_of(make_zip([(name, b"x", stat.S_IFREG | 0o644) for name in names]))
    assert set(list_source(source)) == {b"", b"etc", b"etc/passwd", b"ok", b"ok/file"}
    assert len(source.warnings) == 3


def test_wrong_checksum(source_of: Callable[[bytes], Source]) -> None:
    data = bytearray(make_zip([("f", b"content" * 100, stat.S_IFREG | 0o644)], zipfile.ZIP_STORED))
    data[100] ^= 1
    with pytest.raises(PackError, match=r"archive\.zip|f: "):
        list_source(source_of(bytes(data)))


@pytest.mark.parametrize("cut", [0, 10, 200, -1, -30])
def test_cut(source_of: Callable[[bytes], Source], cut: int) -> None:
    data = make_zip([("f", os.urandom(1000), stat.S_IFREG | 0o644)])
    with pytest.raises(PackError, match=r"archive\.zip"):
        list_source(source_of(data[:cut]))


def test_no_date(source_of: Callable[[bytes], Source]) -> None:
    data = bytearray(make_zip([("f", b"x", stat.S_IFREG | 0o644)]))
    for signature, distance in ((b"PK\x03\x04", 10), (b"PK\x01\x02", 12)):
        place = data.index(signature) + distance
        data[place : place + 4] = bytes(4)
    assert list_source(source_of(bytes(data)))[b"f"].mtime_ns == 315_532_800 * 10**9


@pytest.mark.parametrize("flip", [0x41, 0xFF])
@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_any_byte_flipped(source_of: Callable[[bytes], Source], compression: int, flip: int) -> None:
    """Gives entries or a clean error, never another exception."""
    members = [("d/", b"", stat.S_IFDIR | 0o755), ("d/f", b"content" * 20, stat.S_IFREG | 0o644)]
    data = make_zip(members, compression)
    outcomes = set()
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= flip
        try:
            outcomes.add(len(list_source(source_of(bytes(flipped)))))
        except PackError:
            outcomes.add(-1)
    assert {-1, 3} <= outcomes
