"""Behaviour that differs if output goes to a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import gompfs as gompfs_package
from gompfs.cli import grep_progress
from gompfs.cli.application import run


def on_terminal(directory: Path, *arguments: str | Path) -> tuple[int, bytes]:
    """Runs gompfs with stdout and stderr on one terminal. Returns the status and everything written."""
    controller, terminal = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(gompfs_package.__file__).resolve().parents[1]),
        "TERM": "xterm",
        "COLUMNS": "120",
    }
    command = [sys.executable, "-P", "-m", "gompfs", *arguments]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment, cwd=directory) as process:
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
    assert gompfs("pack", "--no-stats", "-q", root, "hostile.gomp").status == 0
    status, written = on_terminal(tmp_path, "ls", "hostile.gomp")
    assert (status, written) == (0, b"red\\x1b[31m\\nline\r\n")
    assert gompfs("ls", "hostile.gomp").output == b"red\x1b[31m\nline\n"


def test_bench_draws_a_table(archive, tmp_path):
    status, written = on_terminal(tmp_path, "bench", "--seconds", "0", archive)
    assert status == 0
    assert "│".encode() in written
    assert b"MB/s" in written


def test_pack_draws_a_progress_bar_and_erases_it(tree, tmp_path):
    status, written = on_terminal(tmp_path, "pack", "--no-stats", tree, "new.gomp")
    assert status == 0
    assert b"\x1b[" in written
    assert b"new.gomp: 9 entries, " in written.splitlines()[-1]
    quiet = on_terminal(tmp_path, "pack", "-q", "--force", "--no-stats", tree, "new.gomp")
    assert quiet == (0, b"")


@pytest.mark.parametrize("is_file", [True, False])
def test_grep_shows_its_progress_and_erases_it(
    monkeypatch: pytest.MonkeyPatch, archive: Path, tmp_path: Path, is_file: bool
) -> None:
    """Not if the output goes to a pipe: a pager may draw on the terminal."""
    monkeypatch.setattr(grep_progress, "_FIRST_SECONDS", 0.0)
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
