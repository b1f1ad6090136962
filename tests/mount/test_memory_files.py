"""Files in memory, with large pages, and with small pages where the system does not permit large ones."""

from __future__ import annotations

import errno
import mmap
import os

import pytest

from gompfs.mount.system import memory_files
from gompfs.mount.system.memory_files import MemoryFiles

SIZE = (5 << 20) + 100


@pytest.fixture(params=["permitted", "refused"])
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> MemoryFiles:
    if request.param == "refused":

        def refuse() -> int:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(memory_files, "_mount_tmpfs", refuse)
    elif os.geteuid() != 0:
        pytest.skip("needs root")
    made = MemoryFiles()
    assert made.has_large_pages == (request.param == "permitted")
    return made


def test_files_keep_what_is_written(files: MemoryFiles) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with files.create(SIZE) as first, files.create(SIZE) as second:
        with mmap.mmap(first, SIZE) as mapped:
            assert mapped[:] == bytes(SIZE)
            mapped[SIZE - 5 :] = b"hello"
        assert os.pread(first, 100, SIZE - 5) == b"hello"
        assert os.pread(second, 100, SIZE - 5) == bytes(5)
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_open_file_outlives_its_maker(files: MemoryFiles) -> None:
    with files.create(10) as descriptor:
        files.close()
        files.close()
        os.pwrite(descriptor, b"hello", 0)
        assert os.pread(descriptor, 10, 0) == b"hello" + bytes(5)


def test_errors_close_the_file(files: MemoryFiles) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="Invalid argument"), files.create(-1):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_small_pages_without_the_privilege_to_mount() -> None:
    """Runs in a child process that has given up its privileges."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give up its privileges")
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            files = MemoryFiles()
            with files.create(10) as descriptor:
                os._exit(files.has_large_pages or os.pread(descriptor, 20, 0) != bytes(10))
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
