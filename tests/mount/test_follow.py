"""-o follow: the mount shows the archive that the path now names; files and directories opened before stay readable."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from forged_index import forge_index
from mount_states import wait_until
from tree_helpers import add, pack

from gompfs.archive import Archive
from gompfs.mount.system.observe import observe_mounts
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions

_LOOK_SECONDS = 1.3  # until a mount that follows has noticed another file

OLD = random.Random(4).randbytes(300_000)
NEW = random.Random(5).randbytes(200_000)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "old/d").mkdir(parents=True)
    (tmp_path / "old/d/file").write_bytes(OLD)
    (tmp_path / "old/gone").write_text("gone\n")
    pack(tmp_path / "a.gomp", tmp_path / "old", block_size=16 << 10, mtime_ns=0)
    return tmp_path / "a.gomp"


def replace(archive: Path, number: int = 0) -> None:
    """Replaces the archive by one of a smaller tree with equal times, where a file has another inode and path."""
    tree = archive.parent / f"new-{number}"
    (tree / "d").mkdir(parents=True)
    (tree / "a").mkdir()
    (tree / "d/file").write_bytes(NEW)
    (tree / "d/number").write_text(str(number))
    (tree / "link").symlink_to("d/file")
    os.setxattr(tree / "d", "user.mine", b"yes")
    pack(archive.parent / "b.gomp", tree, block_size=64 << 10, mtime_ns=0)
    os.replace(archive.parent / "b.gomp", archive)


def test_a_replaced_file(mount, archive: Path) -> None:
    mounted = mount(archive, "follow,stats=visible")
    assert sorted(os.listdir(mounted.path)) == [".gompfs", "d", "gone", "stats"]
    assert not os.path.lexists(mounted / "link")  # the kernel caches that the name does not exist
    assert b"gone\t1\n" in (mounted / "stats/wordcount").read_bytes()
    opened = os.open(mounted / "d/file", os.O_RDONLY | os.O_DIRECT)
    directory = os.open(mounted / "d", os.O_RDONLY)
    assert os.pread(opened, 4096, 0) == OLD[:4096]
    replace(archive)
    wait_until(lambda: sorted(os.listdir(mounted.path)) == [".gompfs", "a", "d", "link", "stats"])
    wait_until((mounted / "a").is_dir)
    wait_until((mounted / "link").exists)
    wait_until(lambda: not (mounted / "gone").exists())
    assert sorted(os.listdir(mounted / "d")) == ["file", "number"]
    for name in ("link", "d/file"):
        assert (mounted / name).read_bytes() == NEW
    assert os.getxattr(mounted / "d", "user.mine") == b"yes"
    assert (mounted / "stats/wordcount").read_bytes() == b"0\t1\n"
    again = os.open(mounted / "d/file", os.O_RDONLY | os.O_DIRECT)
    assert b"".join(os.pread(again, 4096, offset) for offset in range(0, 200_000, 4096)) == NEW
    os.close(again)
    # Files opened before keep the old content, even parts that were not read before the replacement.
    assert b"".join(os.pread(opened, 4096, offset) for offset in range(0, 300_000, 4096)) == OLD
    assert os.listdir(directory) == ["file"]
    os.close(opened)
    os.close(directory)
    (state,) = observe_mounts([os.path.realpath(mounted.path)])
    assert state.value("gompfs_request_seconds_count", request="read", path="fast") >= 48
    assert mounted.stop() == 0
    assert mounted.log == f"gompfs: the mount now shows generation 1 of {archive}\n"


def test_following_an_add(mount, archive: Path, tmp_path: Path) -> None:
    """After each `add`, the mount shows the new generation."""
    mounted = mount(archive, "follow")
    assert (mounted / "d/file").read_bytes() == OLD
    for number in range(2):
        (tmp_path / "gone").write_text(f"here {number}\n")
        (tmp_path / f"more-{number}").write_bytes(NEW)
        add(archive, tmp_path / "gone", tmp_path / f"more-{number}")
        wait_until((mounted / f"more-{number}").exists)
        wait_until(lambda: (mounted / "gone").read_text() == f"here {number}\n")  # noqa: B023
        assert (mounted / f"more-{number}").read_bytes() == NEW
        assert (mounted / "d/file").read_bytes() == OLD
    assert "generation\t3\n" in (mounted / "stats/info").read_text()
    assert mounted.stop() == 0


def test_an_invalid_archive_is_not_shown(mount, archive: Path) -> None:
    """While the path names a file that is not a valid archive, or no file, the mount keeps showing the old archive."""
    mounted = mount(archive, "follow")
    good = archive.read_bytes()
    for content in (b"no archive", b"", good[:-1]):
        other = archive.with_suffix(".other")
        other.write_bytes(content)
        os.replace(other, archive)
        time.sleep(_LOOK_SECONDS)
        assert (mounted / "gone").read_text() == "gone\n"
    archive.unlink()
    time.sleep(_LOOK_SECONDS)
    assert (mounted / "d/file").read_bytes() == OLD
    replace(archive)
    wait_until((mounted / "a").is_dir)
    assert mounted.stop() == 0
    assert "the mount still shows the old content: " in mounted.log
    assert "Traceback" not in mounted.log


def test_without_follow_a_mount_does_not_change(mount, archive: Path) -> None:
    mounted = mount(archive)
    replace(archive)
    time.sleep(_LOOK_SECONDS)
    assert sorted(os.listdir(mounted.path)) == ["d", "gone"]
    assert (mounted / "d/file").read_bytes() == OLD


def test_an_archive_without_the_mounted_subdirectory(mount, archive: Path, tmp_path: Path) -> None:
    """With subdir=, a new archive without that directory is not shown; a later one that has it is."""
    mounted = mount(archive, "follow,subdir=d")
    (tmp_path / "flat").write_text("flat")
    pack(tmp_path / "c.gomp", tmp_path / "flat")
    os.replace(tmp_path / "c.gomp", archive)
    wait_until(lambda: "the mount still shows the old content: " in mounted.logged())
    assert (mounted / "file").read_bytes() == OLD
    replace(archive, 7)
    wait_until((mounted / "number").exists)
    assert (mounted / "number").read_text() == "7"
    assert mounted.stop() == 0


def test_only_a_few_old_snapshots_are_kept(archive: Path) -> None:
    """Memory does not grow with every new archive. Files of a snapshot that was dropped give ESTALE."""
    path = str(archive)
    with Snapshots(path, Archive, MountOptions(follow=True)) as snapshots:
        nodes = []
        archives = []
        for number in range(8):
            operations = snapshots.current
            inode = operations.lookup(operations.lookup(1, b"d").ino, b"file")
            nodes.append(inode.ino)
            archives.append(operations.archive)
            replace(archive, number)
            snapshots._look()
        assert len(set(nodes)) == 8
        for node in nodes[:4]:
            with pytest.raises(OSError, match="Stale file handle"):
                snapshots.of(node)
        for number, node in enumerate(nodes[4:], 4):
            content = snapshots.of(node).read(node, 0, 10)
            assert b"".join(content) == NEW[:10]
            assert archives[number].blocks.capacity == (32 << 20) // archives[number].block_size


def test_inode_numbers_that_are_too_large(mount, archive: Path) -> None:
    """Inode numbers of 2^48 and more would be mistaken for nodes of other snapshots.

    With follow, such an entry gives EIO and all others stay readable.
    """
    with Archive(archive) as opened:
        ino = opened.resolve("d/file").ino
    tables = ("inode", "dirent", "extent")
    forge_index(archive, *(f"UPDATE {table} SET ino = {1 << 48} WHERE ino = {ino}" for table in tables))
    mounted = mount(archive)
    assert os.listdir(mounted / "d") == ["file"]
    content = (mounted / "d/file").read_bytes()
    gone = (mounted / "gone").read_bytes()
    following = mount(archive, "follow")
    for _ in range(2):
        for ask in (os.stat, os.listxattr, Path.read_bytes):
            with pytest.raises(OSError, match="Input/output error"):
                ask(following / "d/file")
        with pytest.raises(OSError, match="Input/output error"):
            os.listdir(following / "d")
        assert (following / "gone").read_bytes() == gone
    assert len(content) > 0


def test_names_of_the_new_archive_come_from_its_index(mount, archive: Path) -> None:
    """The C++ core, not Python, answers lookups in a new archive too. Entries of the old archive can still be used."""

    def tree(number: int) -> Path:
        top = archive.parent / f"many-{number}"
        for directory in range(300):
            (top / f"d/{directory:03}/sub").mkdir(parents=True)
            (top / f"d/{directory:03}/sub/{number}").touch()
        return top

    pack(archive, tree(0), force=True)
    mounted = mount(archive, "follow")
    names = os.listdir(mounted / "d")
    opened = os.open(mounted / "d/150", os.O_RDONLY)
    for number in (1, 2):
        pack(archive.parent / "b.gomp", tree(number))
        os.replace(archive.parent / "b.gomp", archive)
        wait_until((mounted / f"d/000/sub/{number}").exists)
        assert os.listdir(mounted / "d") == names
        for name in names:
            assert os.listdir(mounted / f"d/{name}/sub") == [str(number)]
        (state,) = observe_mounts([os.path.realpath(mounted.path)])
        in_python = state.value("gompfs_request_seconds_count", request="other", path="slow")
        assert in_python < 150  # of the 1,200 requests to this archive
        assert os.listdir(f"/proc/self/fd/{opened}/sub") == ["0"]
    os.close(opened)
    assert mounted.stop() == 0
