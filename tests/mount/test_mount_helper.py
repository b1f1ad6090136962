"""mount(8), /etc/fstab and mount.fuse3 with the mount helper. Each test has a mount namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tree_helpers import PACKAGE_PARENT, pack

from gompfs.cli.mount_helper import mount

AUTOMOUNT = Path(__file__).with_name("automount.py")
InNamespace = Callable[[str], subprocess.CompletedProcess[str]]


def can_have_a_namespace() -> bool:
    """Returns whether this process is root and may make a mount namespace."""
    command = ["unshare", "--mount", "--propagation", "private", "true"]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_root = pytest.mark.skipif(not can_have_a_namespace(), reason="needs root, and namespaces of mounts")


def write_script(path: Path, module: str, function: str) -> None:
    """Writes the script that pip makes from an entry point."""
    path.write_text(
        f"#!{sys.executable} -P\nimport sys\nsys.path.insert(0, {PACKAGE_PARENT!r})\n"
        f"from {module} import {function}\n{function}()\n"
    )
    path.chmod(0o755)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with an archive a.gomp and an empty directory m."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("content\n")
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    (tmp_path / "m").mkdir()
    return tmp_path


@pytest.fixture
def in_namespace(place: Path) -> InNamespace:
    """Runs a shell script in a mount namespace in which /sbin contains the helper. Its mounts end with the script."""
    sbin = place / "sbin"
    sbin.mkdir()
    write_script(place / "mount.gompfs", "gompfs.cli.mount_helper", "main")
    write_script(place / "gompfs", "gompfs.cli", "main")
    for name in ("mount.gompfs", "mount.fuse.gompfs"):
        (sbin / name).symlink_to(place / "mount.gompfs")
    (sbin / "gompfs").symlink_to(place / "gompfs")  # mount.fuse3 looks for `gompfs` in the PATH that mount(8) sets
    for program in ("mount.fuse3", "mount.fuse"):
        if found := shutil.which(program):
            shutil.copy(found, sbin / program)

    def run(script: str) -> subprocess.CompletedProcess[str]:
        whole = f'mount --bind sbin "$(realpath /sbin)"\n{script}'
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", whole]
        environment = {"PATH": "/usr/bin:/bin"}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=environment, cwd=place
        )

    return run


@needs_root
@pytest.mark.parametrize(
    "command",
    [
        "mount -t gompfs a.gomp m",
        "mount -t gompfs -o rw,nosuid,relatime,x-systemd.automount,nofail,cache_size=64M {place}/a.gomp m",
        "mount -t fuse.gompfs a.gomp m",
        "mount -t fuse3 gompfs#{place}/a.gomp m",
        "mount -t fuse3 mount.gompfs#{place}/a.gomp m -o umask=022",
    ],
)
def test_mount(in_namespace: InNamespace, place: Path, command: str) -> None:
    if "fuse3" in command and not shutil.which("mount.fuse3"):
        pytest.skip("mount.fuse3 is not installed")
    look = "cat m/file\nfindmnt -rn -o SOURCE,FSTYPE,OPTIONS m\numount m\nls m"
    done = in_namespace(f"{command.format(place=place)}\n{look}")
    assert (done.returncode, done.stderr) == (0, "")
    content, mounted = done.stdout.splitlines()
    assert content == "content"
    assert mounted.startswith(f"{place}/a.gomp fuse.gompfs ro,")


@needs_root
def test_fstab(in_namespace: InNamespace, place: Path) -> None:
    """An fstab entry with a space in its path and options of all kinds is mounted by name, and by `mount -a`."""
    (place / "a.gomp").rename(place / "a b.gomp")
    (place / "fstab").write_text(
        f"{place}/a\\040b.gomp {place}/m gompfs ro,allow_other,noauto,nofail,_netdev,subdir=.,x-systemd.automount 0 0\n"
        f"{place}/a\\040b.gomp {place}/n gompfs defaults,stats=off 0 0\n"
    )
    (place / "n").mkdir()
    script = "mount -T fstab {0}/m\ncat m/file\nmount -T fstab -a\ncat n/file\nls m n\numount m n"
    done = in_namespace(script.format(place))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["content", "content", "m:", "file", "n:", "file"]


@needs_root
def test_several_archives(in_namespace: InNamespace, place: Path) -> None:
    """Several archives in /etc/fstab and on the command line of mount(8).

    Later archives win, colons in names are escaped, and a second `mount -a` does nothing.
    """
    for name in ("b", "c:d"):
        (place / name).mkdir()
        (place / name / "file").write_text(f"content of {name}\n")
        (place / name / f"only-{name}").touch()
        pack(place / f"{name}.gomp", place / name)
    (place / "fstab").write_text(
        f"{place}/a.gomp:{place}/b.gomp {place}/m gompfs ro,union,nofail,x-systemd.automount 0 0\n"
        f"{place}/a.gomp:{place}/c\\134:d.gomp {place}/n gompfs stats=off,subdir_per_archive 0 0\n"
    )
    (place / "n").mkdir()
    script = """
        mount -T fstab -a
        mount -T fstab -a
        findmnt -rn -t fuse.gompfs -o SOURCE m
        findmnt -rn n | wc -l
        cat m/file
        ls m n
        cat n/c:d/file
        umount m n
        mount -t gompfs -o union b.gomp:a.gomp m
        cat m/file
        umount m
    """
    done = in_namespace(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{place}/a.gomp:{place}/b.gomp", "1", "content of b", "m:", "file", "only-b", "", "n:", "a", "c:d",
        "content of c:d", "content",
    ]  # fmt: skip


@needs_root
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("mount -t gompfs missing.gomp m", "No such file or directory"),
        ("mount -t gompfs a.gomp m -o frobnicate", "unknown mount option 'frobnicate'"),
        ("mount -t gompfs sbin/mount.gompfs m", "not a gompfs archive"),
        ("mount -t gompfs a.gomp:a.gomp m", "No such file or directory"),
        ("mount -t gompfs a.gomp:missing.gomp m -o union", "missing.gomp: No such file or directory"),
        ("mount -t gompfs a.gomp: m -o union", "an archive name is empty"),
        ("mount -t gompfs a.gomp:a.gomp m -o subdir_per_archive", "two archives have the name 'a'"),
    ],
)
def test_mount_errors(in_namespace: InNamespace, command: str, reason: str) -> None:
    done = in_namespace(f"{command} || echo status $?\nls m")
    (line,) = done.stderr.splitlines()
    assert line.startswith("gompfs: ")
    assert reason in line
    assert done.stdout in ("status 1\n", "status 32\n")


@needs_root
@pytest.mark.skipif("autofs" not in Path("/proc/filesystems").read_text(), reason="the kernel has no autofs")
@pytest.mark.parametrize("api", ["low", "high"])
def test_an_automount(in_namespace: InNamespace, api: str) -> None:
    """The daemon must not access its own mount point: the access would wait for the daemon itself."""
    automount = f"{sys.executable} {AUTOMOUNT} m mount -t gompfs a.gomp m -o api={api}"
    done = in_namespace(f"{automount}\nfindmnt -rn -o FSTYPE m\numount m")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["content", "autofs", "fuse.gompfs"]


def test_arguments_of_the_helper(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    archive, directory = str(place / "a.gomp"), str(place / "m")
    assert mount([archive, directory, "-f", "-o", "rw"]) == 0
    for wrong in ([archive], [], [archive, directory, directory], [archive, directory, "-x"]):
        assert mount(wrong) == 1
        assert capfd.readouterr().err == (
            "gompfs: usage: mount.gompfs ARCHIVE[:ARCHIVE...] DIRECTORY [-fnsv] [-o OPTIONS]\n"
        )
    assert not os.path.ismount(directory)
