"""Patterns that would take too much time or memory end with an error, or are searched for in a short time."""

from __future__ import annotations

import filecmp
import os
import random
import re
import signal
import string
import subprocess
import sys
import time
from itertools import starmap, zip_longest
from operator import eq
from pathlib import Path
from typing import IO

import pytest
import ripgrep
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import OptionError
from gompfs.model import ROOT_INO
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("limits")
    (root / "tree").mkdir()
    (root / "tree" / "short").write_text("a" * 40 + "\n")
    (root / "tree" / "long").write_text("a" * 1_000_000 + "\n" + "x" * 300_000 + "\n")
    (root / "tree" / "lines").write_text(("q" * 3000 + "\n") * 300)
    target = root / "tree.gomp"
    pack(target, root / "tree", codec=Codec.GOMPRESSO_TADOC)
    return target


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "pattern",
    [
        "(a*)*b",
        "(x+x+)+y",
        "x*y",
        "[ab]*[cd]",
        r"\w*[!,]",
        "a.*b.*c",
        "(?i)a*[bc]$",
        "(?:a?){60}b{60}",
        "([ab]+)+[!,]$",
    ],
)
def test_slow_patterns_without_a_match(archive: Path, pattern: str) -> None:
    assert run(["grep", "-e", pattern, str(archive)]) == 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a{65535}{65535}", "too large"),
        ("a" * (1 << 20) + "a", "more than 1 MiB"),
        ("a" * 1_000_000, "too large"),
        ("(" * 300 + ")" * 300, "nested too deeply"),
        ("[" * 300, "nested too deeply"),
        ("a" + "+" * 300, "too many repetition operators"),
        ("(a|aa)+[!,]", "too many steps"),
        ("[" + "~~".join(string.ascii_letters[:40]) + "]", "too large"),
        ("q*q*[rs]", "takes too long on a line"),
    ],
    ids=lambda value: value[:20],
)
def test_patterns_that_are_refused(capfd: Capture, tmp_path: Path, archive: Path, pattern: str, message: str) -> None:
    file = tmp_path / "pattern"
    file.write_text(pattern)
    assert run(["grep", "-f", str(file), str(archive)]) == 2
    errors = capfd.readouterr().err.splitlines()
    assert all(message in error for error in errors)
    assert len(errors) == 1 or all(re.search(r"tree\.gomp: (short|long|lines): ", error) for error in errors)


_CHILD = """
import re, sys
from gompfs.cli.application import run
status = run(sys.argv[1:])
print(re.search(r"VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())[1], file=sys.stderr)
sys.exit(status)
"""


def run_in_child(*arguments: object, output: int | IO[bytes] = subprocess.PIPE) -> tuple[int, bytes, str, int]:
    """Runs gompfs. Returns its status, its output, its messages, and the peak of its memory in MiB."""
    command = (sys.executable, "-P", "-c", _CHILD, *map(str, arguments))
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, check=False)
    *messages, peak = done.stderr.decode().splitlines()
    return done.returncode, done.stdout, "\n".join(messages), int(peak) >> 10


@pytest.mark.timeout(600)
def test_classes_do_not_multiply_literals(tmp_path: Path, archive: Path) -> None:
    """Each of these lines stands for 64 literals, all of them together for 60 MB: their automaton took several GB."""
    letters = random.Random(1)
    lines = ("[a-h][a-h]" + "".join(letters.choices(string.ascii_lowercase, k=64)) for _ in range(13_900))
    (tmp_path / "patterns").write_text("\n".join(lines))
    status, _, message, peak = run_in_child("grep", "-f", tmp_path / "patterns", archive)
    assert status == 2
    assert "too large" in message
    assert "\n" not in message
    assert peak < 600


@pytest.mark.timeout(600)
def test_much_output_of_many_files(tmp_path: Path) -> None:
    """What 40 files at once have to print is not all in memory."""
    (tmp_path / "tree").mkdir()
    for number in range(40):
        (tmp_path / "tree" / f"{number:02}").write_bytes((b"x" * 99 + b"\n") * 80_000 + b"%d\n" % number)
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    status, output, message, peak = run_in_child("grep", "-j2", "--sort", "path", "x", tmp_path / "tree.gomp")
    assert (status, message) == (0, "")
    assert output == b"".join((b"%02d:" % number + b"x" * 99 + b"\n") * 80_000 for number in range(40))
    assert peak < 500


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive beside its tree: files in which nearly everything matches, between small ones."""
    root = tmp_path_factory.mktemp("dense")
    (root / "tree").mkdir()
    files = {
        "a": b"x1\nb\n",
        "b": b"x y " * 8_000 + b"\n" + b"end x\n",
        "c": b"y\nx\n" * (1 << 19),
        "d": b"b\nx2\n",
        "e": b"x\n" * (9 << 20),
        "f": b"x3\n",
    }
    for name, content in files.items():
        (root / "tree" / name).write_bytes(content)
    pack(root / "tree.gomp", root / "tree")
    return root


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "options",
    [
        ["--vimgrep", "x", "a", "b", "d"],
        ["--vimgrep", "-U", r"x\sy", "b", "d"],
        ["-n", "x", "c", "d", "e", "f"],
        ["-no", "-C1", "x", "a", "b", "c", "d"],
        ["-Uno", r"x\n", "a", "c", "d"],
        ["-c", "-m3000000", "x"],
        ["-v", "nothing"],
        ["--json", "x", "a", "b", "d"],
    ],
    ids=" ".join,
)
def test_much_output_of_one_file(dense: Path, options: list[str]) -> None:
    """--vimgrep of one line of 150 kB took 14 GB."""
    position = next(index for index, option in enumerate(options) if not option.startswith("-")) + 1
    with (dense / "expected").open("wb") as expected, (dense / "found").open("wb") as found:
        command = [ripgrep.PROGRAM, "--no-config", "--sort=path", *options]
        subprocess.run(command, cwd=dense / "tree", stdin=subprocess.DEVNULL, stdout=expected, check=True)
        archive = [str(dense / "tree.gomp")]
        status, _, message, peak = run_in_child(
            "grep", "-j2", "--sort=path", *options[:position], *archive, *options[position:], output=found
        )
    assert (status, message) == (0, "")
    assert peak < 250
    if "--json" not in options:
        assert filecmp.cmp(dense / "found", dense / "expected", shallow=False)
        return
    with (dense / "found").open("rb") as found, (dense / "expected").open("rb") as expected:
        assert all(starmap(eq, zip_longest(map(without_times, found), map(without_times, expected))))


def without_times(line: bytes) -> bytes:
    return b"" if line.startswith(b'{"data":{"elapsed_total"') else re.sub(rb'"elapsed":{[^}]*}', b"", line)


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a file with many lines before a large hole."""
    root = tmp_path_factory.mktemp("sparse")
    (root / "tree").mkdir()
    with (root / "tree" / "sparse").open("wb") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(1_000_000)))
        file.truncate(900 << 20)
    pack(root / "tree.gomp", root / "tree")
    return root / "tree.gomp"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("options", [[], ["-c"], ["-v"]], ids=" ".join)
def test_a_hole_ends_a_search(sparse: Path, options: list[str]) -> None:
    """The line that a hole makes was read, and searched for its end, over and over again."""
    status, output, _, peak = run_in_child("grep", *options, "line 9999", sparse)
    lines = (f"line {number}" for number in range(1_000_000))
    found = [line for line in lines if line.startswith("line 9999") != ("-v" in options)]
    note = 'WARNING: stopped searching binary file after match (found "\\0" byte around offset 11888890)'
    wanted = "" if "-c" in options else "".join(f"sparse:{line}\n" for line in found) + f"sparse: {note}\n"
    assert (status, output.decode()) == (1 if "-c" in options else 0, wanted)
    assert peak < 250


_INTERRUPTIBLE = """
import signal, sys
from gompfs.cli.application import run
signal.signal(signal.SIGINT, signal.default_int_handler)  # commands in the process of the tests have changed it
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.timeout(600)
def test_ctrl_c_ends_a_slow_search(archive: Path) -> None:
    command = subprocess.Popen(
        (sys.executable, "-P", "-c", _INTERRUPTIBLE, "grep", "q*q*[rs]", archive), stderr=subprocess.PIPE, text=True
    )
    while time_of(command.pid) < 1:  # then it has begun to search
        assert command.poll() is None
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    assert command.communicate(timeout=60)[1] == "gompfs: interrupted\n"
    assert command.returncode == 130


def time_of(process: int) -> float:
    """Returns the CPU time of a process so far, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def test_errors(capfd: Capture, tmp_path: Path, archive: Path) -> None:
    name = str(archive)
    for arguments in (["x", str(tmp_path / "none")], ["x", name, "none"], ["x"], [], ["-g", "[", "x", name]):
        assert run(["grep", *arguments]) == 2
        assert capfd.readouterr().err.count("\n") == 1
    assert run(["grep", "-t", "nope", "x", str(archive)]) == 2


def test_too_many_paths(archive: Path) -> None:
    """The same directory a million times took memory for all files of each, and then the index was called damaged."""
    with Archive(archive, engine=select_engine("cpu")) as opened:
        with pytest.raises(OptionError, match="name the same files too often"):
            ArchiveSearch(opened, SearchQuery((b"x",)), [(b"x", ROOT_INO)] * 1_200_000)
        with pytest.raises(OptionError, match="name the same files too often"):
            ArchiveSearch(opened, SearchQuery((b"x",), max_depth=1), [(b"x" * 1_000_000, ROOT_INO)] * 50)
        often = ArchiveSearch(opened, SearchQuery((b"x",), count=True), [(b"x", ROOT_INO)] * 100)
        assert b"".join(often) == b"x/long:1\n" * 100


def test_directories_that_are_too_deep(tmp_path: Path, capfd: Capture) -> None:
    """The index was called damaged, although `verify` found no damage."""
    (tmp_path / "tree").mkdir()
    directory = os.open(tmp_path / "tree", os.O_RDONLY)
    for depth in range(420):  # each path is written out: more than 16 MiB together
        os.mkdir("d" * 255, dir_fd=directory)
        inner = os.open("d" * 255, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
        if depth < 2:
            with open(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=directory), "w") as file:
                file.write("needle\n")
    os.close(directory)
    archive = tmp_path / "deep.gomp"
    pack(archive, tmp_path / "tree")
    assert run(["verify", str(archive)]) == 0
    assert run(["grep", "needle", str(archive)]) == 2
    assert "the paths of all directories are too long together" in capfd.readouterr().err
    assert run(["grep", "-c", "needle", "-d", "2", str(archive)]) == 0
    assert capfd.readouterr().out == "d" * 255 + "/file:1\n"
