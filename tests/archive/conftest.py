"""Archives to read, to damage and to forge."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tree_helpers import pack
from xxhash import xxh3_64_intdigest

from gompfs.format import FOOTER_SIZE, Footer, LocalFile, find_footer

BLOCK_SIZE = 16 << 10


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files within blocks, over blocks, compressible and not, sparse, linked; in a few directories."""
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
    """The tree as an archive that no test changes."""
    target = tmp_path_factory.mktemp("archive") / "sound.gomp"
    pack(target, tree, block_size=BLOCK_SIZE)
    return target


@pytest.fixture
def archive_copy(sound_archive: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    copy = tmp_path / "copy.gomp"
    copy.write_bytes(sound_archive.read_bytes())
    return copy


@pytest.fixture
def forge(archive_copy: Path, tmp_path: Path) -> Callable[..., Path]:
    """Change the index with SQL and make all checksums right again; the forged archive."""

    def run(*statements: str) -> Path:
        with open(archive_copy, "rb") as file:
            content = file.read()
            footer, _ = find_footer(LocalFile(file.fileno()))
        database = tmp_path / "index.sqlite"
        database.write_bytes(content[footer.index_offset : footer.index_offset + footer.index_size])
        connection = sqlite3.connect(database, isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()
        replace_index(archive_copy, database.read_bytes())
        return archive_copy

    return run


def replace_index(archive: Path, image: bytes, **fields: int) -> None:
    """Put another index, or any bytes, in the place of the archive's; its footer fits, or has `fields`."""
    with open(archive, "r+b") as file:
        footer, _ = find_footer(LocalFile(file.fileno()))
        file.seek(footer.index_offset)
        file.truncate()
        file.write(image + bytes(-len(image) % FOOTER_SIZE))
        values = {
            "generation": 1,
            "index_offset": footer.index_offset,
            "index_size": len(image),
            "index_xxh3": xxh3_64_intdigest(image),
            "previous_footer": 0,
        }
        file.write(Footer(**{**values, **fields}).to_bytes())


@pytest.fixture
def with_index() -> Callable[..., None]:
    return replace_index
