"""The mount shows exactly the tree that was packed, to many tools."""

from __future__ import annotations

import mmap
import os
import random
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tree_helpers import list_directory


def run(*command: str | Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, timeout=60, check=False, env=environment)


def test_diff_is_silent(shared_odd_tree: Path, odd_mount: Path) -> None:
    special = ["-x", "fifo", "-x", "null", "-x", "loop"]  # diff reports every file that it cannot compare
    done = run("diff", "-r", "--no-dereference", *special, shared_odd_tree, odd_mount)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_everything_is_the_same(shared_odd_tree: Path, odd_mount: Path) -> None:
    assert list_directory(odd_mount) == list_directory(shared_odd_tree)


def test_attributes(shared_odd_tree: Path, odd_mount: Path) -> None:
    def attributes(root: Path) -> dict[bytes, tuple[object, ...]]:
        found = {}
        for folder, directories, files in os.walk(os.fsencode(root)):
            for name in (b".", *directories, *files):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                size = None if stat.S_ISDIR(status.st_mode) else status.st_size
                fields = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_nlink)
                found[os.path.relpath(path, os.fsencode(root))] = (*fields, size, status.st_rdev)
        return found

    expected = attributes(shared_odd_tree)
    assert attributes(odd_mount) == expected
    assert len(expected) > 200


def test_hard_links_share_an_inode_number(shared_odd_tree: Path, odd_mount: Path) -> None:
    def groups(root: Path) -> set[frozenset[bytes]]:
        by_number: dict[int, set[bytes]] = {}
        for folder, _, files in os.walk(os.fsencode(root)):
            for name in files:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, os.fsencode(root))
                by_number.setdefault(os.lstat(path).st_ino, set()).add(relative)
        return {frozenset(names) for names in by_number.values() if len(names) > 1}

    assert groups(odd_mount) == groups(shared_odd_tree) != set()


def test_entries_of_scandir_agree_with_stat(odd_mount: Path) -> None:
    with os.scandir(odd_mount / "types") as entries:
        for entry in entries:
            assert entry.inode() == os.lstat(entry.path).st_ino
            assert entry.is_file(follow_symlinks=False) == stat.S_ISREG(os.lstat(entry.path).st_mode)


def test_tar_reads_the_same_bytes(shared_odd_tree: Path, odd_mount: Path) -> None:
    options = [
        "--format=posix",
        "--pax-option=exthdr.name=%d/x/%f,delete=atime,delete=ctime",
        "--sort=name",
    ]
    source, mounted = (run("tar", *options, "-C", root, "-cf", "-", ".") for root in (shared_odd_tree, odd_mount))
    assert (source.returncode, mounted.returncode, mounted.stderr) == (0, 0, b"")
    assert mounted.stdout == source.stdout


def test_grep_and_find(shared_odd_tree: Path, odd_mount: Path) -> None:
    for command in (["grep", "-r", "-c", "end", "."], ["find", ".", "-printf", r"%y %m %s %n %T@ %l %p\0"]):
        outputs = []
        for root in (shared_odd_tree, odd_mount):
            done = subprocess.run(command, cwd=root, capture_output=True, check=False)
            lines = done.stdout.split(b"\0" if command[0] == "find" else b"\n")
            outputs.append(sorted(line for line in lines if not line.startswith(b"d ")))
        assert outputs[0] == outputs[1]
        assert len(outputs[0]) > 50


def test_rsync_finds_nothing_to_do(shared_odd_tree: Path, odd_mount: Path) -> None:
    if run("which", "rsync").returncode != 0:
        pytest.skip("there is no rsync")
    done = run("rsync", "-aHXn", "--delete", "--checksum", "-i", f"{odd_mount}/", f"{shared_odd_tree}/")
    assert (done.returncode, done.stdout) == (0, b"")


def test_memory_maps(shared_odd_tree: Path, odd_mount: Path) -> None:
    for name in ("text-300000", "noise-131072", "noise-1"):
        expected = (shared_odd_tree / "contents" / name).read_bytes()
        with (
            open(odd_mount / "contents" / name, "rb") as file,
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view,
        ):
            assert view[-1:] == expected[-1:]
            assert view[:] == expected


def test_random_ranges_by_many_readers(shared_odd_tree: Path, odd_mount: Path) -> None:
    names = [f"contents/{kind}-{size}" for kind in ("text", "noise") for size in (300_000, 131_072, 65_537, 4095)]
    names += ["sparse/middle", "sparse/many", "sparse/hole"]
    contents = {name: (shared_odd_tree / name).read_bytes() for name in names}

    def read(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(100):
            name = rng.choice(names)
            descriptor = os.open(odd_mount / name, os.O_RDONLY | (os.O_DIRECT if rng.random() < 0.3 else 0))
            try:
                start, size = rng.randrange(len(contents[name]) + 5000), rng.randrange(1, 200_000)
                assert os.pread(descriptor, size, start) == contents[name][start : start + size]
            finally:
                os.close(descriptor)

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(read, range(8)))


def test_statistics_of_the_file_system(shared_odd_tree: Path, odd_mount: Path) -> None:
    status = os.statvfs(odd_mount)
    inodes = {
        os.lstat(os.path.join(folder, name)).st_ino: os.lstat(os.path.join(folder, name))
        for folder, directories, files in os.walk(os.fsencode(shared_odd_tree))
        for name in (*directories, *files, b".")
    }
    size = sum(inode.st_size for inode in inodes.values() if stat.S_ISREG(inode.st_mode))
    assert status.f_files == len(inodes)
    assert status.f_namemax == 255
    assert status.f_bfree == status.f_bavail == status.f_ffree == 0
    assert 0 <= status.f_blocks * status.f_frsize - size < status.f_frsize
    assert status.f_flag & os.ST_RDONLY


def test_extended_attributes(odd_mount: Path) -> None:
    path = odd_mount / "attributes/xattrs"
    assert sorted(os.listxattr(path)) == ["user.a=b%c", "user.bytes", "user.empty"]
    assert os.getxattr(path, "user.bytes") == bytes(range(256))
    for name, target in (("user.none", path), ("user.bytes", odd_mount / "contents")):
        with pytest.raises(OSError, match="No data available"):
            os.getxattr(target, name)
    assert os.listxattr(odd_mount / "contents") == []
