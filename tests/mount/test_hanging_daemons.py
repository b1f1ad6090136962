"""Mounts whose daemons hang: no gompfs command waits for such a daemon."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gompfs.mount.fuse.kernel_mount import KernelMount
from gompfs.mount.system.mount_table import mount_at, resolve_mountpoint
from gompfs.mount.system.umount import DaemonState, daemon_state, unmount
from gompfs.options import MountOptions

MAX_SECONDS = 20  # 2 s on an idle machine; commands with the defect never ended


@pytest.fixture
def stopped(mount: Callable, archive: Path) -> Iterator:
    """A mount whose daemon is stopped by SIGSTOP."""
    mounted = mount(archive, "follow")
    assert daemon_state(str(mounted.path)) is DaemonState.SERVING
    time.sleep(1.1)  # with follow, the kernel caches the attributes of the root for this long
    mounted.process.send_signal(signal.SIGSTOP)
    yield mounted
    mounted.process.send_signal(signal.SIGCONT)


@pytest.fixture
def timed(gompfs_command: Callable) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a gompfs command and checks that it ends soon."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        begin = time.monotonic()
        done = gompfs_command(*arguments)
        assert time.monotonic() - begin < MAX_SECONDS
        return done

    return run


needs_abort = pytest.mark.skipif(
    os.geteuid() != 0 and not os.path.ismount("/sys/fs/fuse/connections"),
    reason="needs root, or fusectl mounted at /sys/fs/fuse/connections",
)


@pytest.mark.parametrize("options", [[], ["--lazy"], pytest.param(["--force"], marks=needs_abort)])
def test_umount_does_not_ask_the_daemon(stopped, timed, options: list[str]) -> None:
    """umount called statvfs and then hung in state D until the daemon was killed."""
    done = timed("umount", *options, stopped.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not os.path.ismount(stopped.path)


@needs_abort
def test_umount_of_a_hanging_mount_that_is_in_use(stopped, timed) -> None:
    """The first umount says what to do. With --force, waiting programs get an error."""
    reader = subprocess.Popen(["cat", stopped / "file"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    done = timed("umount", stopped.path)
    assert done.returncode == 1
    assert done.stderr == (
        f"gompfs: {stopped.path}: target is busy, and its daemon does not answer; use --lazy or --force\n"
    )
    assert timed("umount", "--force", stopped.path).returncode == 0
    assert reader.wait(timeout=60) == 1
    assert reader.stderr is not None
    assert "file" in reader.stderr.read()
    reader.stderr.close()


def test_umount_by_other_paths(stopped, timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A symlink or relative path is resolved to the mount point without access to the mount point itself."""
    (tmp_path / "link").symlink_to(stopped.path.name)
    (tmp_path / "again").symlink_to("link")
    monkeypatch.chdir(tmp_path)
    assert resolve_mountpoint("again/") == str(stopped.path)
    assert resolve_mountpoint(f"./{stopped.path.name}") == str(stopped.path)
    assert timed("umount", "again").returncode == 0
    assert not os.path.ismount(stopped.path)


def test_mount_over_a_hanging_mount(stopped, timed, archive: Path) -> None:
    """mount checked whether a dead daemon had left a mount there, and waited forever."""
    done = timed("mount", archive, stopped.path)
    assert done.returncode == 1
    assert done.stderr == (
        f"gompfs: {stopped.path}: the daemon of the mount here does not answer; "
        "gompfs umount --lazy detaches the mount\n"
    )


def test_ps_shows_a_mount_that_does_not_answer(stopped, mount, timed, archive: Path, tmp_path: Path) -> None:
    """ps shows "no answer" for the hanging mount, and the correct state of other mounts."""
    other = mount(archive, path=tmp_path / "other")
    done = timed("ps")
    assert (done.returncode, done.stderr) == (0, "")
    states = {line.split()[1]: line for line in done.stdout.splitlines()[1:]}
    assert states[str(stopped.path)].endswith("  no answer")
    assert states[str(other.path)].endswith("  serving")


class HangingDaemon:
    """A daemon that reads all requests but answers only the first.

    A process with an unanswered request cannot be killed.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        self.mount = KernelMount(str(path), "hanging.gomp", MountOptions())
        self.thread = threading.Thread(target=self.take_requests)
        self.thread.start()

    def take_requests(self) -> None:
        """Reads requests until the mount is gone."""
        unique = struct.unpack_from("<Q", os.read(self.mount.device, 1 << 20), 8)[0]
        init_out = struct.pack("<IIIIHHII", 7, 31, 0, 0, 0, 0, 1 << 16, 1).ljust(64, b"\0")
        os.write(self.mount.device, struct.pack("<IiQ", 16 + len(init_out), 0, unique) + init_out)
        with contextlib.suppress(OSError):
            while True:
                os.read(self.mount.device, 1 << 20)

    def close(self) -> None:
        """Unmounts, which ends all requests."""
        unmount(str(self.path), force=True)
        self.thread.join()
        self.mount.close()


@needs_abort
@pytest.mark.parametrize("command", ["ps", "top --count 2 --interval 1", "top --count 2 --interval 1 PATH"])
def test_ps_and_top_end_while_a_daemon_hangs_at_their_request(tmp_path: Path, command: str) -> None:
    """ps and top asked in threads, and a process cannot end while one of its threads is in a system call that hangs."""
    with contextlib.closing(HangingDaemon(tmp_path / "hanging")) as daemon:
        arguments = [str(daemon.path) if argument == "PATH" else argument for argument in command.split()]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gompfs", *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        output, _ = process.communicate(timeout=MAX_SECONDS)
        assert process.returncode == 0
        lines = [line for line in output.splitlines() if str(daemon.path) in line]
        assert len(lines) == (1 if command == "ps" else 2)
        assert all("no answer" in line for line in lines)


def test_top_shows_a_mount_that_does_not_answer(stopped, mount, timed, archive: Path, tmp_path: Path) -> None:
    """top accessed the paths given on its command line, and hung."""
    other = mount(archive, path=tmp_path / "other")
    (tmp_path / "link").symlink_to(stopped.path.name)
    done = timed("top", "--count", "2", "--interval", "1", tmp_path / "link", other.path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split("  ")[1].strip() for line in lines if line.startswith(f"{stopped.path} ")] == ["no answer"] * 2
    assert [line.split()[1] for line in lines if line.startswith(f"{other.path} ")] == ["cpu"] * 2


def test_top_continues_with_a_mount_that_answers_again(stopped) -> None:
    """top has at most one child waiting per hanging mount, so that the number of its children does not grow."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "gompfs", "top", "--interval", "1", stopped.path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # a shell starts background processes with SIGINT ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        for _ in range(2):
            next(line for line in process.stdout if b"no answer" in line)
        assert len(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()) <= 1
        stopped.process.send_signal(signal.SIGCONT)
        next(line for line in process.stdout if b" cpu " in line)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=MAX_SECONDS) == 130


def test_umount_of_a_killed_daemon_that_is_in_use(mount, timed, archive: Path) -> None:
    mounted = mount(archive)
    descriptor = os.open(mounted / "file", os.O_RDONLY)
    mounted.process.kill()
    mounted.process.wait()
    assert timed("umount", mounted.path).returncode == 0
    assert mount_at(str(mounted.path)) is None
    with contextlib.suppress(OSError):  # there is no daemon to answer the close
        os.close(descriptor)


def test_a_mount_hidden_by_another_mount(mount, archive: Path, tmp_path: Path) -> None:
    """While another mount covers it, a mount point is not reported as a mount."""
    (tmp_path / "outer/inner").mkdir(parents=True)
    inner = mount(archive, path=tmp_path / "outer/inner")
    assert mount_at(str(inner.path)) is not None
    outer = mount(archive, path=tmp_path / "outer")
    assert mount_at(str(inner.path)) is None
    outer.stop()
    assert mount_at(str(inner.path)) is not None


def test_a_missing_mount_point_is_made_and_removed(archive: Path, tmp_path: Path, gompfs_command) -> None:
    """mount creates the mount point's directory, but not its parents, and umount removes it.

    A directory that existed before stays.
    """
    made = tmp_path / "made"
    assert gompfs_command("mount", archive, made).returncode == 0
    assert (made / "file").read_text() == "content\n"
    assert gompfs_command("umount", made).returncode == 0
    deadline = time.monotonic() + 60
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
