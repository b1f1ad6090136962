"""Directories and layouts as columns of text: equal to single lookups, for any number of rows per call."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_hostile_index import USING
from tree_helpers import pack

from gompfs._native.blocks import BlockReader
from gompfs._native.fuse import Listing, ListingTable, NodeMapping
from gompfs.archive import Archive
from gompfs.errors import CorruptIndexError, GompfsError
from gompfs.index.packed_rows import DIRECTORIES, LAYOUTS
from gompfs.model import Extent, PackedRows

Forge = Callable[..., Path]
SECONDS, CAPACITY = 60, 1 << 30


@pytest.fixture
def archive(sound_archive: Path) -> Iterator[Archive]:
    with Archive(sound_archive) as archive:
        yield archive


def rows_of(packed: PackedRows) -> list[tuple[bytes, ...]]:
    """Returns the rows without those past the end of the range, which callers ignore."""
    separators = [b"/" if number == 1 and len(packed.columns) == 10 else b"," for number in range(len(packed.columns))]
    columns = (column.split(separator) for column, separator in zip(packed.columns, separators, strict=True))
    return [row for row in zip(*columns, strict=True) if int(row[0]) < packed.end]


def all_rows(archive: Archive, query: str, max_rows: int) -> list[tuple[bytes, ...]]:
    """Returns all rows, fetched call by call."""
    first, rows = 1, []
    while True:
        packed = archive.index.packed_rows(query, first, max_rows)
        assert packed.first == first < packed.end
        rows += rows_of(packed)
        if packed.is_last:
            return rows
        first = packed.end


@pytest.mark.parametrize("max_rows", [1, 2, 5, 20, 63, 64, 65, 10_000])
def test_all_rows(archive: Archive, max_rows: int) -> None:
    entries, extents = [], []
    for ino in sorted(archive.inode_numbers()):
        for name, inode in archive.index.directory(ino):
            entries.append((b"%d" % ino, name, *(b"%d" % field for field in inode[:8])))
        inode = archive.inode(ino)
        if stat.S_ISREG(inode.mode):
            pieces = archive.extents(ino) or [Extent(-1, -1, -1)]
            extents += [tuple(b"%d" % field for field in (ino, inode.size, *piece)) for piece in pieces]
    assert len(entries) > 60
    assert len(extents) > 60
    assert all_rows(archive, DIRECTORIES, max_rows) == entries
    assert all_rows(archive, LAYOUTS, max_rows) == extents


def test_no_rows_after_the_last(archive: Archive) -> None:
    behind = max(archive.inode_numbers()) + 1
    for query in (DIRECTORIES, LAYOUTS):
        assert archive.index.packed_rows(query, behind, 64) == PackedRows(behind, behind + 1, True, ())
        with pytest.raises(CorruptIndexError):
            archive.index.packed_rows(query, 1 << 63, 64)


@pytest.mark.parametrize("statement", [pytest.param(value, id=key) for key, value in USING.items()])
@pytest.mark.parametrize("max_rows", [3, 10_000])
def test_hostile_directories(forge: Forge, statement: str, max_rows: int) -> None:
    """If the fast path accepts what the index has, its result equals that of the slow path, unless that raises."""
    with Archive(forge(statement)) as archive:
        for node in range(1, 80):
            table = ListingTable(1 << 20)
            with contextlib.suppress(GompfsError, ValueError):
                packed = archive.index.packed_rows(DIRECTORIES, node, max_rows)
                table.insert_columns(packed.columns, packed.first, packed.end, NodeMapping(), SECONDS, 0)
            fast = table.use(node)
            with contextlib.suppress(GompfsError):
                slow = Listing(node, archive.index.directory(node), SECONDS)
                assert fast is None or fast.pack(0, CAPACITY) == slow.pack(0, CAPACITY)


@pytest.mark.parametrize("statement", [pytest.param(value, id=key) for key, value in USING.items()])
def test_hostile_layouts(forge: Forge, statement: str) -> None:
    """Extents that a reader accepts ascend, are not empty, and do not overlap."""
    with Archive(forge(statement)) as archive:
        for node in range(1, 80):
            with contextlib.suppress(GompfsError):
                extents = archive.extents(node)
                assert all(min(extent) >= 0 and extent.size > 0 for extent in extents)
                ends = [extent.file_offset + extent.size for extent in extents]
                assert all(end <= extent.file_offset for end, extent in zip(ends, extents[1:], strict=False))


def test_many_files_are_known_at_once(archive: Archive) -> None:
    reader = BlockReader(archive.num_blocks, archive.block_size, 1)
    layouts = archive.index.packed_rows(LAYOUTS, 1, 10_000)
    reader.add_columns(layouts.columns, layouts.end)
    inodes = [archive.inode(ino) for ino in sorted(archive.inode_numbers())]
    assert [reader.knows(inode.ino) for inode in inodes] == [stat.S_ISREG(inode.mode) for inode in inodes]
    for column, text in [(0, b"x"), (1, b"-1"), (2, b"0,5"), (3, b"-1"), (4, b"0"), (4, b"-2"), (4, b"")]:
        bad = [b"7", b"100", b"0", b"0", b"100"]
        bad[column] = text
        with pytest.raises(ValueError, match="impossible"):
            reader.add_columns(bad, 100)
    overlapping = [b"7,7", b"100,100", b"0,50", b"0,0", b"51,10"]
    with pytest.raises(ValueError, match="impossible"):
        reader.add_columns(overlapping, 100)


def test_names_of_any_bytes(tmp_path: Path) -> None:
    names = sorted({os.fsencode(f"{character}{number}") for character in ",\n \udcff'\"\\" for number in range(300)})
    (tmp_path / "tree").mkdir()
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path / "tree"), name))).touch()
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    with Archive(tmp_path / "a.gomp") as archive:
        assert [row[1] for row in all_rows(archive, DIRECTORIES, 100)] == names
