"""Disks that fail or are full: a failing command leaves the archive as it was, and its message says what failed."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tree_helpers import list_archive, pack

from gompfs.archive import Archive

SOURCE = Path(__file__).with_name("failing_calls.c")
SERVER = Path(__file__).with_name("command_forks.py")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "failing_calls.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tree, an archive of part of it in a folder of its own, and a folder for temporary files."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tree/noise").write_bytes(random.Random(1).randbytes(3_000_000))
    (tmp_path / "tree/text").write_text("to be or not to be " * 1000)
    pack(tmp_path / "work/a.gomp", tmp_path / "tree/text")
    return tmp_path


@pytest.fixture(scope="module")
def server(shim: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs commands in forks, in which calls can fail."""
    with subprocess.Popen(
        [sys.executable, "-P", SERVER],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.communicate()


@pytest.fixture
def run(folder: Path, server: subprocess.Popen[str]) -> Run:
    """Runs a command in which the n-th call of a kind fails."""

    def start(
        command: list[str | Path], call: str = "none", at: int = 1, code: int = errno.EIO, path: str = "work"
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "TMPDIR": str(folder / "tmp"),
            "FAIL_CALL": call,
            "FAIL_AT": str(at),
            "FAIL_ERRNO": str(code),
            "FAIL_PATH": path,
            "FAIL_LOG": str(folder / "failed"),
        }
        arguments = [*map(str, command)]
        printed, errors = folder / "printed", folder / "errors"
        request = {"arguments": arguments, "environment": environment, "output": str(printed), "errors": str(errors)}
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, printed.read_text(), errors.read_text())

    return start


def command_of(name: str, folder: Path) -> list[str | Path]:
    archive = folder / "work/a.gomp"
    return {
        "pack": ["pack", "-q", "-f", "--codec", "gompresso-bit", folder / "tree", archive],
        "pack new": ["pack", "-q", "--codec", "gompresso-bit", folder / "tree", folder / "work/b.gomp"],
        "add": ["add", "-q", "--codec", "gompresso-bit", folder / "tree", archive],
        "repair": ["repair", archive],
    }[name]


MAX_CALLS = 4  # later writes behave as the first ones do
# For each command: a call, part of its path, and the minimum number of such calls.
CALLS = [
    ("pack", "write", "", 3),
    ("pack", "fsync", "", 1),
    ("pack", "link", ".tmp", 2),
    ("pack", "rename", "a.gomp", 1),
    ("pack new", "write", "", 3),
    ("pack new", "fsync", "", 1),
    ("pack new", "link", "b.gomp", 2),
    ("add", "write", "", 3),
    ("add", "fsync", "", 2),
    ("repair", "fsync", "", 2),
    ("repair", "ftruncate", "", 1),
    ("repair", "link", ".cut", 2),
]


@pytest.mark.parametrize(("name", "call", "path", "least"), CALLS, ids=[f"{name}-{call}" for name, call, *_ in CALLS])
def test_the_archive_is_as_it_was(folder: Path, run: Run, name: str, call: str, path: str, least: int) -> None:
    code = errno.ENOSPC if call == "write" else errno.EIO
    archive = folder / "work/a.gomp"
    whole, at = archive.read_bytes(), 0
    if name == "repair":
        with open(archive, "ab") as file:
            file.write(random.Random(2).randbytes(5000))
    before = archive.read_bytes()
    while True:
        at += 1
        (folder / "failed").unlink(missing_ok=True)
        done = run(command_of(name, folder), call, at, code, path or "work")
        if not (folder / "failed").exists():
            break  # the command makes no more such calls
        assert done.returncode == 1, (at, done.stderr)
        assert done.stderr.count("\n") == 1
        assert os.strerror(code) in done.stderr
        assert str(folder / "work") in done.stderr
        left = sorted(os.listdir(folder / "work"))
        if name == "repair" and left == ["a.gomp", "a.gomp.cut"]:
            assert (folder / "work/a.gomp.cut").read_bytes() == before[len(whole) :]
            assert archive.read_bytes() in (before, whole), at
            (folder / "work/a.gomp.cut").unlink()
            archive.write_bytes(before)
        else:
            assert left == ["a.gomp"]
            assert archive.read_bytes() == before, at
        assert os.listdir(folder / "tmp") == []
        if at == MAX_CALLS:
            return
    assert at > least
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["pack", "pack new"])
def test_a_folder_that_cannot_be_synced(folder: Path, run: Run, name: str) -> None:
    """The archive exists then, but may be lost in a system crash: a warning, not a failure."""
    done = run(command_of(name, folder), "fsync-folder", 1)
    assert done.returncode == 0
    assert done.stderr == (
        f"gompfs: warning: {folder}/work: Input/output error: the new file may not survive a crash of the system\n"
    )
    with Archive(folder / "work" / ("b.gomp" if name == "pack new" else "a.gomp")) as archive:
        assert set(list_archive(archive)) == {b"", b"noise", b"text"}


@pytest.mark.parametrize("name", ["pack", "add"])
def test_a_full_folder_for_temporary_files(folder: Path, run: Run, name: str) -> None:
    """The message named the archive, or was an internal error. It must name $TMPDIR."""
    archive = folder / "work/a.gomp"
    before = archive.read_bytes()
    for at in (1, 2):
        (folder / "failed").unlink(missing_ok=True)
        done = run(command_of(name, folder), "write", at, errno.ENOSPC, "tmp/gompfs-index-")
        if not (folder / "failed").exists():
            break
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert f"{folder}/tmp: No space left on device" in done.stderr
        assert archive.read_bytes() == before
    assert at > 1 or done.returncode == 1


@pytest.mark.parametrize("size", [1000, 10_000_000])
def test_a_file_that_cannot_be_read(folder: Path, run: Run, size: int) -> None:
    """--skip-unreadable leaves the file out, even if part of a large file was read before the error."""
    (folder / "tree/bad").write_bytes(b"words " * (size // 6))
    os.link(folder / "tree/bad", folder / "tree/bad-too")
    target = folder / "work/b.gomp"
    at = 1 if size == 1000 else 6
    command = ["pack", "-q", folder / "tree", target]
    failed = run(command, "read", at, errno.EIO, "tree/bad")
    assert (failed.returncode, failed.stderr) == (1, f"gompfs: {folder}/tree/bad: cannot read: Input/output error\n")
    assert not target.exists()
    done = run([*command, "--skip-unreadable"], "read", at, errno.EIO, "tree/bad")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "gompfs: warning: bad: cannot read: Input/output error; left out",
        "gompfs: warning: bad-too: it is another name of a file that cannot be read; left out",
    ]
    with Archive(target) as archive:
        assert set(list_archive(archive)) == {b"", b"noise", b"text"}
    assert run(["verify", "-q", target]).returncode == 0
    assert "words" not in run(["stats", target, "wordcount"]).stdout
