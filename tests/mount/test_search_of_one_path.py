"""`gompfs grep` on one path of a mount, however it is named: the daemon searches, with the output of ripgrep."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tree_helpers import pack

from gompfs.cli.application import run
from gompfs.codec import Codec

if TYPE_CHECKING:
    from conftest import Mount, MountArchive

Capture = pytest.CaptureFixture[bytes]

ERROR = 2


@pytest.fixture
def shown(tmp_path: Path, mount: MountArchive) -> Mount:
    for name in ("one", "two"):
        (tmp_path / "tree" / "dir" / name).mkdir(parents=True)
        (tmp_path / "tree" / "dir" / name / "file").write_text("foo\nbar\nfoo bar\n")
    (tmp_path / "tree" / "dir" / "link").symlink_to("one/file")
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    return mount(tmp_path / "tree.gomp")


def searched(capture: Capture, *arguments: str | Path) -> tuple[int, bytes]:
    """The exit status of a search for foo, and what it prints. Errors are printed too."""
    status = run(["grep", "-n", "--sort=path", "foo", *map(str, arguments)])
    captured = capture.readouterr()
    return status, captured.out + captured.err


def found_by_ripgrep(*arguments: str | Path) -> tuple[int, bytes]:
    command = ["rg", "--no-config", "-uu", "--sort=path", "-n", "foo", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.usefixtures("no_archive")
@pytest.mark.parametrize("directory", ["/", "dir", "dir/two"])
@pytest.mark.parametrize("path", ["dir/one/file", "dir/two/../one/file", "dir/link", "dir/one", "dir"])
def test_a_path_in_a_mount(
    capfdbinary: Capture, shown: Mount, monkeypatch: pytest.MonkeyPatch, directory: str, path: str
) -> None:
    """Absolute, and relative to a directory outside the mount or in it. A file was never searched by the daemon."""
    wanted = found_by_ripgrep(shown / path)
    assert searched(capfdbinary, shown / path) == wanted
    monkeypatch.chdir(shown.path / directory)
    relative = os.path.relpath(shown / path)
    assert searched(capfdbinary, relative) == found_by_ripgrep(relative)


@pytest.mark.usefixtures("no_archive")
def test_symlinks_from_outside(capfdbinary: Capture, shown: Mount, tmp_path: Path) -> None:
    for name, target in (("to-file", "dir/one/file"), ("to-directory", "dir"), ("to-mount", "")):
        (tmp_path / name).symlink_to(shown / target)
        assert searched(capfdbinary, tmp_path / name) == found_by_ripgrep(tmp_path / name), name
    assert searched(capfdbinary, tmp_path / "to-mount" / "dir" / "link")[0] == 0


@pytest.fixture
def bound(shown: Mount, tmp_path: Path) -> Iterator[list[Path]]:
    """Bind mounts of a file, of a directory, and of all."""
    (tmp_path / "bound-file").touch()
    bound = [(tmp_path / "bound-file", "dir/one/file"), (tmp_path / "bound-dir", "dir"), (tmp_path / "bound-all", "")]
    try:
        for target, source in bound:
            if source != "dir/one/file":
                target.mkdir()
            subprocess.run(["mount", "--bind", shown / source, target], check=True)
        yield [target for target, _ in bound]
    finally:
        for target, _ in bound:
            subprocess.run(["umount", "-l", target], capture_output=True, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to bind")
def test_bind_mounts(capfdbinary: Capture, shown: Mount, bound: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon searches, and so does the command itself, with the same output."""
    paths = [*bound, bound[1] / "one", bound[1] / "one" / "file"]
    for path in paths:
        assert (run(["grep", "-n", "--sort=path", "--engine=cpu", "foo", str(path)]), capfdbinary.readouterr().out) == (
            found_by_ripgrep(path)
        ), path
    monkeypatch.setattr("gompfs.cli.grep.opened", None)
    for path in paths:
        assert searched(capfdbinary, path) == found_by_ripgrep(path), path
    assert shown.process.poll() is None


def test_a_path_that_does_not_exist(capfdbinary: Capture, shown: Mount) -> None:
    status, message = searched(capfdbinary, shown / "dir" / "nowhere")
    assert status == ERROR
    assert message == f"gompfs: {shown / 'dir' / 'nowhere'}: No such file or directory\n".encode()
