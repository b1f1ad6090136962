"""The include lines of the C++ core and the CUDA sources: directories include only those below them; no circles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("*.h", "*.cpp", "*.cuh", "*.cu")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

# For each directory, the directories whose headers it may include besides its own.
NATIVE = {
    "common": set(),
    "codec/parse": {"common", "shared"},
    "codec": {"common", "codec/parse", "shared"},
    "index": {"common"},
    "sources": {"common"},
    "text": {"common", "codec", "shared"},
    "statistics": {"common", "text"},
    "blocks": {"common", "codec", "text", "shared"},
    "search/pattern": {"common"},
    "search/match": {"common", "search/pattern"},
    "search/files": {"common", "text", "blocks", "index", "search/pattern", "search/match"},
    "search/print": {"common", "search/match", "search/files"},
    "search/gpu": {"common", "blocks", "shared", "search/pattern", "search/match"},
    "search/grammar": {"common", "codec", "text", "blocks", "shared", "search/pattern"},
    "search": {
        *("common", "text", "blocks", "search/match", "search/files", "search/print", "search/gpu"),
        "search/grammar",
    },
    "gpu": {"common", "shared"},
    "fuse": {"common", "codec", "blocks", "shared"},
    "bindings": {
        "common",
        "codec",
        "codec/parse",
        "index",
        "statistics",
        "text",
        "sources",
        "blocks",
        "search",
        "search/files",
        "search/gpu",
        "search/grammar",
        "search/match",
        "search/pattern",
        "gpu",
        "fuse",
        "shared",
    },
}
KERNELS = {
    "shared": set(),
    "host": {"shared"},
    "codec": {"shared"},
    "encode": {"shared"},
    "search": {"shared"},
    "statistics": {"shared"},
    "reading": {"shared"},
}

Includes = dict[str, set[str]]


def includes_of(folder: Path) -> Includes:
    """Returns the headers that each file of the directories in a folder includes, as paths relative to the folder."""
    files = [path for pattern in SOURCES for path in folder.glob(f"*/**/{pattern}")]
    return {str(path.relative_to(folder)): set(INCLUDE.findall(path.read_text())) for path in files}


def upward_includes(includes: Includes, below: dict[str, set[str]]) -> Iterator[str]:
    """Yields the includes of headers that are in no directory below the file's."""
    for file, headers in sorted(includes.items()):
        directory = file.rpartition("/")[0]
        for header in sorted(headers):
            if header.rpartition("/")[0] not in below[directory] | {directory}:
                yield f"{file} includes {header}"


def find_circle(includes: Includes) -> list[str]:
    """Returns the names of files that include each other in a circle, empty if there are none.

    A header and its source file count as one.
    """
    edges: Includes = {}
    for file, headers in includes.items():
        name = file.rsplit(".", 1)[0]
        edges.setdefault(name, set()).update({header.rsplit(".", 1)[0] for header in headers} - {name})
    done: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for name in sorted(edges.get(path[-1], ())):
            if name in path:
                return [*path[path.index(name) :], name]
            if name not in done and (circle := search([*path, name])):
                return circle
        done.add(path[-1])
        return []

    return next((circle for name in sorted(edges) if (circle := search([name]))), [])


@pytest.mark.parametrize(("folder", "below"), [("native", NATIVE), ("kernels", KERNELS)])
def test_files_include_rooms_below_them_only(folder: str, below: dict[str, set[str]]) -> None:
    includes = includes_of(ROOT / folder)
    assert {file.rpartition("/")[0] for file in includes} == set(below)
    assert list(upward_includes(includes, below)) == []


@pytest.mark.parametrize("folder", ["native", "kernels"])
def test_no_files_include_each_other(folder: str) -> None:
    assert find_circle(includes_of(ROOT / folder)) == []


def test_the_search_finds_what_it_should() -> None:
    pair = {"codec/a.h": {"codec/b.h"}, "codec/b.h": set(), "codec/b.cpp": {"codec/b.h", "codec/c.h"}}
    assert find_circle(pair) == []
    assert find_circle({**pair, "codec/c.cpp": {"codec/a.h"}}) == ["codec/a", "codec/b", "codec/c", "codec/a"]
    upward = {"codec/a.cpp": {"fuse/x.h", "common/y.h"}}
    assert list(upward_includes(upward, NATIVE)) == ["codec/a.cpp includes fuse/x.h"]


@pytest.mark.parametrize("folder", ["native", "kernels"])
def test_no_source_file_is_longer_than_500_lines(folder: str) -> None:
    sizes = {file: len((ROOT / folder / file).read_text().splitlines()) for file in includes_of(ROOT / folder)}
    assert {file: size for file, size in sizes.items() if size > 500} == {}
