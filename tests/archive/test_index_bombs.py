"""Small archives whose index seems to have unlimited rows: every command refuses them at once, in little memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from column_groups import GROUPS, Group, changed, join, numbers, signed
from forged_index import index_columns, replace_columns

from gompfs._native.index import image_of
from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.index.schema import tables

COMMANDS = [["ls", "-R"], ["ls", "-l"], ["info"], ["verify"], ["cat", "small/00"], ["extract", "-C", "out"],
            ["stats", "wordcount"]]  # fmt: skip


def run_in_bounds(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a gompfs command with at most 1 GB of memory and 20 seconds."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

    return subprocess.run(
        [sys.executable, "-m", "gompfs", *arguments], cwd=cwd, timeout=20, capture_output=True, text=True,
        errors="replace", preexec_fn=bound, check=False,
    )  # fmt: skip


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
def test_the_image_has_at_most_16_times_the_bytes_of_the_columns(table: str) -> None:
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
    assert 5 * len(raw) < len(image_of(raw, tables())) <= 16 * len(raw) + 16 * 4096


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
