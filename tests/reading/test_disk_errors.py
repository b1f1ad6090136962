"""A disk that cannot read some bytes of an archive: messages name archive and file, and all other files are read."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tree_helpers import pack

from gompfs.archive import Archive

SHIM = Path(__file__).parents[1] / "pack/failing_calls.c"
Run = Callable[..., subprocess.CompletedProcess[bytes]]
NAMES = ("first", "middle", "text", "last")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "failing_calls.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, SHIM, "-ldl"], check=True)
    return library


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unreadable")
    (folder / "tree").mkdir()
    for number, name in enumerate(NAMES):
        (folder / "tree" / name).write_bytes(random.Random(number).randbytes(300_000))
    (folder / "tree/text").write_text("to be or not to be\n" * 10_000)
    pack(folder / "a.gomp", folder / "tree", block_size=64 << 10)
    return folder / "a.gomp"


@pytest.fixture
def run(archive: Path, shim: Path) -> Run:
    """Runs a command while the bytes in the middle of the file `middle` cannot be read."""
    with Archive(archive) as opened:
        (extent,) = opened.extents(opened.resolve("middle").ino)
        block = (extent.stream_offset + 150_000) // opened.block_size
        offset = int(opened.segments[0].blocks.archive_offsets[block])

    def run_gompfs(
        *arguments: str | Path, number: int = errno.EIO, end: int = 10
    ) -> subprocess.CompletedProcess[bytes]:
        variables = {"FAIL_CALL": "sector", "FAIL_PATH": "a.gomp", "FAIL_ERRNO": str(number)}
        variables |= {"FAIL_BEGIN": str(offset), "FAIL_END": str(offset + end), "LD_PRELOAD": str(shim)}
        return subprocess.run(
            [sys.executable, "-P", "-m", "gompfs", *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            check=False,
        )

    return run_gompfs


@pytest.mark.parametrize("number", [errno.EIO, errno.EUCLEAN])
def test_cat_names_archive_and_file_and_goes_on(run: Run, archive: Path, number: int) -> None:
    done = run("cat", archive, "first", "middle", "last", number=number)
    assert done.returncode == 1
    assert done.stderr.decode() == f"gompfs: {archive}: middle: {os.strerror(number)}\n"
    tree = archive.parent / "tree"
    first, last = ((tree / name).read_bytes() for name in ("first", "last"))
    assert done.stdout.startswith(first)
    assert done.stdout.endswith(last)


def test_verify_lists_what_cannot_be_read(run: Run, archive: Path) -> None:
    done = run("verify", archive)
    assert (done.returncode, done.stderr) == (1, b"")
    damage, summary = done.stdout.decode().splitlines()
    assert damage.startswith(f"{archive}: block ")
    assert damage.endswith(": the block cannot be read from the disk: affects middle")
    assert summary == f"{archive}: 1 damaged block, 1 file affected"


def test_a_disk_without_answers_ends_with_one_line(run: Run, archive: Path) -> None:
    """Also the index, the last bytes of the file, cannot be read."""
    for command in (["ls", archive], ["verify", archive], ["cat", archive, "last"], ["repair", archive]):
        done = run(*command, end=1 << 30)
        assert done.returncode == 1
        assert done.stderr.decode() == f"gompfs: {archive}: Input/output error\n"


def test_other_readers_name_the_archive(run: Run, archive: Path, tmp_path: Path) -> None:
    for command, status in (
        (["extract", archive, "-C", tmp_path / "out"], 1),
        (["grep", "-a", "-c", "nothing", archive, "middle"], 2),
        (["bench", "--seconds=0", archive], 1),
    ):
        done = run(*command)
        assert done.returncode == status, command
        lines = done.stderr.decode().splitlines()
        assert lines, command
        assert all(str(archive) in line for line in lines), lines
        assert any("Input/output error" in line for line in lines), lines
