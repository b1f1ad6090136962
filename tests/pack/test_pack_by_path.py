"""gompfs.pack_archive makes an archive of files and directories by path."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest

import gompfs
from gompfs.cli.pack import pack_command
from gompfs.codec import Codec


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "text").write_text("words of a text\n" * 100)
    (tmp_path / "tree" / "object.o").write_bytes(b"\0")
    report = gompfs.pack_archive([tmp_path / "tree"], tmp_path / "a.gomp", exclude=["*.o"], level=1)
    assert report.num_entries == 3
    assert report.warnings == []
    with gompfs.open(tmp_path / "a.gomp") as archive:
        assert archive.read("sub/text") == b"words of a text\n" * 100
        assert archive.listdir("") == ["sub"]


def test_several_sources_and_a_codec(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name * 50_000)
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    gompfs.pack_archive(paths, tmp_path / "x.gomp", codec="gompresso-byte", engine="cpu")
    with gompfs.open(tmp_path / "x.gomp") as archive:
        assert [archive.read(name) for name in ("a", "b")] == [b"a" * 50_000, b"b" * 50_000]


def test_a_purpose(tmp_path: Path) -> None:
    """It sets what is not given, as --for does."""
    (tmp_path / "file").write_text("content " * 1000)
    gompfs.pack_archive([tmp_path / "file"], tmp_path / "a.gomp", purpose="training")
    gompfs.pack_archive([tmp_path / "file"], tmp_path / "b.gomp", codec="gompresso-byte", block_size=32 << 10)
    gompfs.pack_archive([tmp_path / "file"], tmp_path / "c.gomp", purpose="training", block_size=1 << 20)
    for name, size in (("a", 32 << 10), ("b", 32 << 10), ("c", 1 << 20)):
        with gompfs.open(tmp_path / f"{name}.gomp") as archive:
            assert archive.archive.block_size == size
            assert set(archive.archive.segments[0].codecs) == {Codec.GOMPRESSO_BYTE}
    with pytest.raises(gompfs.OptionError, match="unknown purpose"):
        gompfs.pack_archive([tmp_path / "file"], tmp_path / "d.gomp", purpose="fun")


def test_the_target_stays_as_it_is_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    target = tmp_path / "x.gomp"
    with pytest.raises(gompfs.OptionError, match="nothing to pack"):
        gompfs.pack_archive([], target)
    with pytest.raises(gompfs.PackError, match="cannot read"):
        gompfs.pack_archive([tmp_path / "missing"], target)
    with pytest.raises(gompfs.OptionError):
        gompfs.pack_archive([tmp_path / "file"], target, codec="zip")
    assert not target.exists()
    gompfs.pack_archive([tmp_path / "file"], target)
    before = target.read_bytes()
    with pytest.raises(gompfs.PackError, match="the file exists"):
        gompfs.pack_archive([tmp_path / "file"], target)
    with pytest.raises(gompfs.OptionError, match="one of the SOURCEs"):
        gompfs.pack_archive([target], target, force=True)
    assert target.read_bytes() == before
    os.utime(tmp_path / "file", ns=(0, 0))
    gompfs.pack_archive([tmp_path / "file"], target, force=True)
    assert target.read_bytes() != before


def test_it_takes_what_the_command_takes(tmp_path: Path) -> None:
    """The names of the arguments are those of the options, but for those that are about output."""
    options = {option.name for option in pack_command.options}
    names = {"dictionary": "dictionary_size", "no_check": "check"}
    for_output = {"quiet", "as_json"}
    arguments = set(inspect.signature(gompfs.pack_archive).parameters) - {"paths", "target"}
    assert {names.get(name, name) for name in options - for_output} == arguments
    (tmp_path / "tree").mkdir()
    for name in ("one", "two"):
        (tmp_path / "tree" / name).write_text("a text\n")
    gompfs.pack_archive(
        [tmp_path / "tree"], tmp_path / "a.gomp", prefix="below", owner=7, group=8, mtime_ns=9, block_size=1 << 20
    )
    with gompfs.open(tmp_path / "a.gomp") as archive:
        seen = archive.stat("below/one")
        assert (seen.st_uid, seen.st_gid, seen.st_mtime_ns) == (7, 8, 9)
        assert archive.archive.block_size == 1 << 20
