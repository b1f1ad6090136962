"""Fixtures for real mounts. Each mount is served by a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tree_helpers import pack

BLOCK_SIZE = 16 << 10


class Mount:
    """An archive that `gompfs mount -f` serves at `path`. Once the server has ended, `log` is what it logged."""

    def __init__(self, archive: Path | str, path: Path, *options: str) -> None:
        self.path = path
        self.log = ""
        self._log_file = path.parent / f"{path.name}.log"
        path.mkdir(exist_ok=True)
        command = [sys.executable, "-P", "-m", "gompfs", "mount", "-f", archive, path]
        for option in options:
            command += ["-o", option]
        with open(self._log_file, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + 60
        while not os.path.ismount(os.path.realpath(path)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"no mount: {self.logged()}")
            time.sleep(0.005)
        os.stat(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def logged(self) -> str:
        """Returns what the server has logged so far."""
        return self._log_file.read_text()

    def wait(self) -> int:
        """Waits for the server to end by itself, and returns its exit status."""
        status = self.process.wait(timeout=60)
        self.log = self.logged()
        return status

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal to the server, waits for its end and returns the exit status."""
        self.process.send_signal(number)
        return self.wait()

    def clean_up(self) -> None:
        """Ends the server and detaches the mount, whatever state they are in."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        subprocess.run(["umount", "-l", self.path], capture_output=True, check=False)


MountArchive = Callable[..., Mount]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[MountArchive]:
    """Mounts an archive, by default at a new mount point."""
    mounts: list[Mount] = []

    def make(archive: Path | str, *options: str, path: Path | None = None) -> Mount:
        place = path or tmp_path / f"mount-{len(mounts)}"
        mounts.append(Mount(archive, place, *options))
        return mounts[-1]

    yield make
    for mounted in mounts:
        mounted.clean_up()


@pytest.fixture(scope="session")
def mount_type() -> type[Mount]:
    """The class Mount, for mounts that several tests share."""
    return Mount


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of a small file. Modules whose tests only read have one of their own."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("content\n")
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    return tmp_path / "a.gomp"


@pytest.fixture(scope="module")
def mounted(archive: Path) -> Iterator[Path]:
    """The module's archive, mounted once for all its tests."""
    served = Mount(archive, archive.parent / "mounted")
    yield served.path
    served.clean_up()


@pytest.fixture(scope="session")
def odd_archive(shared_odd_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of the odd tree."""
    target = tmp_path_factory.mktemp("mount") / "odd.gomp"
    pack(target, shared_odd_tree, block_size=BLOCK_SIZE)
    return target


@pytest.fixture(scope="session")
def odd_mount(odd_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The archive of the odd tree, mounted once for all tests that only read."""
    mounted = Mount(odd_archive, tmp_path_factory.mktemp("mount") / "odd")
    yield mounted.path
    mounted.clean_up()


@pytest.fixture
def gompfs_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `gompfs ARGUMENTS...`."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "gompfs", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture
def no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command does not open archives, so only the daemon can search."""

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the archive was opened")

    monkeypatch.setattr("gompfs.cli.grep.opened", opened)
