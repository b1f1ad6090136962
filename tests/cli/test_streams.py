"""Closed and full standard streams, FIFOs, standard input as an archive, and the wording of usage errors."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest


def in_shell(directory: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of sh in which $gompfs is the command."""
    environment = {**os.environ, "gompfs": f"{sys.executable} -P -m gompfs"}
    return subprocess.run(
        ["sh", "-c", line], cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", ["ls tree.gomp", "ls --json tree.gomp", "info tree.gomp", "cat tree.gomp z.txt"])
def test_closed_standard_output(archive, command):
    """A closed stdout caused an internal error (AttributeError)."""
    done = in_shell(archive.parent, f"$gompfs {command} >&-")
    assert done.returncode == 1
    assert done.stderr.startswith("gompfs: ")
    assert done.stderr.endswith("Bad file descriptor\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["ls tree.gomp", "info tree.gomp", "cat tree.gomp z.txt", "--version"])
def test_full_standard_output(archive, command):
    done = in_shell(archive.parent, f"$gompfs {command} >/dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("gompfs: ")
    assert done.stderr.endswith("No space left on device\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        "grep -c last tree.gomp",
        "grep -n last tree.gomp",
        "grep --files tree.gomp",
        "grep --json last tree.gomp",
        "grep --stats nowhere tree.gomp",
        "grep --type-list",
    ],
)
def test_full_standard_output_of_grep(archive, command):
    """Output that is written last made the interpreter print an error of its own, with status 120."""
    done = in_shell(archive.parent, f"$gompfs {command} >/dev/full")
    assert (done.returncode, done.stderr) == (2, "gompfs: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("ls tree.gomp", 1),
        ("ls tree.gomp z.txt nowhere", 1),
        ("cat tree.gomp z.txt", 1),
        ("stats words.gomp wordcount", 1),
        ("stats words.gomp info --json", 1),
        ("verify tree.gomp", 1),
        ("pack --force tree new.gomp", 1),
        ("pack --help", 1),
        ("ps", 1),
        ("grep -c last tree.gomp", 2),
    ],
)
def test_full_standard_streams(archive, words_archive, command, status):
    """There is nobody to tell, but the exit status remains: it was 120 for some."""
    (archive.parent / "words.gomp").symlink_to(words_archive)
    one = in_shell(archive.parent, f"$gompfs {command} >/dev/full")
    assert one.stderr.splitlines()[-1] == "gompfs: standard output: No space left on device"
    assert len(one.stderr.splitlines()) == 1 + ("nowhere" in command)
    assert one.returncode == status
    assert in_shell(archive.parent, f"$gompfs {command} >/dev/full 2>&1").returncode == status


@pytest.mark.parametrize(
    ("command", "status"), [("ls nowhere.gomp", 1), ("ls --nonsense", 2), ("ls tree.gomp", 0), ("grep x y.gomp", 2)]
)
def test_messages_that_cannot_be_written(archive, command, status):
    assert in_shell(archive.parent, f"$gompfs {command} 2>/dev/full").returncode == status


@pytest.mark.parametrize(
    "command", ["ls nowhere.gomp", "extract tree.gomp nowhere", "cat tree.gomp z.txt", "ls -R t*p"]
)
def test_nobody_reads_the_output(archive, command):
    line = f"($gompfs {command}; echo $? >status) 2>&1 | true; cat status"
    assert in_shell(archive.parent, line).stdout == "141\n"


def test_messages_do_not_get_into_an_archive(archive, tree):
    """If all standard streams are closed, an archive that is opened must not become the target of messages."""
    done = in_shell(archive.parent, "$gompfs pack tree new.gomp <&- >&- 2>&-; $gompfs verify new.gomp")
    assert done.returncode == 0
    assert "no damage found" in done.stdout
    assert in_shell(archive.parent, "$gompfs ls nowhere.gomp 2>&-").returncode == 1


def test_a_directory_is_no_archive(gompfs, tree):
    assert gompfs("ls", "tree").error_line == "tree: a directory, not an archive"


@pytest.mark.parametrize("command", ["ls", "info", "verify", "extract", "bench", "stats"])
def test_a_fifo_is_no_archive(gompfs, tmp_path, command):
    """Every command waited until some process wrote to the FIFO."""
    os.mkfifo(tmp_path / "fifo")
    result = gompfs(command, "fifo")
    assert (result.status, result.error_line) == (1, "fifo: not a regular file")


@pytest.mark.parametrize("command", ["grep -a '' large.gomp", "cat large.gomp large"])
def test_a_write_that_a_signal_ends_early(tmp_path, command):
    """With PYTHONUNBUFFERED, the rest of a piece of output was lost when the process was stopped and went on."""
    lines = b"".join(b"%d\n" % number for number in range(1 << 18))
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "large").write_bytes(lines)
    assert in_shell(tmp_path, "$gompfs pack --codec gompresso-bit tree large.gomp").returncode == 0
    arguments = shlex.split(f"{command} --color never" if command.startswith("grep") else command)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "gompfs", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
    )
    with process, process.stdout as output:
        full = fcntl.fcntl(output, fcntl.F_GETPIPE_SZ)
        while int.from_bytes(fcntl.ioctl(output, termios.FIONREAD, bytes(4)), sys.byteorder) < full:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        found = output.read()
    assert (process.returncode, found.replace(b"large:", b"")) == (0, lines)


def test_standard_input_is_no_archive(gompfs, archive):
    result = gompfs("ls", "-", stdin=archive.read_bytes())
    assert result.status == 2
    assert "an archive cannot be read from standard input" in result.error_line
    (archive.parent / "-").write_bytes(archive.read_bytes())
    assert gompfs("ls", "./-").status == 0


def test_messages_have_paths_as_they_were_typed(gompfs, archive):
    """Messages showed absolute paths."""
    assert gompfs("cat", "tree.gomp", "y").error_line == "tree.gomp: y: no such file or directory"
    assert gompfs("ls", "../" + archive.parent.name + "/tree.gomp", "y").error_line.startswith("../")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("setup",), "Give one of --system and --user. See"),
        (("bench", "--seconds", "x", "a.gomp"), "'x' is not a number of at least 0."),
        (("bench", "--seconds", "-1", "a.gomp"), "'-1' is not a number of at least 0."),
        (("pack", "--level", "0", "tree", "a.gomp"), "'0' is not a whole number from 1 to 8."),
        (("pack", "--level", "9", "tree", "a.gomp"), "'9' is not a whole number from 1 to 8."),
        (("grep", "-j", "1025", "x", "a.gomp"), "'1025' is not a whole number from 0 to 1024."),
        (("verify", "-j", "-1", "a.gomp"), "'-1' is not a whole number from 0 to 1024."),
    ],
)
def test_usage_errors_are_in_words(gompfs, arguments, words):
    """Usage errors contained tab characters, and ranges written as 1<=x<=9."""
    result = gompfs(*arguments)
    assert result.status == 2
    assert words in result.error_line
    assert "\t" not in result.error_line


@pytest.mark.parametrize("jobs", ["0", "1024"])
def test_the_number_of_threads(gompfs, archive, tree, jobs):
    """Every command that decodes or encodes has the option, with the same limits."""
    for command in (("cat", "-j", jobs, archive, "z.txt"), ("grep", "-j", jobs, "--files", archive)):
        assert gompfs(*command).status == 0
    assert gompfs("verify", "-q", "-j", jobs, archive).status == 0
    assert gompfs("extract", "-q", "-j", jobs, "-C", "out", archive, "z.txt").status == 0
    assert gompfs("pack", "-q", "-f", "-j", jobs, "tree", "again.gomp").status == 0
    assert gompfs("add", "-q", "-j", jobs, "tree", "again.gomp").status == 0
    assert gompfs("repack", "-q", "-j", jobs, "again.gomp", "new.gomp").status == 0
