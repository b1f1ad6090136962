"""Details of searches in which gompfs does what ripgrep does: patterns, paths, statistics, exit status."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ripgrep import PROGRAM, ripgrep, version
from tree_helpers import pack

from gompfs.cli.application import run
from gompfs.codec import Codec

ERROR = 2
Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files, and beside them their archive."""
    root = tmp_path_factory.mktemp("details") / "tree"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "text").write_text("foo\nbar\nabc\ndef\nfoo bar foo\n")
    (root / "other").write_text("  abc def foo foo foo\nfoo")
    (root / "sub" / "file.c").write_text("foo(1);\n")
    (root / "sub" / "deep" / "file.h").write_text("foo\nabc\n")
    (root / "scripts").write_text("x〈漢。カ\nひらがなー\n\u03b1\u03b2\nabc\n")
    (root / "dos").write_bytes(b"foo\r\nbar foo\r\n\r\nfoo\nabc foo")
    pack(root.parent / "tree.gomp", root, codec=Codec.GOMPRESSO_TADOC)
    return root


def ours(capfdbinary: Capture, tree: Path, *arguments: str, paths: tuple[str, ...] = ()) -> tuple[int, bytes]:
    status = run(["grep", "--sort=path", *arguments, str(tree.parent / "tree.gomp"), *paths])
    return status, capfdbinary.readouterr().out


def check(capfdbinary: Capture, tree: Path, *arguments: str, paths: tuple[str, ...] = ()) -> tuple[int, bytes]:
    wanted = ripgrep(*arguments, *paths, cwd=tree)
    found = ours(capfdbinary, tree, *arguments, paths=paths)
    assert found == wanted
    return found


@pytest.mark.parametrize("options", [[], ["-c"], ["-l"], ["--files-without-match"], ["-e", "foo"], ["-w"], ["-F"]])
def test_no_patterns_match_nothing(capfdbinary: Capture, tree: Path, options: list[str]) -> None:
    found = check(capfdbinary, tree, "-f", "/dev/null", *options)
    assert (found[0] == 0) == ("-e" in options)


@pytest.mark.skipif("version() < 15", reason="ripgrep 13 and 14 find nothing")
def test_all_lines_have_no_match_of_no_pattern(capfdbinary: Capture, tree: Path) -> None:
    assert check(capfdbinary, tree, "-n", "-v", "-f", "/dev/null")[0] == 0


@pytest.mark.parametrize("content", [b"\n", b"foo\r\nbar\r\n", b"foo\n\n", b"abc"])
def test_lines_of_a_file_of_patterns(capfdbinary: Capture, tree: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "patterns").write_bytes(content)
    check(capfdbinary, tree, "-n", "-f", str(tmp_path / "patterns"))


@pytest.mark.parametrize("options", [[], ["-F"], ["-e", "foo"], ["-e", "foo", "-F"]], ids=" ".join)
@pytest.mark.parametrize("pattern", ["abc\ndef", "abc\n", "\nfoo", "\n"])
def test_a_line_feed_in_a_pattern(capfdbinary: Capture, tree: Path, options: list[str], pattern: str) -> None:
    """It is refused without -U, and found with it."""
    assert check(capfdbinary, tree, *options, "-e", pattern) == (ERROR, b"")
    check(capfdbinary, tree, "-U", "-n", *options, "-e", pattern)
    check(capfdbinary, tree, "-U", "-o", *options, "-e", pattern)


def test_a_line_feed_in_the_first_argument(capfdbinary: Capture, tree: Path) -> None:
    assert check(capfdbinary, tree, "-U", "-n", "abc\ndef")[1] == b"text:3:abc\ntext:4:def\n"
    assert check(capfdbinary, tree, "abc\ndef")[0] == ERROR


@pytest.mark.parametrize("name", ["Han", "Katakana", "Hiragana", "Greek", "Grek", "scx=Han", "sc=Han", "Common", "Lo"])
def test_names_of_scripts(capfdbinary: Capture, tree: Path, name: str) -> None:
    r"""\p{Han} means the property Script, not Script_Extensions."""
    for pattern in (rf"\p{{{name}}}", rf"\P{{{name}}}", rf"[^\p{{{name}}}\n]+"):
        check(capfdbinary, tree, "-o", "-n", pattern)


@pytest.mark.parametrize(
    "paths", [("./text",), ("./",), (".",), ("sub/",), ("./sub",), ("text", "./sub/deep"), (".//sub//deep",)]
)
@pytest.mark.parametrize("options", [[], ["-l"], ["-g", "!deep"], ["-g", "/sub/*"], ["-g", "**/deep/*"]], ids=" ".join)
def test_paths_are_printed_as_they_are_given(
    capfdbinary: Capture, tree: Path, paths: tuple[str, ...], options: list[str]
) -> None:
    check(capfdbinary, tree, *options, "foo", paths=paths)


@pytest.mark.parametrize("options", [[], ["-q"], ["-l"], ["-c"], ["--files"]], ids=" ".join)
def test_no_file_is_searched(capfdbinary: Capture, tree: Path, options: list[str]) -> None:
    """That is an error, unless a PATH was given."""
    pattern = [] if "--files" in options else ["foo"]
    check(capfdbinary, tree, *options, "-g", "nothing", *pattern)
    check(capfdbinary, tree, *options, "-g", "nothing", *pattern, paths=("sub",))


@pytest.mark.parametrize("options", [[], ["-C1"], ["-q"], ["-m1"], ["-r", "[$0]"], ["-v"]], ids=" ".join)
def test_statistics_in_json(capfdbinary: Capture, tree: Path, options: list[str]) -> None:
    """All members that ripgrep has, so that programs with its types can read them."""
    arguments = ["--json", *options, "foo"]
    wanted, found = ripgrep(*arguments, cwd=tree)[1], ours(capfdbinary, tree, *arguments)[1]
    if version() == 13 and "-q" in options:
        return  # it prints nothing
    last = json.loads(found.splitlines()[-1])["data"]["stats"]
    last_wanted = json.loads(wanted.splitlines()[-1])["data"]["stats"]
    assert last.keys() == last_wanted.keys()
    assert last["matches"] == last_wanted["matches"]
    if version() >= 15 or "-r" not in options:  # with the text of replacements
        # The numbers of seconds in the messages have different lengths.
        assert abs(last["bytes_printed"] - last_wanted["bytes_printed"]) <= 10 * last["searches"]


def test_a_slow_line_is_reported_and_the_search_goes_on(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    slow = "a" * 400_000 + "\n"
    for name, content in {"a": "x9\n", "b": "x8\n" + slow + "x7\n", "c": "x6\n", "d": slow}.items():
        (tmp_path / "tree" / name).write_text(content)
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    for options in (["-j2"], ["-j1", "--sort=path"]):
        status = run(["grep", *options, r"(a|aa)+[!,]|x\d", str(tmp_path / "tree.gomp")])
        output, errors = capfd.readouterr()
        assert status == ERROR
        assert sorted(output.splitlines()) == ["a:x9", "b:x8", "c:x6"]
        assert [line.split(": ")[2] for line in sorted(errors.splitlines())] == ["b", "d"]
        assert "too many steps" in errors


def test_a_group_that_is_repeated_along_a_long_line(capfdbinary: Capture, tmp_path: Path) -> None:
    """PCRE2 needs more than 4 MiB of stack for it."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("1 ab, " * 500_000 + "\nfoo\n")
    (tmp_path / "tree" / "b").write_text("1 ab, " * 50 + "\n")
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    pattern = r"(\d \w+, ?){40,}"
    status = run(["grep", "--sort=path", "-c", pattern, str(tmp_path / "tree.gomp")])
    assert (status, capfdbinary.readouterr().out) == ripgrep("-c", pattern, cwd=tmp_path / "tree")


HAS_PCRE2 = subprocess.run([PROGRAM, "--pcre2-version"], capture_output=True, check=False).returncode == 0
PCRE2_PATTERNS = [r"(?<=foo )bar", r"foo(?=\()", r"foo(?! bar)", r"(\w)\1", r"(?<x>o)\k<x>", r"[^a]\s+", r"\h+"]
PCRE2_PATTERNS += [r"a\Kb", "^$", r"fo++", r"(?i)FOO|\x{3b1}", r"(?|(a)b|(d)e)", r"\Qfoo(\E", r"abc\v?", "[a&&b]o"]
PCRE2_PATTERNS += ["(", r"\1", r"(?x) f o [o #]"]


@pytest.mark.skipif(not HAS_PCRE2, reason="this ripgrep was built without PCRE2")
@pytest.mark.parametrize("options", [[], ["-o"], ["-w"], ["-x"], ["-U", "-o"], ["-S"], ["-c", "-v"]])
@pytest.mark.parametrize("pattern", PCRE2_PATTERNS)
def test_pcre2(capfdbinary: Capture, tree: Path, pattern: str, options: list[str]) -> None:
    check(capfdbinary, tree, "-P", "-n", *options, "-e", pattern)


@pytest.mark.skipif(not HAS_PCRE2, reason="this ripgrep was built without PCRE2")
@pytest.mark.parametrize("options", [["-e", "foo(?!;)", "-e", "abc$"], ["-F", "foo("], ["-r", "<$1$y>", r"(?<y>\w)\1"]])
def test_options_with_pcre2(capfdbinary: Capture, tree: Path, options: list[str]) -> None:
    check(capfdbinary, tree, "-P", "-n", *options)


def test_files_are_skipped_with_pcre2(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What a pattern requires is only taken from it if it means the same in ripgrep's other syntax."""
    (tmp_path / "tree").mkdir()
    for number in range(40):
        text = " ".join(f"word{number}x{n}" for n in range(3000))
        (tmp_path / "tree" / f"{number}").write_text(f"{text}\nneedle{number}\x0bend\n")
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    for pattern in (r"needle7\b", r"needle7(?!\d)", r"needle7\vend", r"(?x)needle7[\v #]"):
        assert run(["grep", "-c", "-P", pattern, str(tmp_path / "tree.gomp")]) == 0
        assert capfd.readouterr().out == "7:1\n"


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|a?)+[!,]", r"(a(?R)?)+[!,]", r"^(?=(a+))(\1a*)*[!,]", r"(?:(?:a{1000}){1000}){100}"]
)
def test_hostile_patterns_of_pcre2(capfd: pytest.CaptureFixture[str], tmp_path: Path, pattern: str) -> None:
    """They end in bounded time, and the other files are searched."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("a" * 100_000 + "?\n")
    (tmp_path / "tree" / "b").write_text("a,\na\n")
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    status = run(["grep", "-c", "-P", pattern, str(tmp_path / "tree.gomp")])
    output, errors = capfd.readouterr()
    assert status == ERROR or output
    assert len(errors.splitlines()) <= 1
    assert "b:" in output or "too large" in errors


CRLF = [["foo$"], ["-o", "foo.*"], ["-o", "^"], ["-o", "$"], ["-x", "foo"], ["-r", "X", "foo$"], ["-c", "-v", "foo$"]]
CRLF += [["-o", "[^a]$"], ["-l", "foo$"], ["-C1", "bar"], ["-o", r"\s"], ["--color=always", "foo"], [r"foo\r"]]
CRLF += [["-w", "foo"], ["-U", r"foo$\s+abc"], ["--heading", "-M5", "foo"], ["--vimgrep", "foo$"], ["-F", "foo"]]
CRLF += [["-P", r"\w+$", "-o"]]


@pytest.mark.parametrize("options", CRLF, ids=" ".join)
def test_lines_that_end_as_in_dos(capfdbinary: Capture, tree: Path, options: list[str]) -> None:
    if version() < (15 if "-r" in options else 14) or ("-P" in options and not HAS_PCRE2):
        pytest.skip("older versions take a carriage return for a part of the line in more cases")
    check(capfdbinary, tree, "--crlf", "-n", *options)
