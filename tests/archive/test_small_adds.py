"""Generations whose index has only changes: they are small, and all of them are read."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest
from column_groups import CHANGE_GROUPS, Group, join
from forged_index import trailers
from oracle.archive import OracleError, read_archive
from xxhash import xxh3_64_intdigest

from gompfs._native.index import unpacked_size
from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.engine import select_engine
from gompfs.errors import CorruptIndexError
from gompfs.format import (
    MAX_CHANGES,
    GenerationHeader,
    LocalFile,
    Newest,
    align,
    encode_columns,
    find_newest,
    least_stored_size,
)
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source
from gompfs.verify import verify_archive

NUM_FILES = 1000


def newest_of(path: Path) -> Newest:
    file = LocalFile.open(path)
    try:
        return find_newest(file)
    finally:
        file.close()


def add(path: Path, name: str, content: bytes, **options: bool) -> int:
    """Adds a file. Returns by how much the archive grew."""
    file = path.parent / name
    file.write_bytes(content)
    size = path.stat().st_size
    add_to_archive(path, [open_source(file)], PackOptions(**options), engine=select_engine("cpu", 1))
    return path.stat().st_size - size


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of 1,000 empty files with names that do not compress."""
    folder, rng = tmp_path_factory.mktemp("large"), random.Random(1)
    with tarfile.open(folder / "tree.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for _ in range(NUM_FILES):
            tar.addfile(tarfile.TarInfo(rng.randbytes(16).hex()))
    assert run(["pack", str(folder / "tree.tar"), str(folder / "large.gomp")]) == 0
    return folder / "large.gomp"


@pytest.fixture
def copy(large: Path, tmp_path: Path) -> Path:
    path = tmp_path / "copy.gomp"
    path.write_bytes(large.read_bytes())
    return path


def test_many_small_adds(copy: Path) -> None:
    """After 64 changes, a whole index is stored; every generation can be cut off at its end."""
    whole, ends = newest_of(copy).footer.index_size, []
    for number in range(MAX_CHANGES + 3):
        grown = add(copy, f"file{number % 50}", b"%d\n" % number, check=number < 3)
        ends.append(copy.stat().st_size)
        newest = newest_of(copy)
        is_whole = number == MAX_CHANGES
        assert newest.footer.num_changes == (0 if is_whole else (number + 1) % (MAX_CHANGES + 1))
        assert grown < 1000 or is_whole
        if is_whole:
            assert 2 * whole < grown < 2 * whole + 8000
    content = copy.read_bytes()
    for number in (0, 40, MAX_CHANGES - 1, MAX_CHANGES, MAX_CHANGES + 2):
        copy.write_bytes(content[: ends[number]])
        with Archive(copy) as archive:
            assert archive.warnings == []
            assert verify_archive(archive).is_sound
            inode = archive.resolve(f"file{number % 50}")
            assert archive.read(inode.ino, 0, inode.size) == b"%d\n" % number
            assert archive.index.totals()[0] == 1 + NUM_FILES + min(number + 1, 50)
        reading = read_archive(copy.read_bytes())
        assert reading.content(reading.paths[b"file%d" % (number % 50)].ino, verify=True) == b"%d\n" % number


def test_a_large_add_stores_a_whole_index(copy: Path, large: Path) -> None:
    tree, rng = copy.parent / "more", random.Random(2)
    tree.mkdir()
    for _ in range(3 * NUM_FILES):
        (tree / rng.randbytes(16).hex()).touch()
    assert run(["add", str(tree), str(copy)]) == 0
    assert newest_of(copy).footer.num_changes == 0
    assert newest_of(copy).footer.index_size > 2 * newest_of(large).footer.index_size


def with_changes(path: Path, stored: bytes, columns: bytes, num_changes: int = 1) -> None:
    """Appends a generation with these changes and no blocks."""
    newest, content = newest_of(path), bytearray(path.read_bytes())
    start = align(newest.end, 64)
    begin, number = start + 64, newest.footer.generation + 1
    content += bytes(start - len(content))
    content += GenerationHeader(number, newest.superblock.uuid, begin, len(stored)).to_bytes()
    footer = newest.footer._replace(
        generation=number, start=start, index_size=len(stored), columns_size=len(columns),
        columns_xxh3=xxh3_64_intdigest(columns), previous_footer=newest.footer_offset, num_changes=num_changes,
    )  # fmt: skip
    path.write_bytes(content + trailers(footer, stored, begin))


def empty_changes(num_removed: int = 0) -> bytes:
    groups = {name: Group(0, dict.fromkeys(columns, b"")) for name, columns in CHANGE_GROUPS.items()}
    groups["meta"] = Group(2, {"key": b"next_ino\0words\0", "value": b"9999\0identifiers\0"})
    groups["removed_inode"] = Group(num_removed, {"ino": bytes(num_removed)})
    return join(groups)


@pytest.mark.parametrize("count", [MAX_CHANGES, MAX_CHANGES + 1])
def test_the_limit_of_changes_in_a_row(copy: Path, count: int) -> None:
    columns = empty_changes()
    for number in range(1, count + 1):
        with_changes(copy, encode_columns(columns, []), columns, number)
        if number <= MAX_CHANGES:
            newest_of(copy)
    if count <= MAX_CHANGES:
        with Archive(copy) as archive:
            assert archive.index.totals()[0] == 1 + NUM_FILES
        read_archive(copy.read_bytes())
        return
    with pytest.raises(CorruptIndexError, match="impossible fields"):
        Archive(copy)
    with pytest.raises(OracleError):
        read_archive(copy.read_bytes())


@pytest.mark.parametrize("num_changes", [2, 64, 65, 1 << 31])
def test_another_number_of_changes_than_the_chain_has(copy: Path, num_changes: int) -> None:
    with_changes(copy, encode_columns(empty_changes(), []), empty_changes(), num_changes)
    with pytest.raises(CorruptIndexError, match="impossible fields"):
        Archive(copy)


def test_an_index_in_the_middle_that_has_another_number_of_changes(copy: Path) -> None:
    columns = empty_changes()
    stored = encode_columns(columns, [])
    for num_changes in (1, 2):
        with_changes(copy, stored, columns, num_changes)
    newest_of(copy)
    with_changes(copy, stored, columns, 2)
    with pytest.raises(CorruptIndexError, match=r"generation 3, which is needed, are damaged: .* belongs to another"):
        Archive(copy)
    with pytest.raises(OracleError):
        read_archive(copy.read_bytes())


def test_the_limit_of_rows_of_changes(copy: Path) -> None:
    """Changes may not unpack to more than 256 times their stored size."""
    content = copy.read_bytes()
    for count, is_possible in ((200, True), (100_000, False)):
        columns = empty_changes(count)
        stored = encode_columns(columns, [])
        assert (unpacked_size(columns, True) <= 256 * len(stored)) == is_possible
        copy.write_bytes(content)
        with_changes(copy, stored, columns)
        if not is_possible:
            with pytest.raises(CorruptIndexError, match="too small for its rows"):
                Archive(copy)
            with pytest.raises(OracleError, match="too many rows"):
                read_archive(copy.read_bytes())
            stored = encode_columns(columns, [], least_stored_size(columns, is_changes=True))
            copy.write_bytes(content)
            with_changes(copy, stored, columns)
        newest_of(copy)


def test_changes_that_contradict_the_index(copy: Path) -> None:
    for columns in (b"\0" * 5, empty_changes() + b"\0", bytes(newest_of(copy).columns)):
        content = copy.read_bytes()
        with_changes(copy, encode_columns(columns, []), columns)
        assert run(["ls", str(copy)]) == 1
        copy.write_bytes(content)
