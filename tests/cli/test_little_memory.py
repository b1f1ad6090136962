"""Commands in a process with little address space (ulimit -v): they succeed, or say that there is too little memory."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import gompfs

_SUCCEEDS = 550 << 20


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("little") / "tree"
    root.mkdir()
    rng = random.Random(8)
    words = [rng.randbytes(rng.randrange(2, 9)).hex().encode() for _ in range(20_000)]
    for number in range(40):
        (root / f"{number:02}").write_bytes(b" ".join(rng.choices(words, k=30_000)))
    return root


@pytest.mark.parametrize("limit", [180 << 20, _SUCCEEDS])
def test_pack_with_little_address_space(tree: Path, tmp_path: Path, limit: int) -> None:
    """Threads reserved 64 MiB each for their memory, and then the C library ended the process."""
    target = tmp_path / "a.gomp"
    command = [sys.executable, "-P", "-m", "gompfs", "pack", "-q", "-j", "6", str(tree), str(target)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit)),
    )
    assert (done.returncode, done.stderr) in {(0, ""), (1, "gompfs: out of memory\n")}
    assert done.returncode == 0 or limit < _SUCCEEDS
    if done.returncode == 0:
        with gompfs.open(target) as files:
            assert files.read("07") == (tree / "07").read_bytes()
    else:
        assert list(tmp_path.iterdir()) == []
