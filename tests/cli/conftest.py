"""Fixtures: a small tree, its archive, and the gompfs command as a user's shell runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

BLOCK_SIZE = 16384


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


def run_gompfs(directory: Path, *arguments: str | bytes | Path, stdin: bytes = b"", **environment: str) -> Result:
    """Runs `gompfs ARGUMENTS...` in a directory."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gompfs", *arguments],
        input=stdin,
        capture_output=True,
        cwd=directory,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    return Result(done.returncode, done.stdout, done.stderr.decode())


@pytest.fixture
def gompfs(tmp_path: Path) -> Gompfs:
    """Runs `gompfs ARGUMENTS...` in the test's directory."""
    return partial(run_gompfs, tmp_path)


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a tree and its archives with and without a grammar. Tests get copies of what they change.

    The tree has a few files of several blocks each, links, and an empty file.
    """
    directory = tmp_path_factory.mktemp("packed")
    root = directory / "tree"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.txt").write_bytes(b"alpha beta\n" * 3000)
    (root / "docs" / "b.txt").write_bytes(os.urandom(3 * BLOCK_SIZE))
    (root / "empty").touch()
    (root / "link").symlink_to("docs/a.txt")
    (root / "docs-link").symlink_to("docs")
    (root / "z.txt").write_bytes(b"the last file\n" * 5000)
    os.link(root / "z.txt", root / "z-again.txt")
    for options in (("--codec", "gompresso-bit", "-b", "16K", root, "tree.gomp"), (root, "words.gomp")):
        result = run_gompfs(directory, "pack", "-q", *options)
        assert (result.status, result.output, result.errors) == (0, b"", "")
    return directory


@pytest.fixture
def tree(packed: Path, tmp_path: Path) -> Path:
    """A copy of the tree."""
    subprocess.run(["cp", "-a", packed / "tree", tmp_path], check=True)
    return tmp_path / "tree"


@pytest.fixture
def archive(packed: Path, tree: Path) -> Path:
    """A copy of the archive of the tree, without a grammar. The tree is there as well."""
    return Path(shutil.copy(packed / "tree.gomp", tree.parent))


@pytest.fixture(scope="session")
def words_archive(packed: Path) -> Path:
    """The archive of the tree with a grammar. It must not be changed."""
    return packed / "words.gomp"
