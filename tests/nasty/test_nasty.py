"""Packs some nasty trees and compares all that can be read, and checks that the check finds errors.

`python -m tests.nasty.campaign` does the same for as many trees as wanted; see the head of that file.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaign import Options, Result, run_campaign
from nasty_texts import LIMITS, TEXTS, TOKENS, near_a_limit
from nasty_trees import make_tree

from gompfs.archive import Archive
from gompfs.statistics.report import Report

NUM_TREES = 30
NUM_GROUPS = 2
_GIB = 1 << 30
_GOMPFS = (sys.executable, "-P", "-m", "gompfs")


def campaign(tmp_path: Path, **options: object) -> Result:
    """Runs a campaign with trees that are small but for their tokens."""
    given = {"scale": 0.1, "large": 0, "processes": 80, "mounts": 160, **options}
    return run_campaign(Options(keep=str(tmp_path / "kept"), **given))  # type: ignore[arg-type]


@pytest.mark.parametrize("group", range(NUM_GROUPS))
def test_nasty_trees(group: int, tmp_path: Path) -> None:
    result = campaign(tmp_path, first=group * NUM_TREES // NUM_GROUPS, count=NUM_TREES // NUM_GROUPS)
    assert result.num_trees == NUM_TREES // NUM_GROUPS
    assert not result.told, "\n".join(result.told)


def test_a_large_tree(tmp_path: Path) -> None:
    """Parts of the default size, which share tokens of 65,534 bytes and more."""
    result = campaign(tmp_path, numbers=[24], large=25)
    assert not result.told, "\n".join(result.told)


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
def test_ten_thousand_trees(tmp_path: Path) -> None:
    jobs = len(os.sched_getaffinity(0))
    result = run_campaign(Options(count=10_000, seed=int(time.time()), jobs=jobs, keep=str(tmp_path / "kept")))
    assert not result.told, "\n".join(result.told)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("between", [b"", b" "], ids=["one word", "one word again and again"])
def test_two_gib_of_one_word(between: bytes, tmp_path: Path) -> None:
    """A file that is one word, and a file that has one word only."""
    word = b"gompresso" + between
    source, archive = tmp_path / "source", tmp_path / "a.gomp"
    source.mkdir()
    piece = word * ((1 << 20) // len(word))
    num_pieces = 2 * _GIB // len(piece) + 1
    with open(source / "file", "wb") as file:
        file.writelines(piece for _ in range(num_pieces))
    subprocess.run([*_GOMPFS, "pack", "-q", source, archive], check=True)
    subprocess.run([*_GOMPFS, "verify", "-q", archive], check=True)
    with subprocess.Popen([*_GOMPFS, "cat", archive, "file"], stdout=subprocess.PIPE) as cat:
        subprocess.run(["cmp", "-", source / "file"], stdin=cat.stdout, check=True)
        assert cat.stdout is not None
    assert cat.returncode == 0
    if between:
        counted = subprocess.run([*_GOMPFS, "stats", archive, "wordcount"], capture_output=True, check=True).stdout
        assert counted == b"gompresso\t%d\n" % (num_pieces * (len(piece) // len(word)))


def test_a_tree_depends_only_on_its_number() -> None:
    for number in range(10):
        first, second = make_tree(number, 3, 0.1), make_tree(number, 3, 0.1)
        assert first == second
        assert first.describe() == second.describe()


def test_the_trees_have_everything() -> None:
    """All kinds of tokens and texts, tokens beside each limit, and each way to write."""
    trees = [make_tree(number, 1, 0.05) for number in range(240)]
    assert {kind for tree in trees for kind in tree.kinds} >= TOKENS.keys() | TEXTS.keys()
    sizes = {len(token) for tree in trees for token in tree.tokens}
    for limit in (65_534, 65_535):  # of words and separators
        assert {limit - 1, limit, limit + 1} <= sizes
    assert max(sizes) >= 2 * LIMITS[-1]
    assert any(tree.added for tree in trees)
    assert any(tree.repacked for tree in trees)
    assert {tree.options["words"] for tree in trees} == {"identifiers", "letters", "whitespace"}


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens_have_their_size(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(20):
        size = near_a_limit(rng, 8_192)
        assert len(TOKENS[kind](rng, size)) == size


# The check itself: it finds what goes wrong.


def findings(tmp_path: Path, **options: object) -> set[str]:
    result = campaign(tmp_path, count=3, processes=0, mounts=0, **options)
    return {line.strip().partition(":")[0].partition(" ")[0] for told in result.told for line in told.split("\n")[1:]}


def test_wrong_bytes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Archive.read
    monkeypatch.setattr(Archive, "read", lambda *args: bytes(len(sound(*args))))
    assert {"read", "range"} <= findings(tmp_path)
    assert (tmp_path / "kept/1-0/findings.txt").exists()
    assert (tmp_path / "kept/1-0/a.gomp").exists()


def test_wrong_counts_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Report.read
    monkeypatch.setattr(Report, "read", lambda *args: sound(*args).replace(b"1", b"2"))
    assert "statistics" in findings(tmp_path)


def test_a_crash_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Archive, "read", lambda *_: os.kill(os.getpid(), 11))
    assert "signal" in findings(tmp_path)
