"""Patterns in the paths of ls, cat and extract, compared with those of bash on the same tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tree_helpers import pack, write_files

FILES = ["a.txt", "b.txt", "c.c", ".hidden.txt", "src/x.c", "src/y.h", "src/deep/x.c", "src/deep/er/z.c", "doc/x.c"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_files(tmp_path / "tree", {name: name.encode() + b"\n" for name in FILES})
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    return tmp_path / "tree"


PATTERNS = ["*.txt", "?.c", "src/*", "*/x.c", "src/[w-x].c", "s*/d*/*.c", "**/*.c", "src/**/*.c", "**/deep/**/z.c"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_those_of_a_shell(gompfs, tree, pattern):
    script = f"shopt -s globstar dotglob; LC_ALL=C; for f in {pattern}; do [ -f $f ] && echo $f; done"
    done = subprocess.run(["bash", "-c", script], cwd=tree, capture_output=True, text=True, check=False)
    files = done.stdout.splitlines()
    assert len(files) > 0
    directories = {"src/*": ["src/deep/x.c", "src/deep/er/"]}.get(pattern, [])
    assert sorted(gompfs("ls", "a.gomp", pattern).lines) == sorted([*files, *directories])
    if not directories:
        assert sorted(gompfs("cat", "a.gomp", pattern).lines) == sorted(files)


def test_extract(gompfs, tree, tmp_path):
    assert gompfs("extract", "-q", "a.gomp", "src/**", "*.txt", "-C", "out").status == 0
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert found == sorted(name for name in FILES if name.startswith("src/") or name.endswith(".txt"))


@pytest.mark.parametrize("command", ["ls", "cat", "extract"])
def test_a_pattern_that_matches_nothing(gompfs, tree, command):
    result = gompfs(command, "a.gomp", "*.nothing")
    assert (result.status, result.error_line) == (1, "a.gomp: *.nothing: no such file or directory")


def test_a_name_comes_before_a_pattern(gompfs, tmp_path):
    write_files(tmp_path / "odd", {"[ab]*": b"odd\n", "a": b"a\n", "b*": b"b\n"})
    pack(tmp_path / "odd.gomp", tmp_path / "odd")
    assert gompfs("cat", "odd.gomp", "[ab]*").output == b"odd\n"
    assert gompfs("cat", "odd.gomp", "b[*]").output == b"b\n"
    assert gompfs("cat", "odd.gomp", "?").output == b"a\n"
