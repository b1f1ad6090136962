"""Small archives whose index seems to have unlimited rows: every command refuses them at once, in little memory."""

from __future__ import annotations

import resource
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forged_index import index_image

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.index.reader import IndexReader

PAGE = 512
COMMANDS = [["ls", "-R"], ["ls", "-l"], ["info"], ["verify"], ["cat", "small/00"], ["extract", "-C", "out"],
            ["stats", "wordcount"]]  # fmt: skip


def run_in_bounds(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a gompfs command with at most 1 GB of memory and 20 seconds."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

    return subprocess.run(
        [sys.executable, "-m", "gompfs", *arguments], cwd=cwd, timeout=20, capture_output=True, text=True,
        preexec_fn=bound, check=False,
    )  # fmt: skip


def small_pages(image: bytes, path: Path) -> bytearray:
    """Returns the same index with pages of 512 bytes, so that its b-trees are deep."""
    path.write_bytes(image)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("VACUUM")
    connection.close()
    return bytearray(path.read_bytes())


def root_of(image: bytearray, table: str) -> int:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(bytes(image))
    ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    return int(page)


def widen(image: bytearray, page: int) -> None:
    """Makes all cells of a page, and of the last page below it, point to the last child."""
    start = (page - 1) * PAGE
    if image[start] not in (2, 5):
        return
    (count,) = struct.unpack_from(">H", image, start + 3)
    last = image[start + 8 : start + 12]
    for (offset,) in struct.iter_unpack(">H", image[start + 12 : start + 12 + 2 * count]):
        image[start + offset : start + offset + 4] = last
    widen(image, int.from_bytes(last, "big"))


@pytest.fixture
def index_of(archive_copy: Path) -> bytes:
    return index_image(archive_copy)


@pytest.mark.parametrize("table", ["inode", "dirent", "extent"])
def test_pages_that_all_lead_to_one_child(
    archive_copy: Path, index_of: bytes, with_index: Callable[..., None], table: str, tmp_path: Path
) -> None:
    """`ls` and `extract` used unlimited memory; `info`, `verify` and statfs of a mount never ended."""
    image = small_pages(index_of, tmp_path / "index.sqlite")
    before = bytes(image)
    widen(image, root_of(image, table))
    assert image != before, "the table is deep enough"
    with_index(archive_copy, bytes(image))
    for command, *options in COMMANDS:
        answer = run_in_bounds([command, str(archive_copy), *options], tmp_path)
        assert answer.returncode == 1
        assert answer.stderr.count("\n") == 1
        assert f"{archive_copy}: the index is damaged: " in answer.stderr


def test_rows_out_of_order(
    archive_copy: Path, index_of: bytes, with_index: Callable[..., None], tmp_path: Path
) -> None:
    """Reading the inode numbers never ended, since each query continued after a number lower than the last one."""
    image = small_pages(index_of, tmp_path / "index.sqlite")
    page = root_of(image, "inode")
    while image[(page - 1) * PAGE] == 5:
        (page,) = struct.unpack_from(">I", image, (page - 1) * PAGE + 8)
    pointers = (page - 1) * PAGE + 8
    image[pointers : pointers + 4] = image[pointers + 2 : pointers + 4] + image[pointers : pointers + 2]
    with_index(archive_copy, bytes(image))
    for command, *options in COMMANDS:
        answer = run_in_bounds([command, str(archive_copy), *options], tmp_path)
        assert (answer.returncode, answer.stderr) == (
            1, f"gompfs: {archive_copy}: the index is damaged: the rows of a table are not in order\n"
        )  # fmt: skip


def test_a_query_that_takes_too_many_steps_ends(index_of: bytes) -> None:
    """A second line of defence, in case a query takes more steps than the size of an index can explain."""
    index = IndexReader(index_of, "a.gomp", 1 << 40, 16384)
    index._max_steps = 0
    with pytest.raises(CorruptIndexError, match="interrupted"):
        index._image.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n")


REFUSED = {
    "text in UTF-16": "its text is not UTF-8",
    "CREATE TABLE a (b INTEGER PRIMARY KEY AUTOINCREMENT)": "it has other tables than an index has",
    "ANALYZE": "it has other tables than an index has",
    "CREATE INDEX more ON dirent (ino)": "it has an index of its own",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_unusual_databases_are_refused(
    statement: str, archive_copy: Path, index_of: bytes, with_index: Callable[..., None]
) -> None:
    """All commands, and verify, accepted UTF-16 text, SQLite's own tables, and additional indexes."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(index_of)
    if statement == "text in UTF-16":
        image = bytearray(index_of)
        image[56:60] = b"\0\0\0\2"
    else:
        connection.execute(statement)
        if statement.startswith("CREATE TABLE"):
            connection.execute("INSERT INTO a VALUES (1)")
            connection.execute("DROP TABLE a")
        image = bytearray(connection.serialize())
    with_index(archive_copy, bytes(image))
    with pytest.raises(CorruptIndexError, match=REFUSED[statement]):
        Archive(archive_copy)


def test_an_index_of_no_bytes(archive_copy: Path, with_index: Callable[..., None]) -> None:
    """The error message had no reason at its end."""
    with_index(archive_copy, b"")
    with pytest.raises(ArchiveFormatError, match="the superblock locates no index"):
        Archive(archive_copy)


ROW = "(SELECT ino FROM dirent WHERE name = x'6c696e6b')"  # the inode of the symbolic link `link`
BY_CHILD = {
    "UPDATE dirent SET ino = 'x' WHERE name = x'6c696e6b'": "types",
    "UPDATE dirent SET ino = 1.5 WHERE name = x'6c696e6b'": "types",
    "UPDATE dirent SET ino = x'00' WHERE name = x'6c696e6b'": "types",
    "UPDATE dirent SET ino = 4611686018427387903 WHERE name = x'6c696e6b'": "points to an inode that does not exist",
    "UPDATE dirent SET name = CAST(name AS TEXT) WHERE name = x'6c696e6b'": "a name that is not a blob",
    f"UPDATE inode SET symlink_target = NULL WHERE ino = {ROW}": "impossible fields",
    f"UPDATE inode SET symlink_target = x'' WHERE ino = {ROW}": "impossible fields",
    f"UPDATE inode SET symlink_target = x'610062' WHERE ino = {ROW}": "impossible fields",
    f"UPDATE inode SET symlink_target = zeroblob(4096) WHERE ino = {ROW}": "impossible fields",
    f"UPDATE inode SET mode = 420 WHERE ino = {ROW}": "impossible fields",
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
    "(1, x'757365722e610062', x'61')": False,
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
