"""docs/architecture.md names what exists: layers, functions, threads, directories of the C++ core."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from documents import ROOT
from import_map import import_map

PAGE = (ROOT / "docs/architecture.md").read_text()
THREAD_NAME = r"(?:Thread|Executor|\.name)[^\n]*\"(gompfs-[a-z-]+?)-?(?:\{\w+\})?\""
SUFFIXES = (".py", ".cpp", ".h", ".cu", ".cuh", ".sql", ".service")


@pytest.fixture(scope="module")
def words() -> set[str]:
    """All identifiers in the sources."""
    found: set[str] = set()
    for directory in ("gompfs", "native", "kernels", "tools", "tests", "systemd"):
        for path in (ROOT / directory).rglob("*"):
            if path.suffix in SUFFIXES:
                found |= set(re.findall(r"\w+", path.read_text()))
    return found


def test_layers_are_those_that_the_linter_checks() -> None:
    (contract,) = [
        contract
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    block = PAGE.partition("## Layers")[2].partition("```\n")[2].partition("```")[0]
    assert [re.split(r"\s{2,}", line)[0] for line in block.splitlines()] == contract["layers"]


def test_names_in_code_exist(words: set[str]) -> None:
    names = {name for name in re.findall(r"`([\w.:]+)`", PAGE) if not re.search(r"\.(md|py|cpp|h|cu)$", name)}
    assert len(names) > 80
    unknown = {name for name in names if not set(re.findall(r"\w+", name)) <= words}
    assert unknown == set()


def test_the_table_of_threads_is_complete() -> None:
    table = PAGE.partition("## Threads")[2].partition("## Forks")[0]
    started = set()
    for path in (ROOT / "gompfs").rglob("*.py"):
        started |= set(re.findall(THREAD_NAME, path.read_text()))
    threads = {name for name in started if re.search(rf"`{name}(-N)?`", table)}
    assert {"gompfs-request", "gompfs-statistics", "gompfs-read-ahead"} <= threads
    assert started - threads == set()


def test_includes_of_the_core_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| `native/(\w+)` \|.*\| ([\w, ]*?) ?\|$", PAGE, re.MULTILINE)
    assert {name for name, _ in rows} == {path.name for path in (ROOT / "native").iterdir()}
    for name, included in rows:
        if included == "all":
            continue
        sources = "".join(path.read_text() for path in Path(ROOT / "native" / name).rglob("*.*"))
        others = set(re.findall(r'#include "(\w+)/', sources)) - {name, "shared"}
        assert others == set(re.findall(r"\w+", included)), name


def test_the_map_of_imports_has_every_package() -> None:
    packages = {path.name for path in (ROOT / "gompfs").iterdir() if (path / "__init__.py").exists()}
    listed = set(re.findall(r"^\| `(\w+)` \|", import_map(), re.MULTILINE))
    assert packages <= listed
