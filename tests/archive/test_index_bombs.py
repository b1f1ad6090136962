"""Small archives whose index seems to have unlimited rows: every command refuses them at once, in little memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tarfile
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

import pytest
from column_groups import GROUPS, Group, changed, join, numbers, signed
from forged_index import index_columns, replace_columns, replace_stored_index

from gompfs._native.index import image_of, unpacked_size
from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.format import encode_columns
from gompfs.index.schema import tables

COMMANDS = [["ls", "-R"], ["ls", "-l"], ["info"], ["verify"], ["cat", "small/00"], ["extract", "-C", "out"],
            ["stats", "wordcount"]]  # fmt: skip


def run_in_bounds(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a gompfs command with at most 1 GB of memory and 20 seconds."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

    return subprocess.run(
        [sys.executable, "-m", "gompfs", *arguments], cwd=cwd, timeout=60, capture_output=True, text=True,
        errors="replace", preexec_fn=bound, check=False,
    )  # fmt: skip


def peak_memory(arguments: list[str], cwd: Path) -> int:
    """Returns the largest resident size of a gompfs command, in bytes."""
    code = (
        "import resource, subprocess, sys;"
        "subprocess.run([sys.executable, '-m', 'gompfs', *sys.argv[1:]], capture_output=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    answer = subprocess.run([sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, check=True)
    return 1024 * int(answer.stdout)


def test_an_index_of_no_bytes(archive_copy: Path) -> None:
    """The error message had no reason at its end."""
    replace_columns(archive_copy, b"")
    with pytest.raises(ArchiveFormatError, match="the superblock locates no index"):
        Archive(archive_copy)


ROW_BOMBS = {
    "rows without columns": ("binary_file.ino", b"", 1 << 60),
    "rows of many files": ("binary_file.ino", bytes(1 << 20), 1 << 20),
    "large numbers": ("binary_file.ino", b"\xff" * (1 << 20), 1 << 20),
    "names": ("dirent.name", bytes(1 << 24), 1 << 24),
}


@pytest.mark.parametrize("name", ROW_BOMBS)
def test_the_memory_is_bounded_by_the_bytes_of_the_columns(archive_copy: Path, name: str, tmp_path: Path) -> None:
    place, column, num_rows = ROW_BOMBS[name]
    replace_columns(archive_copy, changed(index_columns(archive_copy), place, column, num_rows=num_rows))
    for command, *options in COMMANDS:
        answer = run_in_bounds([command, str(archive_copy), *options], tmp_path)
        assert "Traceback" not in answer.stderr
        assert answer.returncode == 1 or name == "rows of many files"


@pytest.mark.parametrize("table", ["inode", "dirent", "extent", "binary_file"])
def test_the_image_is_not_larger_than_the_unpacked_size(table: str) -> None:
    """Values as large as possible, differences as small as possible."""
    empty = {name: Group(0, dict.fromkeys(columns, b"")) for name, columns in GROUPS.items()}
    n, large = 100_000, (1 << 62) - 200_000
    first = numbers(large, *[0] * (n - 1))
    columns = {name: signed(large, *[0] * (n - 1)) for name in GROUPS[table]} | {
        name: first for name in GROUPS[table] if name in ("ino", "parent", "size", "rdev")
    }
    if table == "dirent":
        columns |= {"ino": signed(large, *[0] * (n - 1)), "name": b"a\0" * n, "parent": numbers(large, *[1] * (n - 1))}
    if table == "extent":
        columns |= {"ino": numbers(large, *[1] * (n - 1)), "file_offset": signed(*[0] * n), "size": signed(*[1] * n)}
    if table == "inode":
        columns |= {"symlink_target": b"", "size": numbers(*[100] * n), "rdev": numbers(*[100] * n)}
    raw = join(empty | {table: Group(n, columns)})
    assert unpacked_size(raw) == len(raw) + 64 * n
    assert unpacked_size(raw) / 5 < len(image_of(raw, tables())) <= unpacked_size(raw) + 16 * 4096


def test_the_unpacked_size_does_not_wrap(archive_copy: Path) -> None:
    for num_rows in (1 << 57, 1 << 58, (1 << 58) - 1, (1 << 64) - 1):
        size = unpacked_size(changed(index_columns(archive_copy), "binary_file.ino", b"", num_rows=num_rows))
        assert size >= min(64 * num_rows, (1 << 64) - 1)


@pytest.mark.parametrize("above", [0, 1])
def test_the_limit_of_the_unpacked_size(archive_copy: Path, above: int) -> None:
    """An index is refused if its unpacked size is above 1 MiB and 256 times its stored size."""

    def with_rows(count: int) -> tuple[bytes, bytes, int]:
        columns = changed(index_columns(archive_copy), "binary_file.ino", bytes(count), num_rows=count)
        stored = encode_columns(columns, [])
        return columns, stored, -(-(unpacked_size(columns) - (1 << 20)) // 256) - len(stored)

    fewest = bisect_left(range(60_000), True, key=lambda count: with_rows(count)[2] > 0)
    columns, stored, excess = with_rows(fewest + above - 1)
    assert (excess > 0) == (above == 1)
    larger, sound = encode_columns(columns, [], len(stored) + max(excess, 0)), archive_copy.read_bytes()
    replace_stored_index(archive_copy, stored, columns)
    if above <= 0:
        Archive(archive_copy).close()
        return
    with pytest.raises(CorruptIndexError, match="its blocks are too small for its rows"):
        Archive(archive_copy)
    archive_copy.write_bytes(sound)
    replace_stored_index(archive_copy, larger, columns)
    Archive(archive_copy).close()


def test_a_bomb_of_rows_takes_little_memory(archive_copy: Path, tmp_path: Path) -> None:
    """1,500,000 rows in 20 kB made an image of 20 MB; an archive of 1 MB one of gigabytes."""
    count = 1_500_000
    columns = changed(index_columns(archive_copy), "binary_file.ino", bytes(count), num_rows=count)
    size = archive_copy.stat().st_size
    replace_columns(archive_copy, columns)
    assert archive_copy.stat().st_size < size + 20_000
    idle, refused = (peak_memory(["info", str(path)], tmp_path) for path in (tmp_path / "none", archive_copy))
    assert refused < idle + (8 << 20)


def test_regular_trees_are_stored_less_compressed(tmp_path: Path) -> None:
    """What is packed is never refused: the same names in each of many directories."""
    tree = tmp_path / "tree.tar"
    with tarfile.open(tree, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(20_000):
            member = tarfile.TarInfo(f"{number // 200:04}/{number % 200:04}")
            tar.addfile(member)
    assert run(["pack", str(tree), str(tmp_path / "a.gomp")]) == 0
    with Archive(tmp_path / "a.gomp") as archive:
        assert archive.index.totals()[0] == 20_101
        columns = index_columns(tmp_path / "a.gomp")
        least = -(-(unpacked_size(columns) - (1 << 20)) // 256)
        assert len(encode_columns(columns, [])) < least <= archive.footer.index_size < least + 5000


ROW = "(SELECT ino FROM dirent WHERE name = x'6c696e6b')"  # the inode of the symbolic link `link`
BY_CHILD = {
    "UPDATE dirent SET ino = 4611686018427387903 WHERE name = x'6c696e6b'": "points to an inode that does not exist",
    f"UPDATE inode SET symlink_target = x'' WHERE ino = {ROW}": "impossible fields",
    f"UPDATE inode SET symlink_target = CAST(hex(zeroblob(2048)) AS BLOB) WHERE ino = {ROW}": "impossible fields",
    "UPDATE dirent SET ino = 0 WHERE name = x'6c696e6b'": "does not exist",
}


@pytest.mark.parametrize("statement", BY_CHILD)
def test_entries_with_an_invalid_inode(
    forge: Callable[..., Path], statement: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Some caused an internal error, `ls` hid some, and `cat` did not find some."""
    path = forge(statement)
    with Archive(path) as archive, pytest.raises(CorruptIndexError, match=BY_CHILD[statement]):
        archive.index.child(1, b"link")
    for command, *options in (["ls", "-R"], ["cat", "link"], ["verify"], ["extract", "-C", str(tmp_path / "out")]):
        assert run([command, str(path), *options]) == 1, command
        assert "internal error" not in capfd.readouterr().err


XATTRS = {
    "(1, x'', x'61')": False,
    "(1, CAST(printf('user.%.251c', 'a') AS BLOB), x'61')": False,
    "(1, x'757365722e61', zeroblob(65537))": False,
    "(1, x'6e6f707265666978', x'61')": True,
}


@pytest.mark.parametrize("values", XATTRS)
def test_impossible_extended_attributes(
    forge: Callable[..., Path], values: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """verify found no problem, extract ended in an internal error, and a mount showed two names for one attribute."""
    path = forge(f"INSERT INTO xattr VALUES {values}")
    if not XATTRS[values]:
        with Archive(path) as archive, pytest.raises(CorruptIndexError, match="inode 1 has impossible extended attri"):
            archive.xattrs(1)
    assert run(["verify", str(path)]) == 1
    assert "impossible name, or a value above 64 KiB" in capfd.readouterr().out
    run(["extract", str(path), "-C", str(tmp_path / "out")])
    assert "internal error" not in capfd.readouterr().err
