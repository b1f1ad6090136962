"""The method `grep` of `gompfs.open`, and searches that meet damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from tree_helpers import pack

import gompfs
from gompfs.cli.application import run
from gompfs.errors import CorruptBlockError, EntryNotFoundError, OptionError

FILES = {"docs/a": b"one foo\ntwo\nfoo and foo\n", "docs/b.c": b"caf\xe9 foo\n", "c": b"Foo\n"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(content)
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    return tmp_path / "tree.gomp"


def test_matches(archive: Path) -> None:
    with gompfs.open(archive) as files:
        assert [tuple(match) for match in files.grep("foo")] == [
            (b"docs/a", 1, 0, b"one foo\n", [(4, 7)]),
            (b"docs/a", 3, 12, b"foo and foo\n", [(0, 3), (8, 11)]),
            (b"docs/b.c", 1, 0, b"caf\xe9 foo\n", [(5, 8)]),
        ]
        assert [match.path for match in files.grep(b"foo", ignore_case=True, max_count=1)] == [
            b"c",
            b"docs/a",
            b"docs/b.c",
        ]
        assert [match.path for match in files.grep("two", "caf", path="/docs/", globs=["*.c"])] == [b"docs/b.c"]
        assert [match.line for match in files.grep("foo\ntwo", multi_line=True, fixed=True)] == [b"one foo\ntwo\n"]
        assert list(files.grep("nowhere")) == []


def test_errors(archive: Path) -> None:
    with gompfs.open(archive) as files:
        with pytest.raises(OptionError):
            files.grep("(")
        with pytest.raises(OptionError):
            files.grep("x", globs=["["])
        with pytest.raises(EntryNotFoundError):
            files.grep("x", path="none")


def test_a_damaged_block(archive: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Files with damage are reported, and the status is 2."""
    with gompfs.open(archive) as files:
        offset = files.archive.segments[0].blocks.archive_offsets[0]
    content = bytearray(archive.read_bytes())
    content[offset + 40] ^= 1
    archive.write_bytes(content)
    with gompfs.open(archive) as files, pytest.raises(CorruptBlockError):
        list(files.grep("foo"))
    assert run(["grep", "foo", str(archive)]) == 2
    errors = capfdbinary.readouterr().err.splitlines()
    assert len(errors) == len(FILES)
    assert all(b"block 0" in line for line in errors)
