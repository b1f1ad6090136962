"""Places of arrays, on the host and on a GPU; files and archives of the tests of `read_many`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from cupy_on_host import cupy_on_host, fake_device
from dictionary_trees import similar_text
from many_files import BLOCK_SIZE, KINDS, Place
from native_builds import kernel_library
from tree_helpers import pack, write_files

from gompfs.engine import selection

_WORDS = [b"block", b"stream", b"extent", b"inode", b"\n"]


@pytest.fixture(params=["cpu", "stand-in", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    is_fake = request.param == "stand-in"

    def make(**limits: int) -> Any:
        if is_fake:
            device = fake_device(kernel_library(), **limits)
            monkeypatch.setattr(selection, "select_device", lambda *_: device)
            return device
        return None

    if is_fake:
        monkeypatch.setattr(selection, "has_cupy", lambda: False)  # no other engine uses the stand-in
    with cupy_on_host() if is_fake else nullcontext():
        make()
        yield Place("cuda:0" if is_fake else request.param, make)


@pytest.fixture(scope="session")
def contents() -> dict[str, bytes]:
    """Files of all sizes around that of a block, of text and noise, and equal ones."""
    rng = random.Random(11)
    sizes = [0, 1, 2, 15, 100, 3000, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 3 * BLOCK_SIZE, 5 * BLOCK_SIZE + 77]
    files = {f"text/{size}": similar_text(f"text {size}", size) for size in sizes}
    files |= {f"noise/{size}": rng.randbytes(size) for size in sizes}
    files |= {f"small/{number:03d}": rng.choice(_WORDS) * rng.randrange(300) for number in range(150)}
    return files | {"again/text": files[f"text/{3 * BLOCK_SIZE}"], "again/noise": files["noise/3000"]}


@pytest.fixture(scope="session")
def tree(contents: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many") / "tree"
    write_files(root, contents)
    return root


@pytest.fixture(scope="session")
def archives(tree: Path) -> dict[str, Path]:
    """One archive of each kind."""
    paths = {}
    for kind, options in KINDS.items():
        paths[kind] = tree.with_name(f"{kind}.gomp")
        pack(paths[kind], tree, **{"block_size": BLOCK_SIZE, **options})
    return paths
