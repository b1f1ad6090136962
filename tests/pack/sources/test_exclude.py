"""Exclude patterns leave out the paths that git ignores for the same patterns."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gompfs.errors import OptionError
from gompfs.pack.sources.exclude import ExcludeRules

NAMES = ["a", "b", "ab", "a.o", "b.o", "foo", "foo1", "x1", "é", "a b", "[a]", "-", "A"]
WORDS = ["a", "b", "o", "*", "?", "**", "[a-b]", "[!a]", "[[:digit:]]", "[[:alpha:]]", "x", ".o", "\\*", "\\a", "[]a]"]
LISTS = [["/a/*", "!/a/b"], ["*/*"], ["/*", "!/foo"], ["**/a/**", "!**/b/"], ["foo*", "!foo1"], ["*.o", "!/a/*.o"]]


def random_pattern(rng: random.Random) -> str:
    parts = ["**", "*", rng.choice(NAMES), "".join(rng.choices(WORDS, k=rng.choice([1, 2, 3])))]
    body = "/".join(rng.choices(parts, k=rng.choice([1, 1, 2, 3])))
    return rng.choice(["", "", "!"]) + rng.choice(["", "", "/"]) + body + rng.choice(["", "", "/"])


def make_tree(folder: Path, rng: random.Random, depth: int = 0) -> None:
    for name in rng.sample(NAMES, 6):
        if depth < 3 and rng.random() < 0.5:
            (folder / name).mkdir()
            make_tree(folder / name, rng, depth + 1)
        else:
            (folder / name).touch()


def excluded_by_git(root: Path, patterns: list[str], paths: list[bytes]) -> set[bytes]:
    (root / ".git" / "info" / "exclude").write_text("\n".join(patterns) + "\n")
    command = ["git", "-C", root, "check-ignore", "-z", "--stdin", "--no-index"]
    done = subprocess.run(command, input=b"\0".join(paths) + b"\0", capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {path for path in done.stdout.split(b"\0") if path}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
def test_the_same_paths_as_git(tmp_path: Path) -> None:
    rng = random.Random(5)
    make_tree(tmp_path, rng)
    entries = sorted((os.fsencode(path.relative_to(tmp_path)), path.is_dir()) for path in tmp_path.rglob("*"))
    assert len(entries) > 50
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    num_excluded = 0
    for patterns in LISTS + [[random_pattern(rng) for _ in range(rng.choice([1, 2, 3]))] for _ in range(150)]:
        rules = ExcludeRules(patterns)
        excluded = {path for path, is_directory in entries if rules.excludes_with_parents(path, is_directory)}
        assert excluded == excluded_by_git(tmp_path, patterns, [path for path, _ in entries]), patterns
        num_excluded += len(excluded)
    assert num_excluded > 1000


@pytest.mark.parametrize("pattern", ["", "/", "!", "!/"])
def test_empty_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(OptionError, match="is empty"):
        ExcludeRules([pattern])
