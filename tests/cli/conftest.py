"""Fixtures: a small tree, its archive, and the gompfs command as a user's shell runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import gompfs as gompfs_package

BLOCK_SIZE = 16384
PACKAGE_PARENT = str(Path(gompfs_package.__file__).resolve().parents[1])


@dataclass(frozen=True)
class Result:
    """The result of a finished command."""

    status: int
    output: bytes
    errors: str

    @property
    def lines(self) -> list[str]:
        return self.output.decode().splitlines()

    @property
    def error_line(self) -> str:
        """The single line on stderr."""
        assert self.errors.startswith("gompfs: ")
        assert self.errors.count("\n") == 1, self.errors
        assert "Traceback" not in self.errors
        return self.errors.removeprefix("gompfs: ").rstrip("\n")


Gompfs = Callable[..., Result]


@pytest.fixture
def gompfs(tmp_path: Path) -> Gompfs:
    """Runs `gompfs ARGUMENTS...` in the test's directory."""

    def run(*arguments: str | bytes | Path, stdin: bytes = b"", **environment: str) -> Result:
        command = [sys.executable, "-P", "-m", "gompfs", *arguments]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, **environment},
        )
        return Result(done.returncode, done.stdout, done.stderr.decode())

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A few files of several blocks each, links, and an empty file."""
    root = tmp_path / "tree"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.txt").write_bytes(b"alpha beta\n" * 3000)
    (root / "docs" / "b.txt").write_bytes(os.urandom(3 * BLOCK_SIZE))
    (root / "empty").touch()
    (root / "link").symlink_to("docs/a.txt")
    (root / "docs-link").symlink_to("docs")
    (root / "z.txt").write_bytes(b"the last file\n" * 5000)
    os.link(root / "z.txt", root / "z-again.txt")
    return root


@pytest.fixture
def archive(tree: Path, tmp_path: Path, gompfs: Gompfs) -> Path:
    """An archive of the tree, without a grammar."""
    target = tmp_path / "tree.gomp"
    result = gompfs("pack", "--no-stats", "-q", "-b", "16K", tree, target)
    assert (result.status, result.output, result.errors) == (0, b"", "")
    return target
