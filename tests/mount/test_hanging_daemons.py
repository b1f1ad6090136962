"""Mounts whose daemons hang: no command of gompfs waits for such a daemon."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tree_helpers import pack

from gompfs.mount.mount_table import mount_at, resolve_mountpoint
from gompfs.mount.umount import DaemonState, daemon_state

MAX_SECONDS = 20  # 2 on a machine that does nothing else; it never ended


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("content\n")
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    return tmp_path / "a.gomp"


@pytest.fixture
def stopped(mount: Callable, archive: Path) -> Iterator:
    """A mount whose daemon is stopped."""
    mounted = mount(archive, "follow")
    assert daemon_state(str(mounted.path)) is DaemonState.SERVING
    time.sleep(1.5)  # so long the kernel answers for the root by itself, with follow
    mounted.process.send_signal(signal.SIGSTOP)
    yield mounted
    mounted.process.send_signal(signal.SIGCONT)


@pytest.fixture
def timed(gompfs_command: Callable) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command of gompfs, which must end soon."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        begin = time.monotonic()
        done = gompfs_command(*arguments)
        assert time.monotonic() - begin < MAX_SECONDS
        return done

    return run


@pytest.mark.parametrize("options", [[], ["--lazy"], ["--force"]])
def test_umount_does_not_ask_the_daemon(stopped, timed, options: list[str]) -> None:
    """It asked with statvfs, and stood in state D until somebody killed the daemon."""
    done = timed("umount", *options, stopped.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not os.path.ismount(stopped.path)


def test_umount_of_a_hanging_mount_that_is_in_use(stopped, timed) -> None:
    """The first umount says what to do; with --force, programs that wait get an error."""
    reader = subprocess.Popen(["cat", stopped / "file"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    done = timed("umount", stopped.path)
    assert done.returncode == 1
    assert done.stderr == (
        f"gompfs: {stopped.path}: target is busy, and its daemon does not answer; --lazy or --force unmounts it\n"
    )
    assert timed("umount", "--force", stopped.path).returncode == 0
    assert reader.wait(timeout=20) == 1
    assert reader.stderr is not None
    assert "file" in reader.stderr.read()
    reader.stderr.close()


def test_umount_by_other_paths(stopped, timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A symlink and a relative path lead to the mount point, which is not looked at."""
    (tmp_path / "link").symlink_to(stopped.path.name)
    (tmp_path / "again").symlink_to("link")
    monkeypatch.chdir(tmp_path)
    assert resolve_mountpoint("again/") == str(stopped.path)
    assert resolve_mountpoint(f"./{stopped.path.name}") == str(stopped.path)
    assert timed("umount", "again").returncode == 0
    assert not os.path.ismount(stopped.path)


def test_mount_over_a_hanging_mount(stopped, timed, archive: Path) -> None:
    """Looking for a dead daemon, it waited for ever."""
    done = timed("mount", archive, stopped.path)
    assert done.returncode == 1
    assert done.stderr == (
        f"gompfs: {stopped.path}: a mount is here whose daemon does not answer; gompfs umount --lazy detaches it\n"
    )


def test_umount_of_a_killed_daemon_that_is_in_use(mount, timed, archive: Path) -> None:
    mounted = mount(archive)
    descriptor = os.open(mounted / "file", os.O_RDONLY)
    mounted.process.kill()
    mounted.process.wait()
    assert timed("umount", mounted.path).returncode == 0
    assert mount_at(str(mounted.path)) is None
    with contextlib.suppress(OSError):  # there is no daemon to tell
        os.close(descriptor)


def test_a_mount_that_another_one_hides(mount, archive: Path, tmp_path: Path) -> None:
    """Its directory is not the root of a mount as long as it is hidden."""
    (tmp_path / "outer/inner").mkdir(parents=True)
    inner = mount(archive, path=tmp_path / "outer/inner")
    assert mount_at(str(inner.path)) is not None
    outer = mount(archive, path=tmp_path / "outer")
    assert mount_at(str(inner.path)) is None
    outer.stop()
    assert mount_at(str(inner.path)) is not None


def test_a_missing_mount_point_is_made_and_removed(archive: Path, tmp_path: Path, gompfs_command) -> None:
    """One that was there stays; one directory is made, not those above it."""
    made = tmp_path / "made"
    assert gompfs_command("mount", archive, made).returncode == 0
    assert (made / "file").read_text() == "content\n"
    assert gompfs_command("umount", made).returncode == 0
    deadline = time.monotonic() + 20
    while made.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not made.exists()
    assert gompfs_command("mount", tmp_path / "missing.gomp", made).returncode == 1
    assert not made.exists()
    done = gompfs_command("mount", archive, made / "below")
    assert done.returncode == 1
    assert done.stderr == f"gompfs: {made / 'below'}: the directory of the mount point does not exist\n"
    done = gompfs_command("mount", archive, archive)
    assert done.stderr == f"gompfs: {archive}: the mount point is not a directory\n"
