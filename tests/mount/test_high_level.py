"""Mounts with `-o api=high`, where libfuse talks to the kernel. All other modules use the default, `api=low`."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from access_lists import access_list
from mount_states import wait_until
from tree_helpers import list_directory, pack

from gompfs.archive import Archive
from gompfs.errors import MountError
from gompfs.mount.fuse.high_level import HighLevelSession
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions

OF_LIBFUSE = "fuse: waitpid: Interrupted system call\n"
"""libfuse 3.17 says this if a signal comes while it waits for a program that it runs."""

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a mount that other users may use")


@pytest.fixture
def mount(mount: Callable[..., Any]) -> Callable[..., Any]:
    """Mounts an archive through libfuse."""
    return lambda archive, *options: mount(archive, "api=high", *options)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A tree with long paths."""
    place = tmp_path / "tree"
    for number in range(8):
        place /= f"{number}" * 200
        place.mkdir(parents=True)
    (place / "file").write_bytes(random.Random(1).randbytes(3_000_000))
    pack(tmp_path / "a.gomp", tmp_path / "tree", block_size=16 << 10)
    return tmp_path / "a.gomp"


def test_an_error_where_libfuse_cannot_mount(archive: Path, tmp_path: Path) -> None:
    options = MountOptions(api="high")
    session = HighLevelSession(os.fspath(tmp_path / "missing"), "source", options)
    try:
        with (
            Snapshots(os.fspath(archive), Archive, options) as content,
            pytest.raises(MountError, match="missing: libfuse cannot mount"),
        ):
            session.serve(content, lambda: pytest.fail("nothing is mounted"))
    finally:
        session.close()


def test_a_killed_daemon_ends(mount: Callable[..., Any], archive: Path) -> None:
    """The daemon ends at once. It must not wait for an answer that only itself could give."""
    for _ in range(3):
        mounted = mount(archive)
        mounted.process.kill()
        mounted.process.wait(timeout=60)


def test_a_signal_ends_the_daemon(mount: Callable[..., Any], archive: Path) -> None:
    mounted = mount(archive)
    assert mounted.stop() == 0
    assert not os.path.ismount(mounted.path)
    assert mounted.log.replace(OF_LIBFUSE, "") == ""


def test_long_paths_and_large_reads(mount: Callable[..., Any], archive: Path) -> None:
    mounted = mount(archive)
    (name,) = subprocess.run(
        ["find", mounted.path, "-type", "f"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(name) > 1600
    expected = random.Random(1).randbytes(3_000_000)
    assert Path(name).read_bytes() == expected
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECT)
    for start, size in ((0, 1 << 20), (1 << 20, 1 << 21), (2_999_808, 4096), (3_000_320, 4096)):
        assert os.pread(descriptor, size, start) == expected[start : start + size]
    os.close(descriptor)


def test_everything_is_the_same(mount: Callable[..., Any], shared_odd_tree: Path, odd_archive: Path) -> None:
    mounted = mount(odd_archive)
    assert list_directory(mounted.path) == list_directory(shared_odd_tree)
    assert "\nfuse_api\thigh\n" in (mounted / "stats/info").read_text()


def test_several_archives(
    gompfs_command: Callable[..., Any], shared_odd_tree: Path, odd_archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/new").write_text("of the second archive\n")
    pack(tmp_path / "b.gomp", tmp_path / "tree")
    place = tmp_path / "union"
    place.mkdir()
    options = ("-o", "api=high", "--union")
    assert gompfs_command("mount", *options, odd_archive, tmp_path / "b.gomp", place).returncode == 0
    try:
        assert (place / "new").read_text() == "of the second archive\n"
        assert sorted(os.listdir(place)) == sorted([*os.listdir(shared_odd_tree), "new"])
    finally:
        assert gompfs_command("umount", place).returncode == 0


def test_a_damaged_block(mount: Callable[..., Any], tmp_path: Path) -> None:
    """Reads of the block fail with EIO. All other bytes are right."""
    (tmp_path / "tree").mkdir()
    content = random.Random(2).randbytes(500_000)
    (tmp_path / "tree/noise").write_bytes(content)
    pack(tmp_path / "a.gomp", tmp_path / "tree", block_size=16 << 10)
    with Archive(tmp_path / "a.gomp") as opened:
        damaged = int(opened.segments[0].blocks.archive_offsets[20]) + 1000
    with open(tmp_path / "a.gomp", "r+b") as file:
        file.seek(damaged)
        file.write(b"damage")
    mounted = mount(tmp_path / "a.gomp")
    with open(mounted / "noise", "rb") as file:
        assert os.pread(file.fileno(), 100_000, 0) == content[:100_000]
        assert os.pread(file.fileno(), 100_000, 400_000) == content[400_000:]
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            os.pread(file.fileno(), 4096, 20 * (16 << 10))
    assert mounted.stop() == 0
    assert f"{tmp_path / 'a.gomp'}: noise: block 20: " in mounted.log


@needs_root
def test_other_users(mount: Callable[..., Any], tmp_path: Path) -> None:
    """Modes and ACLs refuse other users files, and what statistics and searches say about them."""
    (tmp_path / "tree").mkdir()
    for name in ("open", "closed", "denied"):
        (tmp_path / "tree" / name).write_text(f"secret words of {name}\n")
        (tmp_path / "tree" / name).chmod(0o600 if name == "closed" else 0o644)
    refused = access_list(f"user::rw-,user:{NOBODY}:---,group::r--,mask::r--,other::r--")
    os.setxattr(tmp_path / "tree/denied", "system.posix_acl_access", refused)
    (tmp_path / "tree").chmod(0o755)
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    mounted = mount(tmp_path / "a.gomp", "allow_other")

    def nobody_reads(path: str) -> bool:
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "cat", path]
        return subprocess.run(command, cwd=mounted.path, capture_output=True, check=False).returncode == 0

    of_all = ("stats/wordcount", "stats/word/secret", "stats/grep/secret", "stats/search-socket")
    assert nobody_reads("open")
    for path in ("closed", "denied", *of_all):
        assert not nobody_reads(path)
        assert (mounted / path).read_bytes()


@needs_root
def test_a_kernel_that_cannot_apply_access_lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The mount is refused if other users are allowed: the kernel would give rights that ACLs take away."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").touch()
    for_one = access_list("user::rw-,user:1:rw-,group::r--,mask::r--,other::r--")
    os.setxattr(tmp_path / "tree/file", "system.posix_acl_access", for_one)
    pack(tmp_path / "b.gomp", tmp_path / "tree")
    monkeypatch.setattr("gompfs.mount.fuse.high_level._CAN_APPLY_ACLS", 1 << 31)  # libfuse knows no such feature
    (tmp_path / "mount").mkdir()
    options = MountOptions(api="high", allow_other=True)
    with Snapshots(os.fspath(tmp_path / "b.gomp"), Archive, options) as content:
        session = HighLevelSession(os.fspath(tmp_path / "mount"), "source", options)
        try:
            with pytest.raises(MountError, match=r"mount: this kernel cannot apply ACLs"):
                session.serve(content, lambda: pytest.fail("the mount begins"))
        finally:
            session.close()


def test_search_and_statistics(
    mount: Callable[..., Any], no_archive: None, gompfs_command: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/text").write_text("some words, some more\n")
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    mounted = mount(tmp_path / "a.gomp")
    assert gompfs_command("grep", "-o", "more", mounted.path).stdout == f"{mounted.path}/text:more\n"
    assert (mounted / "stats/wordcount").read_text() == gompfs_command("stats", tmp_path / "a.gomp", "wordcount").stdout
    assert (mounted / "stats/word/some").read_text() == "text\t2\n"


def test_follow(mount: Callable[..., Any], archive: Path, tmp_path: Path) -> None:
    """Files that are open keep their content when another archive replaces the mounted one."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one/file").write_text("old\n")
    pack(tmp_path / "f.gomp", tmp_path / "one")
    mounted = mount(tmp_path / "f.gomp", "follow")
    with open(mounted / "file", encoding="utf-8") as opened:
        (tmp_path / "one/file").write_text("new\n")
        (tmp_path / "one/more").touch()
        pack(tmp_path / "g.gomp", tmp_path / "one")
        os.replace(tmp_path / "g.gomp", tmp_path / "f.gomp")
        wait_until((mounted / "more").exists)
        wait_until(lambda: (mounted / "file").read_text() == "new\n")
        assert opened.read() == "old\n"
