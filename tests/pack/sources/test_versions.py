"""Directories that are versions of each other are walked side by side."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from tree_helpers import list_directory, list_source

from gompfs.pack.sources import directory, open_source, open_sources
from gompfs.pack.sources import versions as versions_module
from gompfs.pack.sources.versions import Order, Step

FOLDER, FILE, OTHER = 0, 1, 2
Listing = list[tuple[bytes, int]]


def steps(*listings: Listing, num_open: int = 1) -> list[Step]:
    order = Order(listings, FOLDER, num_open)
    found = list(order.steps())
    directories = [place for step in found if step.kind == FOLDER for place in step.names]
    assert list(order.directories()) == directories
    places = [(number, name, step.kind) for step in found for number, name in step.names]
    assert sorted(places) == sorted((number, *entry) for number, listing in enumerate(listings) for entry in listing)
    return found


def test_the_order_in_one_directory() -> None:
    """It is byte order, but for the versions of a directory, which follow it in the order of their numbers."""
    listing = [
        (b"a", FILE),
        (b"b", FILE),
        (b"d-1.10", FOLDER),
        (b"d-1.2", FOLDER),
        (b"d-1.2.c", FILE),
        (b"d-2", FOLDER),
    ]
    listing += [(b"e", FOLDER), (b"f", OTHER), (b"g", OTHER), (b"h", FILE)]
    assert steps(listing) == [
        Step(FILE, [(0, b"a"), (0, b"b")]),
        Step(FOLDER, [(0, b"d-1.2"), (0, b"d-1.10"), (0, b"d-2")]),
        Step(FILE, [(0, b"d-1.2.c")]),
        Step(FOLDER, [(0, b"e")]),
        Step(OTHER, [(0, b"f"), (0, b"g")]),
        Step(FILE, [(0, b"h")]),
    ]


def test_the_order_in_several_directories() -> None:
    """Directories that differ only in numbers go together, and files of one name."""
    files = [(b"%c" % letter, FILE) for letter in b"abcd"]
    found = steps([*files, (b"only", FOLDER), (b"x86", FOLDER)], [*files[:2], (b"x64", FOLDER)])
    assert found == [
        Step(FILE, [(0, b"a")]),
        Step(FILE, [(1, b"a")]),
        Step(FILE, [(0, b"b")]),
        Step(FILE, [(1, b"b")]),
        Step(FILE, [(0, b"c"), (0, b"d")]),
        Step(FOLDER, [(0, b"only")]),
        Step(FOLDER, [(1, b"x64"), (0, b"x86")]),
    ]


def test_a_name_of_different_kinds() -> None:
    found = steps([(b"n1", FOLDER)], [(b"n1", FILE)], [(b"n1", OTHER)])
    assert [(step.kind, step.names) for step in found] == [
        (FOLDER, [(0, b"n1")]),
        (FILE, [(1, b"n1")]),
        (OTHER, [(2, b"n1")]),
    ]


@pytest.mark.parametrize(("count", "sizes"), [(15, [15]), (16, [16]), (17, [16, 1]), (33, [16, 16, 1])])
def test_the_number_of_directories_side_by_side(count: int, sizes: list[int]) -> None:
    assert [len(step.names) for step in steps([(b"%03d" % number, FOLDER) for number in range(count)])] == sizes


def test_no_more_directories_than_are_allowed() -> None:
    listing = [(b"%03d" % number, FOLDER) for number in range(40)]
    assert [len(step.names) for step in steps(listing, num_open=256)] == [16, 16, 8]
    assert [len(step.names) for step in steps(listing, num_open=257)] == [1] * 40


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """Versions that lack some files and directories, with directories in one that are files in others."""
    root = tmp_path / "tree"
    for number in range(20):
        version = root / f"v{number}"
        for folder in ("a/b/c", "d1/e", "d2/e", f"only-{'x' * number}"):
            if (number + len(folder)) % 5:
                (version / folder).mkdir(parents=True)
        version.mkdir(exist_ok=True)
        for folder in [path for path in version.rglob("*") if path.is_dir()]:
            for file in range(number % 4, 20):
                (folder / f"f{file}").write_text(f"{folder.name} {file} {number % 3}\n")
        if number % 7 == 0:
            (version / "kind").mkdir()
        else:
            (version / "kind").write_text("file")
    return root


def test_the_tree_is_read_exactly(versions: Path) -> None:
    source = open_source(versions)
    assert list_source(source) == list_directory(versions)
    assert source.warnings == []
    paths = [entry.path for entry in source.entries()]
    assert paths.index(b"v2") < paths.index(b"v10")
    places = [place for place, path in enumerate(paths) if path.endswith(b"/d1/e/f19")][:12]
    assert places[-1] - places[0] < len(paths) // 8  # in byte order, half of the entries would lie between


def test_few_directories_are_open(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where many are open, no more are walked side by side; deep directories are closed and opened again."""
    monkeypatch.setattr(versions_module, "_MAX_OPEN", 8)
    monkeypatch.setattr(directory, "_MAX_OPEN_LEVELS", 2)
    monkeypatch.setattr(directory, "_DIRECTORIES_AHEAD", 0)

    def num_open() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = num_open()  # other tests may have left some open
    source = open_source(versions)
    most = 0
    paths = []
    for entry in source.entries():
        paths.append(entry.path)
        most = max(most, num_open() - before)
    assert sorted(paths) == sorted(list_directory(versions))
    assert most < 40


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_version_that_cannot_be_read(versions: Path) -> None:
    (versions / "v3/a").chmod(0)
    try:
        source = open_source(versions, skip_unreadable=True)
        paths = {entry.path for entry in source.entries()}
        assert b"v4/a/b" in paths
        assert b"v3/d1/e" in paths
        assert len(source.warnings) == 1
    finally:
        (versions / "v3/a").chmod(0o755)


def test_versions_that_are_sources(versions: Path) -> None:
    """They give the entries of the directory that holds them, in its order, each with its own local path and rules."""
    (versions / "v1/a/excluded").write_text("only the rules of v1 know it")
    (versions / "v11/of-v11").write_text("and only those of v11 this")
    (source,) = open_sources(sorted(versions.iterdir()), sort="source", exclude=["/a/excluded", "/of-v11", "v1/kind"])
    alone = open_source(versions, exclude=["/v1/a/excluded", "/v11/of-v11"])
    assert source.total_size == alone.total_size
    os.link(versions / "v1/kind", versions / "v2/linked")
    described = [(entry.path, entry.hard_link_to, entry.size) for entry in source.entries()]
    expected = [(entry.path, entry.hard_link_to, entry.size) for entry in alone.entries()]
    assert described == expected[1:]


def test_which_sources_are_walked_side_by_side(tmp_path: Path) -> None:
    """Directories are, unless something with an order of its own or with one of their names is between them."""
    for name in ("v1", "v2", "other/v2"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "v1.txt").write_text("file")
    with tarfile.open(tmp_path / "t.tar", "w"):
        pass

    def names(*specs: str) -> list[set[bytes]]:
        sources = open_sources([tmp_path / spec for spec in specs], sort="source")
        return [set(source.names) if isinstance(source, directory.LocalSource) else set() for source in sources]

    assert names("v1", "v1.txt", "v2") == [{b"v1", b"v2"}, {b"v1.txt"}]
    assert names("v1", "t.tar", "v2", "other") == [{b"v1"}, set(), {b"v2", b"other"}]
    assert names("v1", "v2", "other/v2") == [{b"v1", b"v2"}, {b"v2"}]
