"""Behaviour that only the binding of `-o api=high` has. Other modules test what both APIs have in common."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.errors import MountError
from gompfs.mount.fuse.high_level import HighLevelSession
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions

FUSE_APIS = ("high",)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A tree with long paths."""
    place = tmp_path / "tree"
    for number in range(8):
        place /= f"{number}" * 200
        place.mkdir(parents=True)
    (place / "file").write_bytes(random.Random(1).randbytes(3_000_000))
    pack(tmp_path / "a.gomp", tmp_path / "tree", block_size=16 << 10)
    return tmp_path / "a.gomp"


def test_an_error_where_libfuse_cannot_mount(archive: Path, tmp_path: Path) -> None:
    options = MountOptions(api="high")
    session = HighLevelSession(os.fspath(tmp_path / "missing"), "source", options)
    try:
        with (
            Snapshots(os.fspath(archive), Archive, options) as content,
            pytest.raises(MountError, match="missing: libfuse cannot mount"),
        ):
            session.serve(content, lambda: pytest.fail("nothing is mounted"))
    finally:
        session.close()


def test_a_killed_daemon_ends(mount: Callable[..., Any], archive: Path) -> None:
    """The daemon ends at once. It must not wait for an answer that only itself could give."""
    for _ in range(3):
        mounted = mount(archive)
        mounted.process.kill()
        mounted.process.wait(timeout=10)


def test_long_paths_and_large_reads(mount: Callable[..., Any], archive: Path) -> None:
    mounted = mount(archive)
    (name,) = subprocess.run(
        ["find", mounted.path, "-type", "f"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(name) > 1600
    expected = random.Random(1).randbytes(3_000_000)
    assert Path(name).read_bytes() == expected
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECT)
    for start, size in ((0, 1 << 20), (1 << 20, 1 << 21), (2_999_808, 4096), (3_000_320, 4096)):
        assert os.pread(descriptor, size, start) == expected[start : start + size]
    os.close(descriptor)
