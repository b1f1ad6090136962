"""How a mount reaches the kernel: through mount(2) or fusermount3; only api=high uses libfuse."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_mount_helper import needs_root
from tree_helpers import pack

# Simulates libfuse 2 installed next to libfuse 3: mfusepy finds "fuse", which lacks the functions of libfuse 3.
OTHER_LIBRARY = "import ctypes.util; ctypes.util.find_library = lambda name: 'libc.so.6'"
NO_LIBRARY = """
import ctypes, ctypes.util
class NoFuse(ctypes.CDLL):
    def __init__(self, name, *arguments, **options):
        if name and "fuse" in name:
            raise OSError(f"{name}: cannot open shared object file: No such file or directory")
        super().__init__(name, *arguments, **options)
ctypes.CDLL = NoFuse
ctypes.util.find_library = lambda name: None
"""
MAIN = "import sys; from gompfs.cli.application import run; sys.exit(run())"
IN_NAMESPACE = """
mount -t tmpfs none /mnt
mkdir -m 777 /mnt/mine /mnt/m /mnt/devices
cp "$ARCHIVE" /mnt/a.gomp
chmod 644 /mnt/a.gomp
chown 65534 /mnt/m
mknod -m 666 /mnt/fuse c 10 229
mount --bind /mnt/fuse /dev/fuse
cd /mnt/mine
user() {
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+dac_read_search --ambient-caps=+dac_read_search \
        "$PYTHON" -P -m gompfs "$@"
}
root() {
    "$PYTHON" -P -m gompfs "$@"
}
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "place"
    path.mkdir()
    yield path
    subprocess.run(["umount", "-l", path], capture_output=True, check=False)


@pytest.fixture
def in_namespace(archive: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs a shell script in a mount namespace, with the functions `user` and `root` that run gompfs."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", IN_NAMESPACE + script]
        variables = {"PYTHON": sys.executable, "ARCHIVE": str(archive), "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=100, check=False, env={**os.environ, **variables}
        )

    return run


def run_after(prelude: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs gompfs in a process that executes `prelude` first."""
    command = [sys.executable, "-P", "-c", f"{prelude}\n{MAIN}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("api", ["low", "high"])
def test_a_mount_where_another_libfuse_is_installed_too(archive: Path, place: Path, api: str) -> None:
    """Mounting failed with `libfuse.so.2: undefined symbol: fuse_session_mount`."""
    done = run_after(OTHER_LIBRARY, "mount", "-o", f"api={api}", archive, place)
    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "file").read_text() == "content\n"


def test_a_mount_without_libfuse(archive: Path, place: Path) -> None:
    done = run_after(NO_LIBRARY, "mount", archive, place)
    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "file").read_text() == "content\n"


def test_the_high_level_interface_says_that_libfuse_is_missing(archive: Path, place: Path) -> None:
    done = run_after(NO_LIBRARY, "mount", "-o", "api=high", archive, place)
    assert done.returncode == 1
    assert done.stderr.startswith(f"gompfs: {place}: api=high needs libfuse 3 (Debian, Ubuntu: apt-get install fuse3)")
    assert done.stderr.count("\n") == 1


def test_the_default_loads_no_libfuse() -> None:
    script = "import sys, gompfs.mount.fuse.session; print('mfusepy' in sys.modules)"
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@needs_root
def test_a_user_mounts_and_unmounts(in_namespace) -> None:
    """A user mounts by fusermount3, with names that must be escaped for it. The mount looks like one of libfuse."""
    done = in_namespace(
        r"""
        cp /mnt/a.gomp '/mnt/mine/a,b \.gomp'
        user mount 'a,b \.gomp' /mnt/m
        grep /mnt/m /proc/mounts
        user umount /mnt/m
        grep -c /mnt/m /proc/mounts || true
        user mount --union /mnt/a.gomp 'a,b \.gomp' made
        findmnt -no FSTYPE /mnt/mine/made
        user umount /mnt/mine/made
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    mounted, *others = done.stdout.splitlines()
    source, _, file_system, options, *_ = mounted.split()
    assert source.replace("\\134", "\\").replace("\\040", " ") == "/mnt/mine/a,b \\.gomp"
    assert file_system == "fuse.gompfs"
    assert options == "ro,nosuid,nodev,relatime,user_id=65534,group_id=65534"
    assert others == ["0", "fuse.gompfs"]


@needs_root
@pytest.mark.parametrize("api", ["low", "high"])
def test_a_user_mounts_without_programs(in_namespace, tmp_path: Path, api: str) -> None:
    """fusermount3 gets the option noexec."""
    script = tmp_path / "tree/script"
    script.write_text("#!/bin/sh\necho executed\n")
    script.chmod(0o755)
    pack(tmp_path / "a.gomp", tmp_path / "tree", force=True)
    done = in_namespace(
        f"""
        user mount -o noexec,api={api} /mnt/a.gomp /mnt/m
        grep -o noexec /proc/mounts
        setpriv --reuid=65534 --regid=65534 --clear-groups /mnt/m/script || echo status $?
        user umount /mnt/m
        user mount -o noexec,exec,api={api} /mnt/a.gomp /mnt/m
        setpriv --reuid=65534 --regid=65534 --clear-groups /mnt/m/script
        user umount /mnt/m
        """
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["noexec", "status 126", "executed"]), done.stderr


@needs_root
def test_a_user_unmounts_automatically(in_namespace) -> None:
    """After a crash, the fusermount3 process that mounted also unmounts."""
    done = in_namespace(
        """
        user mount -o auto_unmount /mnt/a.gomp /mnt/m
        grep -c /mnt/m /proc/mounts
        metrics=$(setpriv --reuid=65534 --regid=65534 --clear-groups cat /mnt/m/.gompfs/stats/metrics)
        kill -9 $(echo "$metrics" | sed -nE 's/^gompfs_info.*[{,]pid="([0-9]+)".*/\\1/p')
        for _ in $(seq 300); do
            grep -q /mnt/m /proc/mounts || break
            sleep 0.1
        done
        grep -c /mnt/m /proc/mounts || true
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n0\n", "")


NO_FUSERMOUNT = "mount --bind /dev/null $(command -v fusermount3)"
WITHOUT_ADMIN = "setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin $PYTHON -P -m gompfs"
HIDE_DEVICE = """
mount -t tmpfs none /mnt/devices
for name in null urandom zero; do
    touch /mnt/devices/$name
    mount --bind /dev/$name /mnt/devices/$name
done
mount --move /mnt/devices /dev
"""


@needs_root
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"{HIDE_DEVICE} root mount /mnt/a.gomp /mnt/m", "/dev/fuse: it does not exist"),
        (f"{HIDE_DEVICE} user mount /mnt/a.gomp /mnt/m", "fusermount3: fuse device not found"),
        ("chmod 600 /mnt/fuse; user mount /mnt/a.gomp /mnt/m", "failed to open /dev/fuse: Permission denied"),
        ("chown 0 /mnt/m; chmod 755 /mnt/m; user mount /mnt/a.gomp /mnt/m", "user has no write access to mountpoint"),
        ("user mount -o allow_other /mnt/a.gomp /mnt/m", "user_allow_other"),
        (
            f"{NO_FUSERMOUNT}; user mount /mnt/a.gomp /mnt/m",
            "fusermount3 is missing (Debian, Ubuntu: apt-get install fuse3)",
        ),
        (
            f"{NO_FUSERMOUNT}; {WITHOUT_ADMIN} mount /mnt/a.gomp /mnt/m",
            "mount(2) is not permitted; a container needs CAP_SYS_ADMIN",
        ),
    ],
)
def test_the_reason_why_a_mount_fails(in_namespace, script: str, reason: str) -> None:
    """The message was only `libfuse cannot mount`, with the path twice."""
    done = in_namespace(script)
    assert done.returncode == 1
    assert done.stderr.startswith("gompfs: /mnt/m: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == done.stderr.count("/mnt/m") == 1


@needs_root
@pytest.mark.skipif(not os.path.islink("/etc/mtab"), reason="/etc/mtab is no link that can be hidden")
def test_unmounting_without_mtab(in_namespace) -> None:
    """Root unmounts without /etc/mtab, and fusermount3 does it for users.

    The error was `No such file or directory` for the mount point.
    """
    done = in_namespace(
        """
        mkdir /mnt/etc /mnt/work
        mount -t overlay none -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/work /etc
        rm /etc/mtab
        root mount /mnt/a.gomp /mnt/mine/root
        root umount /mnt/mine/root
        user mount /mnt/a.gomp /mnt/m
        user umount /mnt/m || echo status $?
        umount /mnt/m
        """
    )
    assert done.stdout == "status 1\n"
    assert done.stderr == (
        "gompfs: /mnt/m: fusermount3 needs /etc/mtab, which is missing; as root: ln -s /proc/self/mounts /etc/mtab\n"
    )
