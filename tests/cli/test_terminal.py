"""Behaviour that differs if output goes to a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gompfs.cli import grep, waiting
from gompfs.cli.application import run

HOSTILE_NAME = "a\x1b]0;owned\a\nb"


def on_terminal(directory: Path, *arguments: str | Path, stderr: int | None = None) -> tuple[int, bytes]:
    """Runs gompfs with stdout and stderr on one terminal. Returns the status and everything written there.

    With another `stderr`, messages go there, also that of a statistic that takes more than a second.
    """
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-P", "-m", "gompfs", *arguments]
    messages = terminal if stderr is None else stderr
    with subprocess.Popen(command, stdout=terminal, stderr=messages, env=environment, cwd=directory) as process:
        os.close(terminal)
        written = b""
        try:
            while piece := os.read(controller, 65536):
                written += piece
        except OSError:
            pass  # EIO: on Linux, the other end is closed
        os.close(controller)
    return process.returncode, written


def test_names_cannot_control_the_terminal(gompfs, tmp_path):
    root = tmp_path / "hostile"
    root.mkdir()
    (root / "red\x1b[31m\nline").touch()
    assert gompfs("pack", "--codec", "gompresso-bit", "-q", root, "hostile.gomp").status == 0
    status, written = on_terminal(tmp_path, "ls", "hostile.gomp")
    assert (status, written) == (0, b"red\\x1b[31m\\nline\r\n")
    assert gompfs("ls", "hostile.gomp").output == b"red\x1b[31m\nline\n"


@pytest.fixture
def hostile(gompfs, tmp_path):
    """An archive of a file whose name and words have control characters, C1 ones too, and bytes that are not UTF-8."""
    root = tmp_path / "hostile"
    root.mkdir()
    (root / HOSTILE_NAME).write_bytes(b"\x1b[2Jword \xc2\x9b1m other \xff\r\n")
    assert gompfs("pack", "--words=whitespace", "-q", root, "hostile.gomp").status == 0
    return "hostile.gomp"


@pytest.mark.parametrize(
    "arguments",
    [
        *(["wordcount"], ["inverted_index"], ["term_vector"], ["ranked_inverted_index"], ["sequence_count", "--n=2"]),
        *(["word/\x1b[2Jword"], ["wordcount", "--file", HOSTILE_NAME]),
    ],
)
def test_statistics_cannot_control_the_terminal(gompfs, hostile, tmp_path, arguments):
    """Paths and words are escaped as ls escapes names, but tabs and line feeds between fields and lines are not."""
    expected = gompfs("stats", hostile, *arguments).output
    assert b"\x1b" in expected
    escapes = ((b"\x1b", b"\\x1b"), (b"\a", b"\\x07"), (b"\xc2\x9b", b"\\x9b"), (b"\xff", b"\\xff"), (b"\n", b"\r\n"))
    for raw, escaped in escapes:
        expected = expected.replace(raw, escaped)
    assert on_terminal(tmp_path, "stats", hostile, *arguments, stderr=subprocess.DEVNULL) == (0, expected)


def test_lines_of_json_cannot_control_the_terminal(gompfs, hostile, tmp_path):
    arguments = ["stats", hostile, "wordcount", "--format", "jsonl"]
    status, written = on_terminal(tmp_path, *arguments, stderr=subprocess.DEVNULL)
    assert status == 0
    assert all(line.isprintable() for line in written.decode().splitlines())
    raw = gompfs(*arguments).output
    assert b"\xc2\x9b" in raw
    assert [*map(json.loads, written.splitlines())] == [*map(json.loads, raw.splitlines())]


def test_a_progress_bar_shows_names_without_control_characters(gompfs, archive, tmp_path):
    name = "a\x1b]0;owned\a[red].gomp"
    os.rename(archive, tmp_path / name)
    for command in (["verify", name], ["extract", name, "-C", "out"], ["pack", "out", name, "--force"]):
        status, written = on_terminal(tmp_path, *command)
        assert status == 0, command
        assert b"a\\x1b]0;owned\\x07[red].gomp" in written, command
        assert b"]0;owned\a" not in written, command
        assert b"\x1b]" not in written, command


def test_bench_draws_a_table(archive, tmp_path):
    status, written = on_terminal(tmp_path, "bench", "--seconds", "0", archive)
    assert status == 0
    assert "│".encode() in written
    assert b"MB/s" in written


def test_pack_draws_a_progress_bar_and_erases_it(tree, tmp_path):
    status, written = on_terminal(tmp_path, "pack", "--codec", "gompresso-bit", tree, "new.gomp")
    assert status == 0
    assert b"\x1b[" in written
    assert b"new.gomp: 9 entries, " in written.splitlines()[-1]
    quiet = on_terminal(tmp_path, "pack", "-q", "--force", "--codec", "gompresso-bit", tree, "new.gomp")
    assert quiet == (0, b"")


@pytest.mark.parametrize("is_file", [True, False])
def test_grep_shows_its_progress_and_erases_it(
    monkeypatch: pytest.MonkeyPatch, archive: Path, tmp_path: Path, is_file: bool
) -> None:
    """Not if the output goes to a pipe: a pager may draw on the terminal."""
    monkeypatch.setattr(grep, "_FIRST_SECONDS", 0.0)
    controller, terminal = pty.openpty()
    reader, writer = os.pipe()
    with (
        open(terminal, "w") as screen,
        open(tmp_path / "out", "w") as to_file,
        open(writer, "w") as to_pipe,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stderr", screen)
        patch.setattr(sys, "stdout", to_file if is_file else to_pipe)
        status = run(["grep", "no such line", str(archive)])
        screen.write("end")
    written = b""
    while not written.endswith(b"end"):
        written += os.read(controller, 65536)
    os.close(controller)
    os.close(reader)
    assert status == 1
    if is_file:
        assert b" files searched" in written
        assert written.endswith(b"\r\x1b[Kend")
    else:
        assert written == b"end"


def test_a_statistic_that_takes_long_shows_the_time_and_erases_it(words_archive, capfd, monkeypatch):
    """18 seconds of n-grams showed nothing."""
    from gompfs.cli import stats

    def slow(*arguments):
        time.sleep(0.3)
        return compute(*arguments)

    compute = stats.compute
    monkeypatch.setattr(stats, "compute", slow)
    monkeypatch.setattr(waiting, "_FIRST_SECONDS", 0.05)
    monkeypatch.setattr(waiting, "_UPDATE_SECONDS", 0.05)
    command = ["stats", str(words_archive), "sequence_count"]
    assert run(command) == 0
    quiet = capfd.readouterr()
    assert quiet.err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(command) == 0
    shown = capfd.readouterr()
    assert shown.out == quiet.out != ""
    assert shown.err.startswith("\r\x1b[Kcomputing sequence_count: 0 s")
    assert shown.err.endswith("\r\x1b[K")
    assert run(["stats", str(words_archive), "word/nowhere"]) == 1  # an error erases it too
    assert capfd.readouterr().err.rpartition("\r\x1b[K")[2].startswith("gompfs: ")
