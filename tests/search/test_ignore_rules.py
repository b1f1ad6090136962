"""Ignore rules of a search, compared with those of ripgrep on the same tree."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from ripgrep import PROGRAM, REFERENCE, version
from tree_helpers import pack

from gompfs.cli.application import run

Capture = pytest.CaptureFixture[bytes]

_RULES = (
    *(
        "*.o",
        "!a.o",
        "/a.o",
        "b/",
        "a/b",
        "**/c",
        "a/**",
        "**/b/*.c",
        "!b",
        "[ab].c",
        "[!a].o",
        "?",
        "*",
        "!*/",
        "{a,b}.o",
    ),
    *(
        "\\!d",
        "\\#e",
        "#e",
        "!d",
        "f\\ ",
        "f  ",
        "c\r",
        "a.c\t",
        "/b/c/",
        "!/c",
        "[a",
        "{a",
        "a\\",
        "\\*",
        "**",
        "/",
        "//",
    ),
    *("!", "a/**/c", "b\\/", "c*d", ".*", "!.hidden", "", "a/*", "*.c", "é*", "-", "[a-", "b/**/"),
)
_NAMES = ("a", "b", "c", "a.o", "b.o", "a.c", "b.c", "!d", "#e", "f ", "f", "*", ".hidden", "cxd", "étoile", "[a")
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")


def _grep(capture: Capture, *arguments: str | Path) -> tuple[int, bytes, bytes]:
    """Returns the exit status, and what the command prints on both streams."""
    status = run(["grep", *map(str, arguments)])
    return (status, *capture.readouterr())


def _listed_by_ripgrep(tree: Path, *arguments: str) -> list[bytes]:
    options = ("--no-config", "--hidden", "--no-ignore-global", "--no-ignore-exclude", "--files", "--no-messages")
    done = subprocess.run([PROGRAM, *options, *arguments], cwd=tree, capture_output=True, check=False)
    return sorted(done.stdout.splitlines())


def _fill(directory: Path, chance: random.Random, depth: int) -> None:
    directory.mkdir(exist_ok=True)
    for name in _IGNORE_FILES:
        if chance.random() < 0.3:
            lines = chance.choices(_RULES, k=chance.randint(1, 4))
            (directory / name).write_text("\n".join(lines) + chance.choice(("", "\n")))
    if chance.random() < 0.2:
        (directory / chance.choice((".git", ".jj"))).mkdir()
    for name in chance.sample(_NAMES, 9):
        if depth and chance.random() < 0.4:
            _fill(directory / name, chance, depth - 1)
        else:
            (directory / name).write_text("text\n")


def _packed(tree: Path) -> Path:
    archive = tree.parent / f"{tree.name}.gomp"
    pack(archive, tree)
    return archive


@pytest.mark.skipif(version() < REFERENCE, reason="what older versions of ripgrep ignore may differ")
@pytest.mark.parametrize("seed", range(8))
def test_the_same_files_are_left_out(tmp_path: Path, capfdbinary: Capture, seed: int) -> None:
    chance = random.Random(seed)
    tree = tmp_path / "tree"
    _fill(tree, chance, 2)
    rules = tmp_path / "rules"
    rules.write_text("\n".join(chance.choices(_RULES, k=3)) + "\n")
    archive = _packed(tree)
    below = sorted(str(path.relative_to(tree)) for path in tree.iterdir() if path.is_dir())[-1:]
    for options in ([], [f"--ignore-file={rules}"], ["-g", "!b*"], ["-g", "*.c"], ["-d", "2"]):
        for paths in ([], below):
            _, found, _ = _grep(capfdbinary, "--ignore", "--files", *options, archive, *paths)
            expected = _listed_by_ripgrep(tree, *options, *paths)
            assert sorted(found.splitlines()) == expected, (options, paths)


def test_files_named_by_rules(tmp_path: Path, capfdbinary: Capture) -> None:
    """A .gitignore counts in a repository only; a rule of a deeper directory, and of a later line, wins."""
    for name, text in {
        "a.o": "text\n",
        "deep/a.o": "text\n",
        "deep/b.o": "text\n",
        "repository/.git/HEAD": "text\n",
        "repository/a.o": "text\n",
        "repository/b.c": "text\n",
        "deep/.ignore": "*.o\n!b.o\n",
        "repository/.gitignore": "*.o\n",
        ".gitignore": "*\n",
    }.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    archive = _packed(tmp_path / "tree")
    everything = sorted(_grep(capfdbinary, "-l", "text", archive)[1].split())
    assert len(everything) == 6
    kept = sorted(_grep(capfdbinary, "-l", "--ignore", "text", archive)[1].split())
    assert kept == [b"a.o", b"deep/b.o", b"repository/.git/HEAD", b"repository/b.c"]


def test_malformed_rules_are_warnings(tmp_path: Path, capfdbinary: Capture) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("a", "b", "c"):
        (tree / name).write_text("text\n")
    (tree / ".ignore").write_bytes(b"a\n{\x1b[31m\nb\\\nb\n\xff\nc\n")
    archive = _packed(tree)
    assert _grep(capfdbinary, "--ignore", "--files", "-g", "?", archive)[0] == 0
    status, found, errors = _grep(capfdbinary, "--ignore", "--files", archive)
    assert (status, sorted(found.splitlines())) == (0, [b".ignore", b"c"])
    assert [line.split(b"line ")[1][:1] for line in errors.splitlines()] == [b"2", b"3", b"5"]
    assert b"\x1b" not in errors


def test_named_file_alone_and_named_paths(tmp_path: Path, capfdbinary: Capture) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.o").write_text("text\n")
    (tree / ".ignore").write_text("*\n")
    rules = tmp_path / "rules"
    rules.write_text("*.o\n")
    archive = _packed(tree)
    assert _grep(capfdbinary, "--ignore-file", rules, "--files", archive)[1] == b".ignore\n"
    assert _grep(capfdbinary, "--ignore", "text", archive, "a.o")[1] == b"text\n"
    status, found, errors = _grep(capfdbinary, "--ignore-file", tmp_path / "none", "text", archive)
    assert (status, found) == (2, b"")
    assert b"none: No such file" in errors


def test_rules_and_dask_do_not_go_together(capfdbinary: Capture) -> None:
    status, _, errors = _grep(capfdbinary, "--ignore", "--dask=x", "text", "a.gomp")
    assert status == 2
    assert b"--ignore and --ignore-file cannot be used with --dask" in errors


@pytest.mark.parametrize("rule", ["*a" * 100 + "b", "[ab]*x\n" * 150_000, "x*[y]\n" * 1900])
def test_hostile_rules_end_soon(tmp_path: Path, capfdbinary: Capture, rule: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".ignore").write_text(rule)
    for number in range(20):
        (tree / ("a" * (200 + number))).write_text("text\n")
    archive = _packed(tree)
    assert _grep(capfdbinary, "--ignore", "--files", archive)[0] in (0, 2)


@pytest.mark.parametrize(("size", "counts"), [((1 << 20) - 1, True), (1 << 20, True), ((1 << 20) + 1, False)])
def test_the_largest_ignore_file(tmp_path: Path, capfdbinary: Capture, size: int, counts: bool) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("text\n")
    text = b"a\n#"
    (tree / ".ignore").write_bytes(text + b"x" * (size - len(text)))
    archive = _packed(tree)
    status, found, errors = _grep(capfdbinary, "-l", "--ignore", "text", archive)
    assert (status, found) == ((1, b"") if counts else (0, b"a\n"))
    assert errors == (b"" if counts else b"gompfs: warning: .ignore: not used: it is larger than 1 MiB\n")
    status, found, errors = _grep(capfdbinary, "-l", "--ignore-file", tree / ".ignore", "text", archive)
    assert status == (1 if counts else 2)
    assert (b"larger than 1 MiB" in errors) is not counts


@pytest.mark.parametrize("before", [9_998, 9_999, 10_000])
def test_the_most_rules_of_a_file(tmp_path: Path, capfdbinary: Capture, before: int) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("text\n")
    (tree / ".ignore").write_text("b\n" * before + "a\n")
    status, _, errors = _grep(capfdbinary, "-l", "--ignore", "text", _packed(tree))
    assert status == (1 if before < 10_000 else 0)
    assert (b"line 10001: too many rules" in errors) is (before == 10_000)
