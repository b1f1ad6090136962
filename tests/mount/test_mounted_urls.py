"""Mounts of archives at URLs: what is fetched, and what happens when the server is gone or has another archive."""

from __future__ import annotations

import errno
import os
import random
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from range_server import serving
from tree_helpers import pack

if TYPE_CHECKING:
    from conftest import MountArchive


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an archive of four files of noise."""
    rng = random.Random(5)
    (tmp_path / "tree").mkdir()
    for number in range(4):
        (tmp_path / f"tree/{number}").write_bytes(rng.randbytes(1_500_000))
    (tmp_path / "served").mkdir()
    pack(tmp_path / "served/a.gomp", tmp_path / "tree")
    return tmp_path


def test_a_server_that_ends_and_comes_back(folder: Path, mount: MountArchive) -> None:
    content = [(folder / f"tree/{number}").read_bytes() for number in range(4)]
    with ExitStack() as stack:
        server = stack.enter_context(serving(folder / "served"))
        mounted = mount(f"{server.url}/a.gomp?key=s3cret")
        shown = f"{server.url}/a.gomp?..."
        assert any(
            line.startswith(f"{shown} {mounted.path} ") for line in Path("/proc/mounts").read_text().splitlines()
        )
        with open(mounted / "0", "rb", buffering=0) as file:
            assert file.read(5000) == content[0][:5000]
        fetched = len(server.ranges)
        with open(mounted / "0", "rb", buffering=0) as file:
            assert file.read(5000) == content[0][:5000]
        assert len(server.ranges) == fetched  # no request the second time
        stack.close()
        with pytest.raises(OSError, match="Input/output error") as caught:
            (mounted / "3").read_bytes()
        assert caught.value.errno == errno.EIO
        assert sorted(os.listdir(mounted.path)) == ["0", "1", "2", "3"]
        port = int(server.url.rpartition(":")[2])
        stack.enter_context(serving(folder / "served", port=port))
        assert (mounted / "3").read_bytes() == content[3]
        assert "s3cret" not in mounted.logged()


def test_an_archive_that_was_replaced(folder: Path, mount: MountArchive) -> None:
    """Reads give EIO or the old bytes, never those of the new archive, which has the same size."""
    with serving(folder / "served") as server:
        mounted = mount(f"{server.url}/a.gomp")
        archive = folder / "served/a.gomp"
        archive.write_bytes(bytes(1 << 20) + archive.read_bytes()[1 << 20 :])
        with pytest.raises(OSError, match="Input/output error"):
            (mounted / "2").read_bytes()


def test_options_for_local_archives(folder: Path, gompfs_command: object) -> None:
    with serving(folder / "served") as server:
        done = gompfs_command("mount", "-o", "follow", f"{server.url}/a.gomp", folder / "mnt")  # type: ignore[operator]
    assert done.stderr.endswith("follow and offset work only with a local archive\n")
