"""Programs that do more with a mount than read files from front to back."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_helpers import list_directory, pack


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, a script that another script sources, a Python package, and a large file."""
    root = tmp_path_factory.mktemp("programs") / "tree"
    (root / "bin").mkdir(parents=True)
    shutil.copy2(shutil.which("true") or "/bin/true", root / "bin/program")
    (root / "bin/script").write_text(f"#!{shutil.which('sh')}\n. ./values\necho $VALUE\n")
    (root / "bin/script").chmod(0o755)
    (root / "bin/not-executable").write_text("#!/bin/sh\n")
    (root / "bin/values").write_text("VALUE=found\n")
    (root / "package").mkdir()
    (root / "package/__init__.py").write_text("from package.other import answer\n")
    (root / "package/other.py").write_text("answer = 42\n")
    (root / "large").write_bytes(b"".join(b"%07d\n" % number for number in range(200_000)))
    return root


@pytest.fixture(scope="module", params=["passthrough_size=0", "passthrough_size=8M"])
def mounted(tree: Path, mount_type: type, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The mounted tree: once with all files read block by block, once with passthrough of the large file."""
    archive = tree.with_name("a.gomp")
    pack(archive, tree, block_size=16 << 10, force=True)
    served = mount_type(archive, tree.with_name(request.param), request.param)
    yield served.path
    served.clean_up()


def test_programs_run_from_the_mount(mounted: Path) -> None:
    """The kernel maps the pages of a program, and a shell script finds files relative to its own directory."""
    assert subprocess.run([mounted / "bin/program"], check=False).returncode == 0
    done = subprocess.run(["./script"], cwd=mounted / "bin", capture_output=True, check=True)
    assert done.stdout == b"found\n"
    with pytest.raises(PermissionError):
        subprocess.run([mounted / "bin/not-executable"], check=False)


def test_python_imports_from_the_mount(mounted: Path) -> None:
    """Python cannot write its bytecode cache to the mount, and continues without."""
    command = [sys.executable, "-c", "import package; print(package.answer)"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=mounted, capture_output=True, check=True, env={**environment, "PYTHONPATH": "."})
    assert (done.stdout, done.stderr) == (b"42\n", b"")


def test_copies_are_the_tree(tree: Path, mounted: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", mounted, tmp_path / "copy"], check=True)
    assert list_directory(tmp_path / "copy") == list_directory(tree)


def test_the_kernel_copies_between_descriptors(tree: Path, mounted: Path, tmp_path: Path) -> None:
    expected = (tree / "large").read_bytes()
    with open(mounted / "large", "rb") as source, open(tmp_path / "copy", "wb") as target:
        file_offset = 100_001
        while sent := os.sendfile(target.fileno(), source.fileno(), file_offset, 300_000):
            file_offset += sent
    assert (tmp_path / "copy").read_bytes() == expected[100_001:]
    pipe_end, pipe_start = os.pipe()
    with open(mounted / "large", "rb") as source:
        while spliced := os.splice(source.fileno(), pipe_start, 65_536):
            start = source.tell() - spliced
            assert os.read(pipe_end, 65_536) == expected[start : start + spliced]
        assert source.tell() == len(expected)
    os.close(pipe_end)
    os.close(pipe_start)


def test_copies_without_reading(tree: Path, mounted: Path, tmp_path: Path) -> None:
    """copy_file_range. Newer kernels refuse it between different file systems; `cp` then reads."""
    expected = (tree / "large").read_bytes()
    with open(mounted / "large", "rb") as source, open(tmp_path / "part", "wb") as target:
        refused = 0
        try:
            while os.copy_file_range(source.fileno(), target.fileno(), 1 << 20):
                pass
        except OSError as error:
            refused = error.errno
    assert refused == errno.EXDEV or (tmp_path / "part").read_bytes() == expected
    subprocess.run(["cp", mounted / "large", tmp_path / "copy"], check=True)
    assert (tmp_path / "copy").read_bytes() == expected


def test_reads_past_the_page_cache(tree: Path, mounted: Path) -> None:
    """O_DIRECT reads of whole pages and across the end of the file, next to a reader that uses the page cache."""
    expected = (tree / "large").read_bytes()
    descriptor = os.open(mounted / "large", os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 1 << 20) as pages, open(mounted / "large", "rb") as other:
            for file_offset in (0, 4096, 100 << 12, len(expected) // 4096 * 4096):
                size = os.preadv(descriptor, [pages], file_offset)
                assert pages[:size] == expected[file_offset : file_offset + (1 << 20)]
                assert os.pread(other.fileno(), 5000, file_offset) == expected[file_offset : file_offset + 5000]
    finally:
        os.close(descriptor)


def test_mapped_files(tree: Path, mounted: Path) -> None:
    """Private and shared maps from any offset stay readable after the descriptor is closed. Writing is refused."""
    expected = (tree / "large").read_bytes()
    descriptor = os.open(mounted / "large", os.O_RDONLY)
    shared = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    private = mmap.mmap(descriptor, 300_000, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=1 << 16)
    with pytest.raises(PermissionError):
        mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    os.close(descriptor)
    with shared, private:
        assert shared[1_500_000:] == expected[1_500_000:]
        private[:4] = b"mine"
        assert private[:] == b"mine" + expected[(1 << 16) + 4 : (1 << 16) + 300_000]
        assert shared[:] == expected


def test_advice_changes_no_byte(tree: Path, mounted: Path) -> None:
    expected = (tree / "large").read_bytes()
    for advice in ("NORMAL", "SEQUENTIAL", "RANDOM", "WILLNEED", "DONTNEED", "NOREUSE"):
        with open(mounted / "large", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, getattr(os, f"POSIX_FADV_{advice}"))
            for file_offset in (1_000_000, 0, 1_599_000):
                assert os.pread(file.fileno(), 200_000, file_offset) == expected[file_offset : file_offset + 200_000]
            assert file.read() == expected


def test_eight_processes(tree: Path, mounted: Path) -> None:
    """Eight processes compare the file with its source, each starting from another offset."""
    processes = [
        subprocess.Popen(["cmp", f"--ignore-initial={number * 150_001}", mounted / "large", tree / "large"])
        for number in range(8)
    ]
    assert [process.wait(timeout=30) for process in processes] == [0] * 8


def test_directories_through_descriptors(tree: Path, mounted: Path) -> None:
    """openat, fstatat, and one descriptor that reads a directory twice from the start."""
    descriptor = os.open(mounted / "bin", os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert sorted(os.listdir(descriptor)) == sorted(os.listdir(descriptor)) == sorted(os.listdir(tree / "bin"))
        assert stat.S_IMODE(os.stat("script", dir_fd=descriptor).st_mode) == 0o755
        assert os.stat("../package/../bin/values", dir_fd=descriptor).st_size == len("VALUE=found\n")
        with pytest.raises(NotADirectoryError):
            os.open("script/", os.O_RDONLY, dir_fd=descriptor)
        with pytest.raises(NotADirectoryError):
            os.open("script", os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    with pytest.raises(IsADirectoryError), open(mounted / "bin", "rb") as file:
        file.read()
