"""Searches with a GPU, compared with those on the CPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from search_cases import check, found, pack_tree
from searched_tree import OPTIONS, PATTERNS, make_large_tree, make_tree

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.engine import Engine, select_engine
from gompfs.errors import OptionError
from gompfs.gpu.decode.archive_source import ArchiveSource
from gompfs.options import GpuOptions
from gompfs.search.query import SearchQuery
from gompfs.search.search_memory import SearchMemory

pytestmark = pytest.mark.gpu

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return select_engine("gpu")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("searched") / "tree"
    make_tree(root)
    return root


@pytest.fixture(scope="module", params=["text", "bytes"])
def archive(request: pytest.FixtureRequest, tree: Path) -> Path:
    return pack_tree(tree, request.param)


def compare(capfdbinary: Capture, archive: Path, *arguments: str) -> None:
    found = []
    for engine in ("cpu", "gpu"):
        status = run(["grep", "--sort=path", f"--engine={engine}", *arguments, str(archive)])
        found.append((status, capfdbinary.readouterr().out))
    assert found[0] == found[1]


def test_patterns(archive: Path, engine: Engine) -> None:
    num_scanned = 0
    for pattern in PATTERNS:
        try:
            totals = check(archive, engine, patterns=(pattern.encode(),), line_number=True)
        except OptionError:
            continue
        num_scanned += totals.scanned_bytes != 0
    assert num_scanned > len(PATTERNS) / 2


@pytest.mark.parametrize("pattern", ["foo", r"\bfoo|bar\s*$"])
def test_options(capfdbinary: Capture, archive: Path, pattern: str) -> None:
    for options in OPTIONS[::3]:
        compare(capfdbinary, archive, "-n", *options, "-e", pattern)


def test_large_files(tmp_path: Path, engine: Engine) -> None:
    make_large_tree(tmp_path / "tree")
    target = pack_tree(tmp_path / "tree", "bytes")
    for pattern in (b"needle [35]", rb"needle \d+ .*r$", b"(?i)NEEDLE 35", b"quiet"):
        for options in (
            {},
            {"before_context": 9000},
            {"after_context": 1500},
            {"max_count": 3, "after_context": 2},
            {"text": True},
        ):
            check(target, engine, patterns=(pattern,), line_number=True, **options)
    totals = check(target, engine, patterns=(b"needle 35",))
    assert totals.candidate_bytes < totals.scanned_bytes / 4


def test_many_literals(tmp_path: Path, engine: Engine) -> None:
    make_large_tree(tmp_path / "tree")
    target = pack_tree(tmp_path / "tree", "bytes")
    literals = tuple(b"needle %d foo" % number for number in range(30, 10_000))
    totals = check(target, engine, patterns=literals, fixed_strings=True)
    assert totals.candidate_bytes < totals.scanned_bytes / 2


def test_payloads_stay_on_the_device(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = SearchQuery((rb"su\w+d\b",), line_number=True, sort="path", read_all=True)
    with Archive(archive, engine=select_engine("cpu")) as opened:
        expected, _ = found(opened, query)
    options = GpuOptions(resident="on", archive_size=os.path.getsize(archive))
    with Archive(archive, engine=select_engine("gpu", gpu=options)) as opened:
        memory = SearchMemory(opened)
        assert found(opened, query, memory)[0] == expected
        monkeypatch.setattr(ArchiveSource, "begin_staging", None)
        for _ in range(3):
            assert found(opened, query, memory)[0] == expected
