"""Searches for patterns in a mount: the files `stats/grep/PATTERN` and others, and `gompfs grep` on mounted paths."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tree_helpers import pack

FUSE_APIS = ("low", "high")

FILES = {"a/one": "foo bar\nnothing\nfoo/bar 100%\n", "b": "bar\nfoo\n", "c": "nothing\n"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("patterns")
    for name, text in FILES.items():
        (root / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "tree" / name).write_text(text)
    pack(root / "tree.gomp", root / "tree", stats=True)
    return root / "tree.gomp"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("grep/^foo", "a/one:1:foo bar\na/one:3:foo/bar 100%\nb:2:foo\n"),
        ("grep/foo%2Fbar", "a/one:3:foo/bar 100%\n"),
        ("grep/%25$", "a/one:3:foo/bar 100%\n"),
        ("grep/bar%0Anothing", "a/one:1:foo bar\na/one:2:nothing\na/one:3:foo/bar 100%\nb:1:bar\nc:1:nothing\n"),
        ("count/foo", "a/one:2\nb:1\n"),
        ("files-with/NOTHING", None),
        ("files-with/(?i)NOTHING", "a/one\nc\n"),
    ],
)
def test_files_that_search(mounted: Path, name: str, expected: str | None) -> None:
    file = mounted / ".gompfs/stats" / name
    if expected is None:
        assert not file.exists()
    else:
        assert file.read_text() == expected


def test_a_pattern_with_an_error(mounted: Path) -> None:
    with pytest.raises(OSError, match="Invalid argument") as raised:
        os.stat(mounted / ".gompfs/stats/grep/(")
    assert raised.value.errno == errno.EINVAL


def test_the_command_on_mounted_paths(mounted: Path, gompfs_command: Callable[..., object]) -> None:
    done = gompfs_command("grep", "-n", "foo", mounted)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{mounted}/a/one:1:foo bar\n{mounted}/a/one:3:foo/bar 100%\n{mounted}/b:2:foo\n"
    assert gompfs_command("grep", "-c", "foo", mounted / "a").stdout == f"{mounted}/a/one:2\n"
    assert gompfs_command("grep", "foo", mounted / "b").stdout == "foo\n"
    assert gompfs_command("grep", "foo", mounted / "c").returncode == 1
    assert gompfs_command("grep", "foo", mounted / "none").returncode == 2
