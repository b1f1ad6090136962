"""Passthrough: files that the daemon decodes whole at open, and that the kernel then reads without the daemon."""

from __future__ import annotations

import errno
import mmap
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.mount.fuse.passthrough import start_passthrough

MIB = 1 << 20


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a little more than 3 MiB, one of them with holes, and a small file."""
    root = tmp_path_factory.mktemp("tree")
    rng = random.Random(1)
    for name in ("a", "b"):
        (root / name).write_bytes(b"".join(b"%x\n" % rng.randrange(1 << 40) for _ in range(300_000))[: 3 * MIB + 17])
    with open(root / "holes", "wb") as file:
        file.truncate(3 * MIB)
        os.pwrite(file.fileno(), rng.randbytes(200_000), 100_001)
        os.pwrite(file.fileno(), rng.randbytes(200_000), 2 * MIB)
    (root / "small").write_bytes(b"small\n")
    return root


@pytest.fixture(scope="module")
def packed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("packed") / "a.gomp"
    pack(target, tree, block_size=16 << 10)
    return target


@pytest.fixture
def archive(packed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(packed, tmp_path))


@pytest.fixture
def whole(mount, archive: Path) -> Callable[[str], Path]:
    """Mounts with `size` of memory for whole files. Skips the test where the kernel has no passthrough."""

    def make(size: str) -> Path:
        mounted = mount(archive, f"passthrough_size={size}")
        if state(mounted.path).startswith("no: "):
            pytest.skip(state(mounted.path))
        return mounted

    return make


def state(path: Path) -> str:
    info = dict(line.split("\t", 1) for line in (path / "stats/info").read_text().splitlines())
    return info["passthrough"].removesuffix(", large pages").removesuffix(", small pages")


def comes_to_say(path: Path, expected: str) -> bool:
    """Returns whether `state` becomes `expected` within 10 s.

    The state is cached for up to a second, and the kernel closes files with a delay.
    """
    deadline = time.monotonic() + 60
    while not (found := state(path)).startswith(expected) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found.startswith(expected)


@contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Stops a process for the duration of the `with` body."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("name", ["a", "holes"])
def test_the_kernel_reads_without_the_daemon(whole, tree: Path, name: str) -> None:
    mounted = whole("64M")
    expected = (tree / name).read_bytes()
    with open(mounted / name, "rb") as file, stopped(mounted.process):
        assert file.read() == expected
        assert os.pread(file.fileno(), 100, len(expected) - 10) == expected[-10:]
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            assert mapped[:] == expected
    assert comes_to_say(mounted.path, f"on, 1 files in {len(expected)} of {64 * MIB} bytes")


def test_holes_of_files_that_are_passed_through(whole, tree: Path) -> None:
    """The kernel asks the daemon for holes, even if it reads the file by passthrough."""
    with open(whole("64M") / "holes", "rb") as file, open(tree / "holes", "rb") as source:
        for start in (0, 100_001, 200_000, MIB, 2 * MIB, 2 * MIB + 5, 3 * MIB - 1):
            for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                answers = []
                for each in (file, source):
                    try:
                        answers.append(os.lseek(each.fileno(), start, whence))
                    except OSError as error:
                        answers.append(-(error.errno or 0))
                assert answers[0] == answers[1]
        assert os.fstat(file.fileno()).st_blocks == os.fstat(source.fileno()).st_blocks


def test_small_files_are_not_passed_through(whole, tree: Path) -> None:
    mounted = whole("64M")
    for _ in range(3):
        assert (mounted / "small").read_bytes() == b"small\n"
    time.sleep(1)
    assert state(mounted.path).startswith("on, 0 files in 0 ")


def test_memory_is_bounded_and_reused(whole, tree: Path) -> None:
    """A file that is opened while there is no space is read block by block, also by everyone who opens it meanwhile."""
    mounted = whole("4M")
    a, b = (tree / "a").read_bytes(), (tree / "b").read_bytes()
    with open(mounted / "a", "rb") as first, open(mounted / "b", "rb") as second:
        assert second.read(100_000) == b[:100_000]
        first.close()
        assert (mounted / "b").read_bytes() == b
        assert second.read() == b[100_000:]
        assert comes_to_say(mounted.path, f"on, 1 files in {len(a)} of {4 * MIB} bytes")
    deadline = time.monotonic() + 60
    while state(mounted.path) != f"on, 1 files in {len(b)} of {4 * MIB} bytes":
        assert (mounted / "b").read_bytes() == b
        assert time.monotonic() < deadline
    with open(mounted / "b", "rb") as file, stopped(mounted.process):
        assert file.read() == b
    assert (mounted / "a").read_bytes() == a


def test_a_file_larger_than_the_memory(whole, tree: Path) -> None:
    mounted = whole("2M")
    assert (mounted / "a").read_bytes() == (tree / "a").read_bytes()
    time.sleep(1)
    assert state(mounted.path) == f"on, 0 files in 0 of {2 * MIB} bytes"


def test_many_open_at_once(whole, tree: Path) -> None:
    """There is space for one of three files. Whether passed through or not, every reader gets the right bytes."""
    mounted = whole("4M")
    script = 'for i in 1 2 3 4 5 6; do for name in "$@"; do cmp "$0/$name" "$name" || exit 1; done; done'
    orders = [("a", "b", "holes"), ("b", "a", "holes"), ("holes", "b", "a"), ("a", "holes", "b")]
    readers = [subprocess.Popen(["sh", "-c", script, mounted.path, *order], cwd=tree) for order in orders]
    assert [reader.wait(timeout=60) for reader in readers] == [0] * len(readers)


def test_only_damaged_blocks_are_unreadable(whole, archive: Path, tree: Path) -> None:
    with Archive(archive) as opened:
        (extent,) = opened.extents(opened.resolve("b").ino)
        block = extent.stream_offset // opened.block_size + 60
        archive_offset = int(opened.segments[0].blocks.archive_offsets[block])
        start = block * opened.block_size - extent.stream_offset
    with open(archive, "r+b") as file:
        file.seek(archive_offset + 1000)
        file.write(b"damage")
    mounted = whole("64M")
    expected = (tree / "b").read_bytes()
    for _ in range(2):
        with open(mounted / "b", "rb") as file:
            assert os.pread(file.fileno(), 100_000, 0) == expected[:100_000]
            assert os.pread(file.fileno(), 100_000, 2 * MIB) == expected[2 * MIB :][:100_000]
            with pytest.raises(OSError, match="Input/output error") as raised:
                os.pread(file.fileno(), 16 << 10, start)
            assert raised.value.errno == errno.EIO
    assert (mounted / "a").read_bytes() == (tree / "a").read_bytes()
    assert comes_to_say(mounted.path, "on, 1 files ")


def test_a_mount_ends_while_files_are_decoded(whole) -> None:
    mounted = whole("64M")
    command = ["cat", mounted / "a", mounted / "b", mounted / "holes"]
    readers = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(3)]
    time.sleep(0.02)
    assert mounted.stop() == 0
    for reader in readers:
        reader.wait(timeout=60)
    assert "Traceback" not in mounted.log


def test_passthrough_is_off_by_default(mount, archive: Path) -> None:
    assert state(mount(archive).path) == "off"


def test_a_kernel_without_passthrough(archive: Path) -> None:
    """Everything else works, and stats/info says why passthrough is off."""
    device = os.open(os.devnull, os.O_RDWR)
    with Archive(archive) as opened:
        files, describe = start_passthrough(opened, device, MIB, has_passthrough=False)
        assert files is None
        assert describe() == "no: the kernel does not support it (Linux 6.9 or newer needed)"
        files, describe = start_passthrough(opened, device, MIB, has_passthrough=True)
        assert files is None
        assert describe() == "no: Inappropriate ioctl for device (it needs CAP_SYS_ADMIN)"
    os.close(device)
