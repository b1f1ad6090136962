"""The output of `gompfs grep` is that of ripgrep on the packed tree, byte for byte."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from random_searches import make_random_tree, random_search
from ripgrep import PROGRAM, REFERENCE, is_comparable, ripgrep, version
from searched_tree import OPTIONS, PATTERNS, make_tree

from gompfs import pack_archive
from gompfs.cli.application import run
from gompfs.search.file_types import FileTypes

ERROR = 2

Capture = pytest.CaptureFixture[bytes]


def test_ripgrep_is_installed() -> None:
    """The other tests would test nothing without it; tools/setup installs it."""
    assert version() in range(13, REFERENCE + 1)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("searched") / "tree"
    make_tree(root)
    return root


@pytest.fixture(scope="module", params=["text", "bytes"])
def archive(request: pytest.FixtureRequest, tree: Path) -> Path:
    """The tree with its text stored as grammars, and as bytes."""
    target = tree.parent / f"{request.param}.gomp"
    pack_archive([tree], target, stats=request.param == "text", engine="cpu")
    return target


def ours(capfdbinary: Capture, archive: Path, *arguments: str) -> tuple[int, bytes]:
    status = run(["grep", "--sort=path", *arguments, str(archive)])
    return status, capfdbinary.readouterr().out


def check(capfdbinary: Capture, tree: Path, archive: Path, *arguments: str) -> None:
    """Compares both outputs; of errors, the status."""
    if not is_comparable(arguments):
        pytest.skip("this version of ripgrep differs from the newest one; see tests/ripgrep.py")
    expected = ripgrep(*arguments, cwd=tree)
    found = ours(capfdbinary, archive, *arguments)
    if expected != found:
        assert found[0] == expected[0]
        if expected[0] != ERROR:
            assert found[1].splitlines() == expected[1].splitlines()
            assert found == expected


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern(capfdbinary: Capture, tree: Path, archive: Path, pattern: str) -> None:
    check(capfdbinary, tree, archive, "-n", "-e", pattern)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.skipif("GOMPFS_LARGE_TREE" not in os.environ, reason="set GOMPFS_LARGE_TREE and GOMPFS_LARGE_ARCHIVE")
def test_patterns_in_a_large_tree(capfdbinary: Capture) -> None:
    """For example Linux's source and its archive."""
    tree, archive = (Path(os.environ[name]) for name in ("GOMPFS_LARGE_TREE", "GOMPFS_LARGE_ARCHIVE"))
    for pattern in PATTERNS:
        check(capfdbinary, tree, archive, "-n", "-e", pattern)


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("pattern", ["foo", r"\bfoo|bar\s*$"])
def test_options(capfdbinary: Capture, tree: Path, archive: Path, options: list[str], pattern: str) -> None:
    check(capfdbinary, tree, archive, "-n", *options, "-e", pattern)


@pytest.mark.parametrize(
    "pattern",
    [r"\p{Lu}", r"a\p{Lu}", r"\w\p{Lu}", "[[:upper:]]", "[a&&[:upper:]]", "[^A]o", "[[A-C]o]", r"\x46oo"],
)
def test_smart_case(capfdbinary: Capture, tree: Path, archive: Path, pattern: str) -> None:
    """Case matters if a character is uppercase, or if there are only classes with names."""
    check(capfdbinary, tree, archive, "-S", "-n", "-o", "-e", pattern)


@pytest.mark.parametrize("pattern", [r"\pL", r"[^\PL]", r"[\pL\d]", r"\PL", r"\pC", r"\w|\p{Lu}"])
def test_matches_are_counted_if_they_may_take_several_lines(
    capfdbinary: Capture, tree: Path, archive: Path, pattern: str
) -> None:
    check(capfdbinary, tree, archive, "-U", "-c", "-e", pattern)


@pytest.mark.parametrize("options", ["-iS", "-Si", "-si", "-is", "-Ss", "-sS", "-Sis", "-isS"])
def test_the_last_option_about_case_counts(capfdbinary: Capture, tree: Path, archive: Path, options: str) -> None:
    for pattern in ("foo", "Foo"):
        check(capfdbinary, tree, archive, options, "-n", "-e", pattern)


NOT_COMPARED = ("elapsed", "elapsed_total", "bytes_printed", "bytes_searched")


def message(line: bytes) -> object:
    """A message of --json without times and numbers of bytes."""

    def compared(value: dict[str, object]) -> dict[str, object]:
        return {key: item for key, item in value.items() if key not in NOT_COMPARED}

    return json.loads(line, object_hook=compared)


def different_messages(found: bytes, wanted: bytes) -> list[tuple[bytes, bytes]]:
    """The pairs of messages that differ. The last one, which sums up, is not compared."""
    pairs = zip(found.splitlines()[:-1], wanted.splitlines()[:-1], strict=True)
    return [pair for pair in pairs if pair[0] != pair[1] and message(pair[0]) != message(pair[1])]


@pytest.mark.parametrize("options", [[], ["-i"], ["-v"], ["-w", "-m2"], ["-C1"], ["-U"], ["-a"], ["-o"]], ids=" ".join)
@pytest.mark.parametrize("pattern", ["foo", r"\bfoo|bar\s*$", r"(?s)o.b", "no such word"])
def test_json(capfdbinary: Capture, tree: Path, archive: Path, options: list[str], pattern: str) -> None:
    arguments = ["--json", "-g", "!large.txt", *options, "-e", pattern]
    (status, wanted), (of_ours, found) = ripgrep(*arguments, cwd=tree), ours(capfdbinary, archive, *arguments)
    assert of_ours == status
    if status != ERROR:
        assert different_messages(found, wanted)[:1] == []


@pytest.mark.parametrize("last", ["-l", "-c", "--files-without-match", "--count-matches", "--json", "--no-json"])
@pytest.mark.parametrize("first", ["-l", "-c", "--json"])
def test_the_last_option_about_output_counts(
    capfdbinary: Capture, tree: Path, archive: Path, first: str, last: str
) -> None:
    arguments = ["-g", "!large.txt", first, last, "foo"]
    if not is_comparable(arguments):
        pytest.skip("ripgrep 13 refuses it")
    (status, wanted), (of_ours, found) = ripgrep(*arguments, cwd=tree), ours(capfdbinary, archive, *arguments)
    assert of_ours == status
    assert found == wanted or (last == "--json" and not different_messages(found, wanted))


@pytest.mark.parametrize("options", [[], ["-q"], ["-l"], ["-c"], ["--heading"], ["-C1", "-n"]], ids=" ".join)
@pytest.mark.parametrize("pattern", ["foo", "no such word"])
def test_statistics_of_a_search(
    capfdbinary: Capture, tree: Path, archive: Path, pattern: str, options: list[str]
) -> None:
    """How long it took is not compared."""
    names = (b" matches", b" matched lines", b" files contained matches", b" bytes printed")

    def numbers(output: bytes) -> list[bytes]:
        return [line for line in output.splitlines()[-10:] if line.endswith(names)]

    arguments = ["--stats", "-g", "!nul*", *options, pattern]
    (_, wanted), (_, found) = ripgrep(*arguments, cwd=tree), ours(capfdbinary, archive, *arguments)
    assert numbers(found) == numbers(wanted)
    assert len(numbers(found)) == len(names)


@pytest.mark.parametrize("options", [[], ["-H"], ["-n"], ["-c"], ["-H", "-c"], ["-l"], ["--heading", "-H"]])
def test_one_file(capfdbinary: Capture, tree: Path, archive: Path, options: list[str]) -> None:
    """Without -H, its path is not printed."""
    status = run(["grep", *options, "foo", str(archive), "last"])
    assert (status, capfdbinary.readouterr().out) == ripgrep(*options, "foo", "last", cwd=tree)


def test_several_patterns(capfdbinary: Capture, tree: Path, archive: Path, tmp_path: Path) -> None:
    patterns = tmp_path / "patterns"
    patterns.write_bytes(b"foo\nb.r\n")
    of_file = ["-f", str(patterns)]
    for options in (["-e", "foo", "-e", "x1"], of_file, [*of_file, "-e", "x1", "-w"]):
        check(capfdbinary, tree, archive, "-n", *options)


def test_types() -> None:
    """All types of ripgrep are known; those of the newest one with their globs."""
    wanted = subprocess.run([PROGRAM, "--type-list"], capture_output=True, check=True).stdout.decode().splitlines()
    names = {line.partition(":")[0] for line in wanted}
    assert names <= {*FileTypes().names()}
    assert version() < REFERENCE or FileTypes().lines() == wanted


@pytest.mark.parametrize("options", [[], ["-c"], ["-C1"], ["-m1"], ["--json"], ["--passthru"], ["-U"], ["-a"], ["-l"]])
@pytest.mark.parametrize("name", ["nul-first", "nul-late"])
def test_a_binary_file_that_is_named(
    capfdbinary: Capture, tree: Path, archive: Path, name: str, options: list[str]
) -> None:
    """It is searched up to the first match after a NUL, as with --binary."""
    arguments = [*options, "-n", "foo"]
    status, wanted = ripgrep(*arguments, name, cwd=tree)
    assert run(["grep", *arguments, str(archive), name]) == status
    found = capfdbinary.readouterr().out
    assert (not different_messages(found, wanted)) if "--json" in options else found == wanted


@pytest.mark.parametrize("seed", range(3))
def test_random_searches(capfdbinary: Capture, tmp_path: Path, seed: int) -> None:
    """Random options and patterns, in a tree of files that are awkward to search."""
    generator = random.Random(seed)
    make_random_tree(tmp_path / "tree", generator)
    pack_archive([tmp_path / "tree"], tmp_path / "tree.gomp", stats=seed != 0, engine="cpu")
    for _ in range(60):
        arguments = random_search(generator)
        if not is_comparable(arguments):
            continue
        status, wanted = ripgrep(*arguments, cwd=tmp_path / "tree")
        of_ours, found = ours(capfdbinary, tmp_path / "tree.gomp", *arguments)
        if not wanted:  # if no file was searched, or none was printed, ripgrep's status has no rule
            status = of_ours
        if "--json" in arguments:
            assert (of_ours, different_messages(found, wanted)) == (status, []), arguments
        else:
            assert (of_ours, found) == (status, wanted), arguments


VALUES = {"--engine": "cpu", "--color": "never", "--encoding": "none", "--type-add": "x:*.x", "--colors": "match:none"}
VALUES |= {"--sort": "path", "--sortr": "path", "--glob": "*", "--iglob": "*", "--max-filesize": "9"}
VALUES |= {"--type-not": "py", "--file": os.devnull, "--ignore-file": os.devnull}


def test_options_without_effect_and_refused_ones(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every option of ripgrep is one of ours, or refused with a line that says what to do instead."""
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, check=True, text=True).stdout
    takes_value = dict(re.findall(r"^ {4,8}(?:-\S(?: [A-Z]+)?, )?(--[a-z0-9-]+)( <|=)?", text, re.MULTILINE))
    assert len(takes_value) >= 90
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file.c").write_text("foo\n")
    archive = tmp_path / "tree.gomp"
    pack_archive([tmp_path / "tree"], archive, engine="cpu")
    for option in sorted(takes_value.keys() - {"--help", "--version"}):
        value = VALUES.get(option, "c" if option.startswith("--type") else "1")
        status = run(["grep", f"{option}={value}" if takes_value[option] else option, "-e", "foo", str(archive)])
        errors = capfd.readouterr().err
        if status == ERROR:
            assert re.fullmatch(r"gompfs: -?.* is not supported: .*[;,].*\n", errors), option
        else:
            assert errors == "", option


@pytest.mark.parametrize("options", [[], ["-0"], ["-t", "c", "--color=always"], ["--max-depth", "1"], ["-l"]])
def test_files(capfdbinary: Capture, tree: Path, archive: Path, options: list[str]) -> None:
    check(capfdbinary, tree, archive, "--files", *options)
