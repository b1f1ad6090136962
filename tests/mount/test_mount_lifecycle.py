"""Mounting, unmounting, and the messages when either fails."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_helpers import add, pack

from gompfs.errors import MountError
from gompfs.mount.system.mount_table import mount_at
from gompfs.mount.system.umount import is_stale


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "tree/d").mkdir(parents=True)
    (tmp_path / "tree/d/text").write_bytes(b"some text\n" * 10_000)
    (tmp_path / "tree/noise").write_bytes(os.urandom(200_000))
    pack(tmp_path / "a.gomp", tmp_path / "tree", block_size=16 << 10)
    return tmp_path / "a.gomp"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_unmount(mount, archive: Path, number: signal.Signals) -> None:
    mounted = mount(archive)
    assert (mounted / "d/text").stat().st_size == 100_000
    assert mounted.stop(number) == 0
    assert not os.path.ismount(mounted.path)
    assert os.listdir(mounted.path) == []
    assert mounted.log == ""


def test_a_signal_while_files_are_open(mount, archive: Path) -> None:
    mounted = mount(archive)
    descriptor = os.open(mounted / "noise", os.O_RDONLY | os.O_DIRECT)
    assert len(os.pread(descriptor, 4096, 0)) == 4096
    assert mounted.stop() == 0
    assert not os.path.ismount(mounted.path)
    with pytest.raises(OSError, match=r"not connected|aborted"):
        os.pread(descriptor, 4096, 4096)
    with contextlib.suppress(OSError):  # closing fails with the same error
        os.close(descriptor)
    assert mounted.log == ""


def test_a_signal_while_many_read(mount, archive: Path) -> None:
    mounted = mount(archive)
    script = f"while cat '{mounted.path}'/d/text '{mounted.path}'/noise >/dev/null 2>&1; do :; done"
    readers = [subprocess.Popen(["sh", "-c", script]) for _ in range(3)]
    time.sleep(0.3)
    assert mounted.stop() == 0
    for reader in readers:
        reader.wait(timeout=60)
    assert not os.path.ismount(mounted.path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A mount point. Anything that a failed test leaves mounted there is detached."""
    path = tmp_path / "place"
    path.mkdir()
    yield path
    subprocess.run(["umount", "-l", path], capture_output=True, check=False)


@pytest.mark.timeout(600)
def test_a_signal_while_mounting(archive: Path, place: Path) -> None:
    """At whatever moment the signal comes, it leaves no mount without a daemon."""
    command = [sys.executable, "-P", "-m", "gompfs", "mount", "-f", archive, place]
    for number in range(6):
        with subprocess.Popen(command, stderr=subprocess.PIPE) as server:
            # Before the mount exists, a signal just ends the process. Wait for the mount, however slow the machine is.
            while not os.path.ismount(place):
                assert server.poll() is None
                time.sleep(0.0005)  # otherwise the server would share its core with this loop
            time.sleep(number / 1000)
            server.terminate()
            assert server.wait() == 0
            assert server.stderr is not None
            assert server.stderr.read() == b""
        assert not os.path.ismount(place)
        assert os.listdir(place) == []


def test_umount_command(mount, archive: Path, gompfs_command) -> None:
    mounted = mount(archive)
    done = gompfs_command("umount", mounted.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert mounted.wait() == 0
    assert not os.path.ismount(mounted.path)


def test_umount_of_a_mount_in_use(mount, archive: Path, gompfs_command) -> None:
    mounted = mount(archive)
    with open(mounted / "noise", "rb") as file:
        done = gompfs_command("umount", mounted.path)
        assert done.returncode == 1
        assert done.stderr == f"gompfs: {mounted.path}: target is busy\n"
        assert os.path.ismount(mounted.path)
        assert gompfs_command("umount", "--lazy", mounted.path).returncode == 0
        assert not os.path.ismount(mounted.path)
        assert len(file.read()) == 200_000
        assert mounted.process.poll() is None
    assert mounted.wait() == 0


def test_umount_clears_up_a_dead_mount(mount, archive: Path, gompfs_command) -> None:
    mounted = mount(archive)
    mounted.process.kill()
    mounted.process.wait()
    assert is_stale(str(mounted.path))
    with pytest.raises(OSError, match="not connected"):
        os.listdir(mounted.path)
    assert gompfs_command("umount", mounted.path).returncode == 0
    assert not is_stale(str(mounted.path))
    assert os.listdir(mounted.path) == []
    again = mount(archive, path=mounted.path)
    assert sorted(os.listdir(again.path)) == ["d", "noise"]


@pytest.mark.parametrize("arguments", [[], ["missing.gomp"]])
def test_mount_clears_up_a_dead_mount(mount, archive: Path, gompfs_command, arguments: list[str]) -> None:
    """Also if the dead mount is still in use, or if the new mount then fails."""
    mounted = mount(archive)
    descriptor = os.open(mounted / "noise", os.O_RDONLY)
    mounted.process.kill()
    mounted.process.wait()
    done = gompfs_command("mount", *(arguments or [archive]), mounted.path)
    note, *others = done.stderr.splitlines()
    assert note == f"gompfs: {mounted.path}: the daemon of an earlier mount had died; unmounted it"
    assert done.returncode == len(others) == len(arguments)
    assert sorted(os.listdir(mounted.path)) == ([] if arguments else ["d", "noise"])
    with pytest.raises(OSError, match="not connected"):
        os.pread(descriptor, 1, 0)
    with contextlib.suppress(OSError):  # closing fails with the same error
        os.close(descriptor)
    if not arguments:
        assert gompfs_command("umount", mounted.path).returncode == 0
    assert not os.path.ismount(mounted.path)


def test_automatic_unmount_after_a_crash(mount, archive: Path) -> None:
    mounted = mount(archive, "auto_unmount")
    mounted.process.kill()
    mounted.process.wait()
    deadline = time.monotonic() + 60
    while mount_at(str(mounted.path)) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert os.listdir(mounted.path) == []


def test_the_daemon_outlives_its_command(archive: Path, place: Path, gompfs_command) -> None:
    done = gompfs_command("mount", archive, place)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (place / "d/text").read_bytes() == b"some text\n" * 10_000
    assert gompfs_command("umount", place).returncode == 0
    assert os.listdir(place) == []


@pytest.mark.parametrize("foreground", [[], ["-f"]])
def test_mount_errors(archive: Path, tmp_path: Path, gompfs_command, foreground: list[str]) -> None:
    place = tmp_path / "place"
    place.mkdir()

    def error_of(*arguments: str | Path) -> str:
        done = gompfs_command("mount", *foreground, *arguments)
        assert done.returncode != 0
        assert done.stderr.count("\n") == 1
        assert not os.path.ismount(place)
        return done.stderr

    missing = tmp_path / "missing.gomp"
    assert error_of(missing, place) == f"gompfs: {missing}: No such file or directory\n"
    assert "not a directory" in error_of(archive, archive)
    assert "does not exist" in error_of(archive, archive / "below")
    assert "frobnicate" in error_of(archive, place, "-o", "frobnicate")
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    error = error_of(archive, place)
    assert str(archive) in error
    assert "the file is truncated" in error


def test_a_mount_over_a_mount_is_refused(mount, archive: Path, gompfs_command) -> None:
    mounted = mount(archive)
    done = gompfs_command("mount", archive, mounted.path)
    assert (done.returncode, done.stderr) == (
        1,
        f"gompfs: {mounted.path}: something is mounted here already\n",
    )


def test_odd_mount_points_and_archive_names(mount, archive: Path, tmp_path: Path, gompfs_command) -> None:
    """Spaces, commas, backslashes, quotes and bytes that are not UTF-8 in the paths of mount point and archive."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd, \\ \"'\xff\n=x"))
    odd.mkdir()
    archive.rename(odd / "a,b \\.gomp")
    mounted = mount(odd / "a,b \\.gomp", path=odd / "mo unt,")
    assert sorted(os.listdir(mounted.path)) == ["d", "noise"]
    done = gompfs_command("umount", mounted.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert mounted.wait() == 0


def test_relative_paths_and_links_to_the_mount_point(mount, archive: Path, tmp_path: Path, gompfs_command) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    mounted = mount(archive, path=tmp_path / "link")
    assert sorted(os.listdir(tmp_path / "real")) == ["d", "noise"]
    assert gompfs_command("umount", tmp_path / "link").returncode == 0
    assert mounted.wait() == 0


def test_the_line_in_proc_mounts(mount, archive: Path) -> None:
    for options, source in (([], str(archive)), (["fsname=corpus"], "corpus")):
        mounted = mount(archive, *options)
        (line,) = (line.split() for line in Path("/proc/mounts").read_text().splitlines() if str(mounted.path) in line)
        assert (line[0], line[2]) == (source, "fuse.gompfs")
        assert "ro" in line[3].split(",")


def test_adding_to_a_mounted_archive(mount, archive: Path, tmp_path: Path) -> None:
    """The mount keeps showing the generation that it was mounted with."""
    mounted = mount(archive)
    (tmp_path / "more").write_text("more")
    add(archive, tmp_path / "more")
    assert sorted(os.listdir(mounted.path)) == ["d", "noise"]
    assert (mounted / "noise").read_bytes() == (tmp_path / "tree/noise").read_bytes()
    assert sorted(os.listdir(mount(archive).path)) == ["d", "more", "noise"]


def test_a_torn_archive_mounts_with_a_warning(mount, archive: Path) -> None:
    with open(archive, "ab") as file:
        file.write(os.urandom(1000))
    mounted = mount(archive)
    assert sorted(os.listdir(mounted.path)) == ["d", "noise"]
    assert mounted.stop() == 0
    assert "this is generation 1; the 1000 bytes after it are ignored" in mounted.log


def test_unmounting_nothing(tmp_path: Path) -> None:
    from gompfs.mount.system.umount import unmount

    with pytest.raises(MountError, match="nothing is mounted here"):
        unmount(str(tmp_path))


def test_ending_after_statistics_logs_nothing(mount, archive: Path) -> None:
    mounted = mount(archive)
    assert (mounted / "stats/wordcount").read_bytes()
    assert mounted.stop() == 0
    assert mounted.log == ""
