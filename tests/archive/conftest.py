"""Fixtures: archives to read, to damage and to forge."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from forged_index import forge_index
from tree_helpers import add, pack

BLOCK_SIZE = 16 << 10
PART_SIZE = 5 * BLOCK_SIZE + 1000


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files inside one block and across blocks, compressible or not, sparse, and linked, in a few directories."""
    root = tmp_path_factory.mktemp("archive") / "tree"
    rng = random.Random(7)
    (root / "big").mkdir(parents=True)
    (root / "small/deep/deeper").mkdir(parents=True)
    words = [b"block", b"stream", b"extent", b"inode", b"\n"]
    (root / "big/noise").write_bytes(rng.randbytes(700_000))
    (root / "big/text").write_bytes(b" ".join(rng.choices(words, k=200_000)))
    (root / "big/zeros").write_bytes(bytes(300_000))
    for number in range(60):
        (root / f"small/{number:02d}").write_bytes(rng.randbytes(rng.randrange(3000)))
    (root / "small/deep/deeper/leaf").write_text("the leaf")
    with open(root / "sparse", "wb") as file:
        for place in (0, 3, 4, 9):
            file.seek(place * 100_000)
            file.write(rng.randbytes(20_000))
        file.truncate(1_500_000)
    os.symlink("small/deep", root / "link")
    os.symlink("/big/../link/deeper", root / "absolute")
    os.symlink("loop", root / "loop")
    os.link(root / "big/text", root / "text-too")
    return root


@pytest.fixture(scope="session")
def sound_archive(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of the tree that no test changes. It has parts, most of which end with short blocks."""
    target = tmp_path_factory.mktemp("archive") / "sound.gomp"
    pack(target, tree, block_size=BLOCK_SIZE, part_size=PART_SIZE)
    return target


@pytest.fixture
def archive_copy(sound_archive: Path, tmp_path: Path) -> Path:
    """A copy of the archive that a test may damage."""
    copy = tmp_path / "copy.gomp"
    copy.write_bytes(sound_archive.read_bytes())
    return copy


@pytest.fixture
def forge(archive_copy: Path) -> Callable[..., Path]:
    """Changes the index with SQL, corrects all checksums, and returns the forged archive."""

    def run(*statements: str) -> Path:
        forge_index(archive_copy, *statements)
        return archive_copy

    return run


@pytest.fixture
def added(archive_copy: Path, tmp_path: Path) -> Path:
    """The archive after two more generations, each with a file of noise."""
    for number in (2, 3):
        file = tmp_path / f"file-{number}"
        file.write_bytes(random.Random(number).randbytes(50_000))
        add(archive_copy, file)
    return archive_copy
