"""Mounts of archives whose parts end with short blocks."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from tree_helpers import add, list_directory, pack

from gompfs.archive import Archive

BLOCK_SIZE = 16 << 10
PART_SIZE = 3 * BLOCK_SIZE + 500


@pytest.fixture(scope="module")
def archive(shared_odd_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The odd tree, with parts."""
    target = tmp_path_factory.mktemp("mount") / "odd.gomp"
    pack(target, shared_odd_tree, block_size=BLOCK_SIZE, part_size=PART_SIZE)
    return target


def test_everything_is_the_same(shared_odd_tree: Path, mounted: Path) -> None:
    assert list_directory(mounted) == list_directory(shared_odd_tree)


@pytest.mark.parametrize("options", [(), ("passthrough_size=64M",), ("cache_size=1M",)])
def test_random_reads(options: tuple[str, ...], tmp_path: Path, mount) -> None:
    """Reads of a file that lies in many parts, at any offset, with several caches and decoders."""
    rng = random.Random(5)
    (tmp_path / "tree").mkdir()
    words = [b"part", b"block", b"short", b"\n"]
    content = b" ".join(rng.choices(words, k=400_000))
    (tmp_path / "tree/text").write_bytes(content)
    pack(tmp_path / "a.gomp", tmp_path / "tree", block_size=BLOCK_SIZE, part_size=PART_SIZE)
    with Archive(tmp_path / "a.gomp") as archive:
        assert len(archive.extents(archive.resolve("text").ino)) == -(-len(content) // PART_SIZE)
    mounted = mount(tmp_path / "a.gomp", *options)
    with open(mounted / "text", "rb", buffering=0) as file:
        for _ in range(200):
            start, size = rng.randrange(len(content)), rng.choice((1, 4096, 30_000, 200_000))
            assert os.pread(file.fileno(), size, start) == content[start : start + size]
    assert (mounted / "text").read_bytes() == content


def test_a_damaged_copy_of_the_index(shared_odd_tree: Path, archive: Path, tmp_path: Path, mount) -> None:
    """The other copy is used, and the log says so."""
    copy = tmp_path / "copy.gomp"
    content = bytearray(archive.read_bytes())
    content[-200] ^= 1
    copy.write_bytes(content)
    mounted = mount(copy)
    assert set(os.listdir(mounted.path)) >= set(os.listdir(shared_odd_tree))
    mounted.stop()
    assert "copy 1 of the index" in mounted.log


def test_an_add_is_followed(tmp_path: Path, mount) -> None:
    (tmp_path / "first").write_bytes(os.urandom(100_000))
    (tmp_path / "second").write_bytes(os.urandom(100_000))
    archive = tmp_path / "a.gomp"
    pack(archive, tmp_path / "first", block_size=BLOCK_SIZE, part_size=PART_SIZE)
    mounted = mount(archive, "follow")
    assert (mounted / "first").read_bytes() == (tmp_path / "first").read_bytes()
    add(archive, tmp_path / "second", part_size=777)
    deadline = time.monotonic() + 60
    while "second" not in os.listdir(mounted.path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (mounted / "second").read_bytes() == (tmp_path / "second").read_bytes()
