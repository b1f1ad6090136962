"""Large files are searched a window at a time, with the output of ripgrep."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from searched_tree import make_large_tree
from tree_helpers import pack

from gompfs.cli.application import run

RIPGREP = str(shutil.which("rg"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("large") / "tree"
    make_large_tree(root)
    return root


@pytest.fixture(scope="module")
def archive(tree: Path) -> Path:
    target = tree.parent / "tree.gomp"
    pack(target, tree, stats=True)
    return target


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options",
    [
        *(["-n"], ["-c"], ["-l"], ["-o"], ["-m3", "-A2"], ["-n", "-C2"], ["-n", "-B3", "--heading"]),
        *(["-cv"], ["-w", "-i"], ["--json"], ["-U", "-n"], ["-a", "-c"], ["-n", "-A100000", "-m2"]),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("pattern", ["foo", r"needle \d+ .*r$"])
def test_options(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, archive: Path, options: list[str], pattern: str
) -> None:
    command = [RIPGREP, "--no-config", "-uu", "--sort=path", *options, "-e", pattern]
    expected = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    status = run(["grep", "--sort=path", *options, "-e", pattern, str(archive)])
    found, wanted = capfdbinary.readouterr().out, expected.stdout
    if "--json" in options:  # times, and sizes of the output, differ
        found, wanted = (only_matches(output) for output in (found, wanted))
    assert status == expected.returncode
    if "-C2" in options or "-B3" in options or "-A2" in options or "-A100000" in options:
        # Context changes how much ripgrep reads before a NUL.
        found, wanted = (without(output, b"nul") for output in (found, wanted))
    assert found == wanted


def only_matches(output: bytes) -> bytes:
    return b"\n".join(line for line in output.splitlines() if line.startswith(b'{"type":"match"'))


def without(output: bytes, path: bytes) -> bytes:
    return b"\n".join(line for line in output.split(b"\n") if not line.startswith(path))
