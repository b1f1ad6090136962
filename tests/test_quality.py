"""Runs the linters, the type checker and the check of import layers as tests."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sysconfig.get_path("scripts")


def check(*command: str | Path) -> None:
    """Runs a tool of this environment in the root of the repository, and fails with its output."""
    environment = {**os.environ, "PATH": os.pathsep.join([SCRIPTS, os.environ["PATH"]])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}:\n{done.stdout}{done.stderr}"


def test_ruff() -> None:
    check("ruff", "check", "--no-cache", ".")


@pytest.mark.timeout(300)
def test_mypy() -> None:
    check("mypy")


def test_imports_point_down() -> None:
    check("lint-imports", "--no-cache")


def test_clang_format() -> None:
    sources = sorted(
        path
        for directory in ("kernels", "native", "tests", "tools")
        for path in (ROOT / directory).rglob("*")
        if path.suffix in (".h", ".cpp", ".cu", ".cuh")
    )
    assert sources
    check("clang-format", "--dry-run", "-Werror", *sources)


def test_no_python_file_is_longer_than_500_lines() -> None:
    """tests/tools/test_native_layers.py has the same limit for C++ and CUDA."""
    sizes = {
        str(path.relative_to(ROOT)): path.read_text().count("\n")
        for directory in ("gompfs", "tools", "tests")
        for path in (ROOT / directory).rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }
    assert len(sizes) > 200
    assert {file: size for file, size in sizes.items() if size > 500} == {}
