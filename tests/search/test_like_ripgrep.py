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
from gompfs.search.file_types import type_lines, type_names
from gompfs.search.query import OPTIONS as KEPT

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


@pytest.fixture(scope="module")
def archives(tree: Path) -> dict[str, Path]:
    """The tree with its text stored as grammars, and as bytes."""
    made = {name: tree.parent / f"{name}.gomp" for name in ("text", "bytes")}
    pack_archive([tree], made["text"], codec="gompresso-tadoc", engine="cpu")
    pack_archive([tree], made["bytes"], codec="gompresso-bit", engine="cpu")
    return made


@pytest.fixture(params=["text", "bytes"])
def archive(request: pytest.FixtureRequest, archives: dict[str, Path]) -> Path:
    return archives[request.param]


def ours(capfdbinary: Capture, archive: Path, *arguments: str) -> tuple[int, bytes]:
    status = run(["grep", "--sort=path", *arguments, str(archive)])
    return status, capfdbinary.readouterr().out


def check(capfdbinary: Capture, tree: Path, archive: Path, *arguments: str) -> None:
    """Compares both outputs; of errors, the status."""
    if not is_comparable(arguments):
        pytest.skip("this version of ripgrep differs from the newest one; see tests/search/ripgrep.py")
    expected = ripgrep(*arguments, cwd=tree)
    found = ours(capfdbinary, archive, *arguments)
    if expected != found:
        assert found[0] == expected[0]
        if expected[0] != ERROR:
            assert found[1].splitlines() == expected[1].splitlines()
            assert found == expected


@pytest.mark.parametrize(
    ("archive", "pattern"),
    [*(("text", pattern) for pattern in PATTERNS), *(("bytes", pattern) for pattern in PATTERNS[::4])],
    indirect=["archive"],
)
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
def test_options(capfdbinary: Capture, tree: Path, archive: Path, options: list[str]) -> None:
    pattern = "foo" if archive.stem == "bytes" else r"\bfoo|bar\s*$"
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


@pytest.mark.parametrize("last", ["-l", "-c", "--files-without-match", "--count-matches", "--json"])
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
    assert names <= {*type_names()}
    assert version() < REFERENCE or type_lines() == wanted


@pytest.mark.parametrize("options", [[], ["-c"], ["-C1"], ["-m1"], ["--json"], ["-U"], ["-a"], ["-l"]])
@pytest.mark.parametrize(
    "content", [b"foo\0bar\nfoo\n", b"foo bar\n" * 20_000 + b"x\0foo\nfoo\n"], ids=["early", "late"]
)
def test_a_binary_file_that_is_named(capfdbinary: Capture, tmp_path: Path, content: bytes, options: list[str]) -> None:
    """It is searched up to the first match after a NUL."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_bytes(content)
    pack_archive([tmp_path / "tree"], tmp_path / "tree.gomp", engine="cpu")
    arguments = [*options, "-n", "foo"]
    status, wanted = ripgrep(*arguments, "file", cwd=tmp_path / "tree")
    assert run(["grep", *arguments, str(tmp_path / "tree.gomp"), "file"]) == status
    found = capfdbinary.readouterr().out
    assert (not different_messages(found, wanted)) if "--json" in options else found == wanted


@pytest.mark.parametrize("seed", range(3))
def test_random_searches(capfdbinary: Capture, tmp_path: Path, seed: int) -> None:
    """Random options and patterns, in a tree of files that are awkward to search."""
    generator = random.Random(seed)
    make_random_tree(tmp_path / "tree", generator)
    pack_archive(
        [tmp_path / "tree"], tmp_path / "tree.gomp", codec="gompresso-tadoc" if seed else "gompresso-bit", engine="cpu"
    )
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


def test_a_nul_after_the_beginning(capfdbinary: Capture, tmp_path: Path) -> None:
    """Lines before it are searched. ripgrep leaves out some of them, depending on what it has read at once."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "late").write_bytes(b"foo bar\n" * 20_000 + b"foo \0foo\nfoo\n")
    pack_archive([tmp_path / "tree"], tmp_path / "tree.gomp", engine="cpu")
    note = b'late: WARNING: stopped searching binary file after match (found "\\0" byte around offset 160004)\n'
    for options in ([], ["-U"]):
        found = ours(capfdbinary, tmp_path / "tree.gomp", *options, "foo")
        assert found == (0, b"late:foo bar\n" * 20_000 + note)
    assert ours(capfdbinary, tmp_path / "tree.gomp", "-a", "-c", "foo") == (0, b"late:20002\n")


VALUES = {"--engine": "cpu", "--color": "never", "--encoding": "none", "--sort": "path", "--file": os.devnull}
VALUES |= {"--ignore-file": os.devnull, "--glob": "*", "--type-not": "py", "--type": "c"}


def options_of_ripgrep() -> dict[str, bool]:
    """The names of its options, and whether they take a value."""
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, check=True, text=True).stdout
    found = re.findall(r"^ {4,8}(-\S)?(?: [A-Z]+)?,? ?(--[a-z0-9-]+)( <|=)?", text, re.MULTILINE)
    assert len(found) >= 90
    names = {name: value != "" for short, long, value in found for name in (short, long)}
    return {name: value for name, value in names.items() if name not in ("", "-h", "--help", "-V", "--version")}


def test_options_are_kept_or_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every option of ripgrep is one of ours, or refused with a line that says what to do instead."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file.c").write_text("foo\n")
    archive = tmp_path / "tree.gomp"
    pack_archive([tmp_path / "tree"], archive, engine="cpu")
    num_kept = 0
    for option, takes_value in options_of_ripgrep().items():
        if not option.startswith("--") or option in ("--sort-files", "--no-ignore"):
            continue
        value = VALUES.get(option, "1")
        status = run(["grep", f"{option}={value}" if takes_value else option, "-e", "foo", str(archive)])
        errors = capfd.readouterr().err
        if status == ERROR and errors:
            assert re.fullmatch(rf"gompfs: {option} is not supported: \S.*\. See: .*\n", errors), (option, errors)
        else:
            num_kept += 1
    assert num_kept < len(KEPT) + 9


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        *(("-uu", "all files of an archive are searched"), ("-p", "--color always"), ("-b", "--json")),
        *(("--sort-files", "--sort path"), ("--no-ignore", "all files"), ("--no-ignore-vcs", "--ignore")),
        *(("--no-column", "leave it out"), ("--no-hidden", "-g '!.*'"), ("--exclude-dir=x", "-g '!GLOB'")),
        *(("-R", "recursively"), ("-z", "zcat"), ("-nz", "zcat"), ("--colors", "--color")),
    ],
)
def test_what_to_do_instead(capfd: pytest.CaptureFixture[str], option: str, advice: str) -> None:
    assert run(["grep", option, "foo", "a.gomp"]) == ERROR
    assert re.fullmatch(rf"gompfs: \S+ is not supported: .*{re.escape(advice)}.*\n", capfd.readouterr().err)


@pytest.mark.parametrize("options", [[], ["-0"], ["-t", "c", "--color=always"], ["--max-depth", "1"], ["-l"]])
def test_files(capfdbinary: Capture, tree: Path, archive: Path, options: list[str]) -> None:
    check(capfdbinary, tree, archive, "--files", *options)
