"""`gompfs umount` on what it does not unmount, and mounts over what is there already."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tree_helpers import pack

from gompfs.cli.application import run

if TYPE_CHECKING:
    from conftest import MountArchive

NOBODY = 65534

Command = Callable[..., subprocess.CompletedProcess[str]]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_text("text\n")
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    return tmp_path / "tree.gomp"


@pytest.fixture
def other_mount(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "other"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], capture_output=True, check=False)


@needs_root
@pytest.mark.parametrize("options", [[], ["--lazy"], ["--force"]])
def test_umount_of_another_file_system(gompfs_command: Command, other_mount: Path, options: list[str]) -> None:
    """It was unmounted."""
    done = gompfs_command("umount", *options, other_mount)
    wanted = f"gompfs: {other_mount}: a file system of type tmpfs is mounted here, not an archive; use umount\n"
    assert (done.returncode, done.stderr) == (1, wanted)
    assert os.path.ismount(other_mount)


@needs_root
def test_umount_of_a_bind_mount(gompfs_command: Command, archive: Path, mount: MountArchive, tmp_path: Path) -> None:
    mounted = mount(archive)
    (tmp_path / "bound").mkdir()
    subprocess.run(["mount", "--bind", mounted.path, tmp_path / "bound"], check=True)
    assert gompfs_command("umount", tmp_path / "bound").returncode == 0
    assert (mounted / "file").read_text() == "text\n"


def as_nobody(*arguments: str) -> tuple[int, str]:
    """The exit status of a command of another user, and what it prints."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        status = 99
        try:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            sys.stdout = sys.stderr = io.TextIOWrapper(os.fdopen(writer, "wb", buffering=0), write_through=True)
            status = run(arguments)
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader) as output:
        printed = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), printed


@needs_root
@pytest.mark.parametrize("options", [[], ["--lazy"], ["--force"]])
@pytest.mark.parametrize("allow_other", [True, False])
def test_umount_of_another_users_mount(
    archive: Path, mount: MountArchive, options: list[str], allow_other: bool
) -> None:
    """The reason was `entry for not found in /etc/mtab`."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # whose parents every user may enter
        os.chmod(directory, 0o755)
        place = Path(directory) / "mount"
        shown = mount(archive, *(["allow_other"] if allow_other else []), path=place)
        assert run(["umount", "/"]) == 1  # imports what another user may not read
        import gompfs.mount.system.fusermount  # noqa: F401

        status, printed = as_nobody("umount", *options, str(place))
        assert (status, printed) == (1, f"gompfs: {place}: this is a mount of root; only root can unmount it\n")
        assert (place / "file").read_text() == "text\n"
        shown.clean_up()


def test_remount(gompfs_command: Command, archive: Path, tmp_path: Path) -> None:
    done = gompfs_command("mount", "-o", "remount,allow_other", archive, tmp_path / "mount")
    assert done.returncode == 2
    assert done.stderr == "gompfs: gompfs cannot remount; unmount, then mount with the new options\n"


def test_a_directory_that_is_not_empty(
    gompfs_command: Command,
    archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Its files are hidden, as with mount(8), and a terminal is told so."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "hidden").touch()
    (tmp_path / "empty").mkdir()
    notice = f"gompfs: {tmp_path / 'full'}: is not empty; its files are hidden until it is unmounted\n"
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        for name, printed in (("full", notice if is_terminal else ""), ("empty", ""), ("new", "")):
            place = tmp_path / name
            assert run(["mount", str(archive), str(place)]) == 0
            assert (os.listdir(place), capfd.readouterr().err) == (["file"], printed), name
            assert gompfs_command("umount", place).returncode == 0
    assert os.listdir(tmp_path / "full") == ["hidden"]
