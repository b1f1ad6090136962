"""The commands mount and umount: what they print, and that the mount shows the same as other commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def mountpoint(tmp_path: Path, gompfs) -> Iterator[Path]:
    """An empty directory. Anything that a failed test leaves mounted there is detached."""
    path = tmp_path / "mountpoint"
    path.mkdir()
    yield path
    if os.path.ismount(path):
        gompfs("umount", "--lazy", path)


def test_mount_shows_the_tree_and_the_same_statistics(gompfs, tree, mountpoint):
    assert gompfs("pack", "-q", tree, "words.gomp").status == 0
    mounted = gompfs("mount", "words.gomp", mountpoint)
    assert (mounted.status, mounted.output, mounted.errors) == (0, b"", "")
    assert sorted(os.listdir(mountpoint)) == sorted(os.listdir(tree))
    assert (mountpoint / "docs/b.txt").read_bytes() == (tree / "docs/b.txt").read_bytes()
    for name in ("wordcount", "sort"):
        assert (mountpoint / "stats" / name).read_bytes() == gompfs("stats", "words.gomp", name).output
    again = gompfs("mount", "words.gomp", mountpoint)
    assert again.status == 1
    assert again.error_line == f"{mountpoint}: something is mounted here already"
    unmounted = gompfs("umount", mountpoint)
    assert (unmounted.status, unmounted.errors) == (0, "")
    assert os.listdir(mountpoint) == []


def test_a_failed_mount_is_reported_before_the_command_returns(gompfs, archive, mountpoint):
    missing = gompfs("mount", "nowhere.gomp", mountpoint)
    assert missing.status == 1
    assert "nowhere.gomp" in missing.error_line
    assert "No such file or directory" in missing.error_line
    assert "needs CuPy" in gompfs("mount", "--engine", "gpu", archive, mountpoint).error_line
    assert gompfs("mount", archive, archive).error_line.endswith("the mount point is not a directory")
    assert gompfs("mount", archive, "no/where").error_line.endswith("the directory of the mount point does not exist")
    archive.write_bytes(b"no archive")
    result = gompfs("mount", archive, mountpoint)
    assert result.status == 1
    assert str(archive) in result.error_line
    assert not os.path.ismount(mountpoint)
