"""Mounts of archives with a dictionary."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from dictionary_trees import OPTIONS, write_tree
from tree_helpers import add, list_directory, pack

from gompfs.archive import Archive
from gompfs.codec import Codec


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_tree(tmp_path / "tree")
    pack(tmp_path / "a.gomp", tmp_path / "tree", **OPTIONS)
    return tmp_path / "tree"


@pytest.mark.parametrize("options", [(), ("passthrough_size=64M",), ("verify",), ("cache_size=32K",)])
def test_reads(options: tuple[str, ...], tree: Path, tmp_path: Path, mount) -> None:
    mounted = mount(tmp_path / "a.gomp", *options)
    content = (tree / "texts/0").read_bytes()
    rng = random.Random(7)
    with open(mounted / "texts/0", "rb", buffering=0) as file:
        for _ in range(50):
            start, size = rng.randrange(len(content)), rng.choice((1, 4096, 40_000))
            assert os.pread(file.fileno(), size, start) == content[start : start + size]
    assert list_directory(mounted.path) == list_directory(tree)


def test_a_damaged_dictionary(tree: Path, tmp_path: Path, mount) -> None:
    """Files that need it give EIO; everything else can be read."""
    archive = tmp_path / "a.gomp"
    (tmp_path / "kept").write_bytes(b"without the dictionary")
    add(archive, tmp_path / "kept", codec=Codec.GOMPRESSO_BYTE)
    with Archive(archive) as opened:
        (section,) = opened.sections
        offset = section.blocks.archive_offsets[0] + 40
    content = bytearray(archive.read_bytes())
    content[offset] ^= 1
    archive.write_bytes(content)
    mounted = mount(archive)
    for path in ("texts/0", "noise"):
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            (mounted / path).read_bytes()
    assert (mounted / "kept").read_bytes() == b"without the dictionary"
    assert sorted(os.listdir(mounted / "texts")) == sorted(os.listdir(tree / "texts"))
