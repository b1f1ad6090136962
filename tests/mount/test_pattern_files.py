"""Searches for patterns in a mount: the files `stats/grep/PATTERN` and others, and `gompfs grep` on mounted paths."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.mount.pattern_files import PatternReport
from gompfs.search.search import ArchiveSearch

if TYPE_CHECKING:
    from conftest import Mount


FILES = {"a/one": "foo bar\nnothing\nfoo/bar 100%\n", "b": "bar\nfoo\n", "c": "nothing\n"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("patterns")
    for name, text in FILES.items():
        (root / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "tree" / name).write_text(text)
    pack(root / "tree.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
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


def test_the_command_follows_symlinks_to_mounts(
    mounted: Path, tmp_path: Path, gompfs_command: Callable[..., object]
) -> None:
    (tmp_path / "link").symlink_to(mounted / "a")
    assert gompfs_command("grep", "foo/", tmp_path / "link").stdout == f"{tmp_path}/link/one:foo/bar 100%\n"


@pytest.mark.parametrize("stats", ["hidden", "off"])
def test_the_command_on_a_mount_of_a_directory(
    archive: Path, mount: Callable[..., Mount], gompfs_command: Callable[..., object], stats: str
) -> None:
    shown = mount(archive, "subdir=a", f"stats={stats}", "uid=12", "umask=077")
    assert gompfs_command("grep", "-n", "foo/", shown.path).stdout == f"{shown.path}/one:3:foo/bar 100%\n"
    assert gompfs_command("grep", "-n", "foo/", shown.path, "one").stdout == "3:foo/bar 100%\n"
    assert gompfs_command("grep", "-n", "foo/", shown / "one").stdout == "3:foo/bar 100%\n"
    assert gompfs_command("grep", "foo", shown / "b").returncode == 2


def test_the_command_on_archives_that_change(
    archive: Path, tmp_path: Path, mount: Callable[..., Mount], gompfs_command: Callable[..., object]
) -> None:
    changing = tmp_path / "changing.gomp"
    shutil.copy(archive, changing)
    fixed, following = mount(changing), mount(changing, "follow")
    (tmp_path / "more" / "a").mkdir(parents=True)
    (tmp_path / "more" / "a" / "two").write_text("foo two\n")
    assert gompfs_command("add", tmp_path / "more", changing).returncode == 0
    deadline = time.monotonic() + 60
    while not (following / "a/two").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for path in (following.path, following / "a"):
        assert f"{following.path}/a/two:foo two\n" in gompfs_command("grep", "foo", path).stdout
    assert gompfs_command("grep", "foo/", fixed / "a").stdout == f"{fixed.path}/a/one:foo/bar 100%\n"
    done = gompfs_command("grep", "--engine", "cpu", "foo", fixed / "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the mount does not show what" in done.stderr


def test_few_patterns_are_searched_for_at_once(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may open any number of patterns, and each search takes memory."""
    running, most = 0, 0
    lock = threading.Lock()

    class CountedSearch(ArchiveSearch):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.02)
            yield from super().__iter__()
            with lock:
                running -= 1

    monkeypatch.setattr("gompfs.search.search.ArchiveSearch", CountedSearch)
    with Archive(archive, engine=select_engine("cpu")) as opened, ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: b"".join(PatternReport(opened, b"count/foo")), range(40)))
    assert set(found) == {b"a/one:2\nb:1\n"}
    assert 1 < most <= 4
