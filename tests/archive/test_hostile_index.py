"""Indexes with valid checksums and invalid content: clean errors, no crash, no endless loop."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import sqlite3
import stat
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from column_groups import changed, cut
from forged_index import index_columns, replace_columns

from gompfs.archive import Archive
from gompfs.archive.extract import Extractor
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import (
    ArchiveFormatError,
    CorruptIndexError,
    GompfsError,
    PackError,
    StatsUnavailableError,
)
from gompfs.mount.tree.operations import Operations
from gompfs.options import MountOptions, PackOptions
from gompfs.pack import add_to_archive, open_source
from gompfs.verify import verify_archive

Forge = Callable[..., Path]


def use_everything(path: Path, target: Path) -> None:
    """Does everything that commands do with an archive. Raises GompfsError for damage."""
    with Archive(path, cache_size=1 << 20) as archive:
        for _, inode in archive.walk():
            archive.xattrs(inode.ino)
            for start in range(0, min(inode.size, 4 << 20), 1 << 20) if stat.S_ISREG(inode.mode) else ():
                archive.read(inode.ino, start, 1 << 20)
        archive.index.totals()
        archive.paths()
        archive.index.binary_files()
        verify_archive(archive)
        archive.index.all_extents()
        for section in archive.sections:
            archive.read_section(section)
        Extractor(archive, target).extract([b""])


@pytest.fixture(autouse=True)
def bounded_memory():
    """Limits the address space to 3 GiB, since a forged number must not become an allocation."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


# The archive has more than nine parts.
OPENING = {
    "blocks after the file": "UPDATE segment SET archive_offset = archive_offset + 1000000",
    "blocks at the end of numbers": "UPDATE segment SET archive_offset = 9223372036854775792",
    "odd offset": "UPDATE segment SET archive_offset = archive_offset - 8",
    "sizes too large": (
        "UPDATE segment SET compressed_sizes = CAST(x'ffffffff' || substr(compressed_sizes, 5) AS BLOB)"
    ),
    "sizes of nothing": "UPDATE segment SET compressed_sizes = zeroblob(length(compressed_sizes))",
    "a part less everywhere": (
        "UPDATE segment SET part_sizes = substr(part_sizes, 9), part_kinds = substr(part_kinds, 2),"
        " head_sizes = substr(head_sizes, 5)"
    ),
    "an empty part": (
        "UPDATE segment SET part_sizes = CAST(part_sizes || zeroblob(8) AS BLOB), part_kinds ="
        " CAST(part_kinds || x'00' AS BLOB), head_sizes = CAST(head_sizes || zeroblob(4) AS BLOB)"
    ),
    "a part of all numbers": (
        "UPDATE segment SET part_sizes = CAST(x'ffffffffffffff7f' || substr(part_sizes, 9) AS BLOB)"
    ),
    "an unknown kind": "UPDATE segment SET part_kinds = CAST(x'04' || substr(part_kinds, 2) AS BLOB)",
    "a head after the file": ("UPDATE segment SET head_sizes = CAST(x'ffffffff' || substr(head_sizes, 5) AS BLOB)"),
    "heads after the file": "UPDATE segment SET heads_offset = 1 << 40, head_sizes ="
    " CAST(x'20000000' || substr(head_sizes, 5) AS BLOB)",
    "heads at an odd offset": "UPDATE segment SET heads_offset = 8",
    "section elsewhere": "INSERT INTO section VALUES (0, 'more', 5, 281474976710656, x'40000000')",
    "section of no blocks": "INSERT INTO section VALUES (0, 'more', 5, 64, x'')",
    "section of too many blocks": "INSERT INTO section VALUES (0, 'more', 0, 64, x'20000000')",
}


@pytest.mark.parametrize("statement", OPENING.values(), ids=OPENING)
def test_refused_when_opened(forge: Forge, statement: str) -> None:
    path = forge(statement)
    with pytest.raises(CorruptIndexError) as caught:
        Archive(path)
    assert caught.value.archive == str(path)


USING = {
    "extents behind the stream": "UPDATE extent SET stream_offset = stream_offset + 100000000",
    "extents at the end of numbers": "UPDATE extent SET stream_offset = 9223372036854775807",
    "extents over each other": "INSERT INTO extent SELECT ino, file_offset + 1, 0, 5 FROM extent",
    "empty extents": "UPDATE extent SET size = 0",
    "huge extents": "UPDATE extent SET size = 9223372036854775807",
    "huge mode": "UPDATE inode SET mode = 9223372036854775807 WHERE symlink_target IS NULL",
    "owner": "UPDATE inode SET uid = 4294967296",
    "group": "UPDATE inode SET gid = -1",
    "slash in a name": "UPDATE dirent SET name = CAST('a/' || ino AS BLOB)",
    "dots for a name": "INSERT INTO dirent VALUES (1, x'2e2e', 3)",
    "no name": "INSERT INTO dirent VALUES (1, x'', 3)",
    "a cycle": "INSERT INTO dirent SELECT ino, x'6379636c65', 1 FROM dirent WHERE name = x'626967'",
    "a longer cycle": (
        "INSERT INTO dirent SELECT i.ino, x'6379636c65', (SELECT ino FROM dirent WHERE"
        " name = x'626967') FROM inode i WHERE mode & 61440 = 16384"
    ),
    "a directory within itself": ("INSERT INTO dirent SELECT ino, x'73656c66', ino FROM dirent WHERE name = x'626967'"),
    "no root": "DELETE FROM inode WHERE ino = 1",
}


@pytest.mark.parametrize("statement", [pytest.param(value, id=key) for key, value in USING.items()])
def test_refused_when_used(forge: Forge, tmp_path: Path, statement: str) -> None:
    path = forge(statement)
    with pytest.raises(GompfsError) as caught:
        use_everything(path, tmp_path / "out")
    assert isinstance(caught.value, ArchiveFormatError | FileNotFoundError)
    assert caught.value.archive == str(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE extent SET stream_offset = 0",
        "DELETE FROM extent",
        "DELETE FROM dirent",
        "UPDATE inode SET size = 9223372036854775807 WHERE mode & 61440 = 32768",
        "UPDATE inode SET mtime_ns = -9223372036854775808",
        "UPDATE dirent SET ino = 999999",
        "UPDATE inode SET mode = 0 WHERE symlink_target IS NULL",
        "UPDATE inode SET mode = 65535 WHERE symlink_target IS NULL",
        "UPDATE meta SET value = 'odd'",
    ],
)
def test_odd_but_readable(forge: Forge, tmp_path: Path, statement: str) -> None:
    """Reading either works or raises a GompfsError."""
    path = forge(statement)
    with contextlib.suppress(GompfsError):
        use_everything(path, tmp_path / "out")


def test_impossible_extents_concern_their_file_only(forge: Forge, tree: Path) -> None:
    """Other files stay readable, although many files are looked up at once."""
    path = forge(
        "UPDATE extent SET size = 0 WHERE ino = (SELECT ino FROM dirent WHERE name = x'6e6f697365')",
        "UPDATE inode SET uid = -5 WHERE ino = (SELECT ino FROM dirent WHERE name = x'6c656166')",
    )
    with Archive(path) as archive:
        noise = archive.resolve("big/noise").ino
        archive.extents(noise - 1)
        archive.extents(noise + 1)
        with pytest.raises(CorruptIndexError, match="extents"):
            archive.extents(noise)
        assert archive.read(archive.resolve("big/text").ino, 0, 1 << 22) == (tree / "big/text").read_bytes()
        with pytest.raises(CorruptIndexError, match="fields"):
            archive.resolve("small/deep/deeper/leaf")


def numbers(count: int) -> str:
    return f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1}) "


def test_a_file_of_very_many_extents(forge: Forge, tmp_path: Path) -> None:
    """Each read searched all extents from the first on: extracting an archive of 2 MB took minutes."""
    count = 40_000
    path = forge(
        f"INSERT INTO inode VALUES (90000, 33188, 0, 0, {count}, 0, 1, 0, NULL)",
        "INSERT INTO dirent VALUES (1, x'6d616e79', 90000)",
        f"{numbers(count)} INSERT INTO extent SELECT 90000, i, i % 1000, 1 FROM n",
    )
    with Archive(path) as archive:
        begun = time.process_time()
        Extractor(archive, tmp_path / "out").extract([b"many"])
        assert time.process_time() - begun < 8
        assert (tmp_path / "out/many").read_bytes() == archive.read(90000, 0, count)
        assert archive.read(90000, 1234, 5) == (tmp_path / "out/many").read_bytes()[1234:1239]


def test_paths_of_deeply_nested_directories(forge: Forge, tmp_path: Path) -> None:
    """All paths of 2,000 nested directories, with a file in each, were kept in memory at once: 1 GB."""
    depth = 2000
    names = "CAST(substr(hex(zeroblob(200)), 1, 255) AS BLOB)"
    path = forge(
        f"{numbers(depth)} INSERT INTO inode SELECT 90000 + i, 16877, 0, 0, 0, 0, 2, 0, NULL FROM n",
        f"{numbers(depth)} INSERT INTO dirent SELECT iif(i, 89999 + i, 1), {names}, 90000 + i FROM n",
        f"{numbers(depth)} INSERT INTO inode SELECT 95000 + i, 33188, 0, 0, 0, 0, 1, 0, NULL FROM n",
        f"{numbers(depth)} INSERT INTO dirent SELECT 90000 + i, x'7a', 95000 + i FROM n",
    )
    with Archive(path) as archive:
        tracemalloc.start()
        try:
            longest = max(len(place) for place, _ in archive.walk())
            Extractor(archive, tmp_path / "out").extract([b""])
            with pytest.raises(StatsUnavailableError, match="memory"):
                archive.paths()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            subprocess.run(["rm", "-rf", tmp_path / "out"], check=True)  # too deep for pytest's cleanup
        assert longest == 256 * depth + 1
        assert peak < 64 << 20
        verify_archive(archive)


def test_sums_of_sizes_beyond_64_bits(forge: Forge) -> None:
    """A file that is one hole may have any size. Two such files made `info` and statfs of a mount fail."""
    path = forge("UPDATE inode SET size = 9223372036854775807 WHERE mode & 61440 = 32768")
    with Archive(path) as archive:
        num_files = sum(stat.S_ISREG(inode.mode) for _, inode in archive.walk()) - 1  # one file has two names
        assert archive.index.totals()[1] == num_files * ((1 << 63) - 1)
        blocks, *_ = Operations(archive, MountOptions()).statfs()
        assert 1 << 51 < blocks < 1 << 64


def test_extents_past_the_end_of_a_segment(forge: Forge) -> None:
    """The last block of a segment is short, and an extent beyond its end is in no block."""
    path = forge("UPDATE extent SET size = size + 16000 WHERE stream_offset = (SELECT MAX(stream_offset) FROM extent)")
    with Archive(path) as archive:
        extents = {inode.ino: archive.extents(inode.ino) for _, inode in archive.walk()}
        last = max(extents, key=lambda ino: max((e.stream_offset for e in extents[ino]), default=0))
        with pytest.raises(CorruptIndexError, match="outside"):
            archive.read_pieces(last, extents[last][-1].file_offset, extents[last][-1].size)


def test_an_extent_after_the_end_of_its_file(forge: Forge, tree: Path, tmp_path: Path) -> None:
    """Extracting read the extent in pieces up to its end, of which there were 2^42."""
    path = forge(
        "INSERT INTO extent SELECT ino, size + 5, 0, 4611686018427387904 FROM inode WHERE ino IN"
        " (SELECT ino FROM dirent WHERE name IN (x'6c656166', x'737061727365'))"
    )
    with Archive(path) as archive:
        Extractor(archive, tmp_path / "out").extract([b""])
    for name in ("small/deep/deeper/leaf", "sparse"):
        assert (tmp_path / "out" / name).read_bytes() == (tree / name).read_bytes()


def test_verify_reports_all_forgeries(forge: Forge) -> None:
    pristine = forge().read_bytes()
    for name, statement in USING.items():
        forge().write_bytes(pristine)
        with Archive(forge(statement)) as archive:
            assert verify_archive(archive).problems, name


def test_verify_lists_the_first_100_problems_of_a_kind(forge: Forge) -> None:
    with Archive(forge("UPDATE extent SET size = 0", "UPDATE inode SET uid = 1 << 40 WHERE ino = 3")) as archive:
        num_extents = len(archive.index.all_extents()) // 4
        reasons = [problem.reason for problem in verify_archive(archive).problems]
    assert sum(reason.endswith("is empty") for reason in reasons) == min(num_extents, 100)
    assert num_extents <= 100 or f"{num_extents - 100} more problems of this kind" in reasons
    assert any(reason.startswith("its owner 1099511627776") for reason in reasons)


def test_names_that_no_directory_leads_to_have_no_path(forge: Forge) -> None:
    path = forge("UPDATE dirent SET parent = ino WHERE name = x'64656570'")
    with Archive(path) as archive:
        assert b"small/00" in archive.paths().values()
        assert not any(b"deep" in name for name in archive.paths().values())


def test_adding_to_a_hostile_archive(forge: Forge, tmp_path: Path) -> None:
    """`add` repaired or kept forged facts silently. Now it refuses them and leaves the archive as it was."""
    sound = forge().read_bytes()
    for statement in (
        USING["a cycle"],
        "UPDATE meta SET value = '9' || value || 'x' WHERE key = 'next_ino'",
        "UPDATE meta SET value = '3' WHERE key = 'next_ino'",
        "DELETE FROM meta WHERE key = 'next_ino'",
        "DELETE FROM meta WHERE key = 'words'",
        "UPDATE meta SET value = 'syllables' WHERE key = 'words'",
        "INSERT INTO section VALUES (1, 'words', 0, 0, x'')",
    ):
        forge().write_bytes(sound)
        path = forge(statement)
        before = path.read_bytes()
        with pytest.raises(ArchiveFormatError) as caught:
            add_to_archive(path, [], PackOptions(Codec.GOMPRESSO_BIT), engine=select_engine("cpu"))
        assert caught.value.archive == str(path)
        assert path.read_bytes() == before


def test_adding_where_no_inode_number_is_left(forge: Forge, tree: Path) -> None:
    """`add` wrote inodes numbered 2^62 and above, which verify reports as problems."""
    path = forge("UPDATE meta SET value = '4611686018427387904' WHERE key = 'next_ino'")
    before = path.read_bytes()
    with Archive(path) as archive:
        assert not verify_archive(archive).problems
    with pytest.raises(PackError, match="no inode numbers left"):
        add_to_archive(path, [open_source(tree)], PackOptions(Codec.GOMPRESSO_BIT), engine=select_engine("cpu"))
    assert path.read_bytes() == before


def test_extracting_through_a_symlink(forge: Forge, tmp_path: Path) -> None:
    """A name that is first a symlink and later a directory must not lead outside of the target."""
    outside = tmp_path / "outside"
    outside.mkdir()
    target = os.fsencode(outside).hex()
    path = forge(
        f"INSERT INTO inode VALUES (5000, 41471, 0, 0, 1, 0, 1, 0, x'{target}')",
        "UPDATE dirent SET ino = 5000 WHERE parent = 1 AND name = x'736d616c6c'",
        "UPDATE dirent SET parent = 5000 WHERE parent = (SELECT ino FROM dirent WHERE name = x'64656570')",
    )
    with Archive(path) as archive:
        Extractor(archive, tmp_path / "out").extract([b""])
    assert os.listdir(outside) == []


@pytest.mark.parametrize("content", [b"", b"x", b"SQLite format 3\0" * 600, bytes(40960), b"\xff" * 1000])
def test_an_index_that_is_not_columns(archive_copy: Path, content: bytes) -> None:
    replace_columns(archive_copy, content)
    with pytest.raises(ArchiveFormatError) as caught:
        Archive(archive_copy)
    assert caught.value.archive == str(archive_copy)


def test_columns_with_random_bytes(archive_copy: Path, tmp_path: Path) -> None:
    columns, pristine = index_columns(archive_copy), archive_copy.read_bytes()
    groups = cut(columns)
    rng = random.Random(5)
    for number in range(60):
        archive_copy.write_bytes(pristine)
        group = rng.choice([name for name, group in groups.items() if group.num_rows])
        name = rng.choice([name for name, column in groups[group].columns.items() if column])
        column = bytearray(groups[group].columns[name])
        for _ in range(rng.choice([1, 5, 200])):
            column[rng.randrange(len(column))] = rng.choice([0, 1, 2, 127, 128, 255, rng.randrange(256)])
        replace_columns(archive_copy, changed(columns, f"{group}.{name}", bytes(column)))
        with contextlib.suppress(GompfsError):
            use_everything(archive_copy, tmp_path / str(number))


def test_the_version_of_sqlite() -> None:
    """Since SQLite 3.36, a deserialized image is read without a file, a journal or the write-ahead log."""
    assert sqlite3.sqlite_version_info >= (3, 36)
