"""Runs the linters, the type checker and the check of import layers as tests."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
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
    check("ruff", "format", "--check", "--no-cache", ".")


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


def test_the_package_imports_only_what_it_installs() -> None:
    """Names of third parties that gompfs imports when it runs are those of its dependencies and extras."""
    installed = {"aiohttp", "cupy", "dask", "distributed", "fsspec", "mfusepy", "numcodecs", "numpy", "rich"}
    installed |= {"pyarrow", "torch", "xxhash", "zarr", "zstandard"}
    imported: dict[str, str] = {}
    for path in sorted((ROOT / "gompfs").rglob("*.py")):
        for name in imports_at_run_time(ast.parse(path.read_text())):
            imported.setdefault(name.partition(".")[0], path.name)
    others = {name: file for name, file in imported.items() if name not in installed | sys.stdlib_module_names}
    assert {"rich", "numpy"} <= set(imported)
    assert set(others) == {"gompfs"}


def imports_at_run_time(node: ast.AST) -> Iterator[str]:
    """Yields the names of modules that a syntax tree imports, without those for the type checker."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield child.module
        yield from imports_at_run_time(child)


def test_no_python_file_is_longer_than_500_lines() -> None:
    """tests/tools/test_native_layers.py has the same limit for C++ and CUDA."""
    sizes = {
        str(path.relative_to(ROOT)): path.read_text().count("\n")
        for directory in ("gompfs", "tools", "tests")
        for path in (ROOT / directory).rglob("*.py")
    }
    assert len(sizes) > 200
    assert {file: size for file, size in sizes.items() if size > 500} == {}


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Their folders are no packages, so pytest refuses to run all tests if two modules have the same name."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
