"""Columns of an index: the rows that SQLite has are those that come back, in an image that SQLite accepts."""

from __future__ import annotations

import random
import sqlite3

import pytest
from column_groups import GROUPS, Group, changed, columns_of_image, cut, join, numbers, signed
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.index_columns import read_columns

from gompfs._native.index import FileRows, image_of
from gompfs.index.schema import script, tables

TABLES = ("meta", "inode", "dirent", "extent", "xattr", "segment", "section", "binary_file", "generation")
DIRECTORY, FILE, LINK = 0o40755, 0o100644, 0o120777
EMPTY = {name: Group(0, dict.fromkeys(columns, b"")) for name, columns in GROUPS.items()}
LARGEST = (1 << 63) - 1

Row = tuple[object, ...]
Rows = dict[str, list[Row]]


def database(rows: Rows) -> sqlite3.Connection:
    """Returns an index into which SQL has inserted these rows."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(script())
    for table, inserted in rows.items():
        for row in inserted:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return connection


def rows_of(image: bytes | memoryview) -> Rows:
    """Returns the rows of all tables, after SQLite has checked the image."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(image)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("SELECT name, sql FROM sqlite_master").fetchall() == tables()
    found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    connection.close()
    return found


def check(rows: Rows) -> bytes:
    """Checks that rows are the same after they were columns. Returns the columns."""
    connection = database(rows)
    columns, ends = columns_of_image(connection.serialize())
    assert ends[-1] == len(columns)
    image = image_of(columns, tables())
    found, slow = rows_of(image), read_columns(columns)
    for table in TABLES:
        expected = connection.execute(f"SELECT * FROM {table}").fetchall()
        if table == "inode":
            expected = [(*row[:6], link_count(rows, row), *row[7:]) for row in expected]
        assert found[table] == expected, table
        assert getattr(slow, table) == expected, table
    connection.close()
    assert columns_of_image(image)[0] == columns == join(cut(columns))
    assert image_of(columns, tables()) == image
    return columns


def link_count(rows: Rows, inode: Row) -> int:
    """Returns the number of names of an inode or, for a directory, 2 plus the number of its subdirectories."""
    directories = {row[0] for row in rows["inode"] if isinstance(row[1], int) and row[1] & 0o170000 == 0o40000}
    if inode[0] not in directories:
        return sum(ino == inode[0] for _, _, ino in rows.get("dirent", []))
    return 2 + sum(parent == inode[0] and ino in directories for parent, _, ino in rows.get("dirent", []))


def inode(ino: int, mode: int = FILE, size: int = 0, target: bytes | None = None) -> Row:
    return ino, mode, 0, 0, size, 0, 0, 0, target


def test_no_rows() -> None:
    assert check({"inode": []}) == join(EMPTY) == bytes(sum(1 + len(columns) for columns in GROUPS.values()))


def test_a_column_of_numbers_stores_bytes_of_one_position_together() -> None:
    """The example of docs/format.md."""
    assert numbers(5, 300, 6) == bytes.fromhex("05 ac 06 02")
    columns = check({"inode": [inode(1, size=5), inode(2, size=300), inode(3, size=6)]})
    assert cut(columns)["inode"].columns["size"] == numbers(5, 300, 6)


INTEGERS = st.one_of(st.integers(-(1 << 63), LARGEST), st.integers(-200, 200))
NUMBERS = st.one_of(st.integers(0, LARGEST), st.integers(0, 300))
INOS = st.one_of(st.integers(1, LARGEST), st.integers(1, 30))
NAMES = st.one_of(
    st.binary(max_size=5).map(lambda name: name.replace(b"\0", b"")),
    st.binary(max_size=1500).map(lambda name: name.replace(b"\0", b"x")),
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
U32 = st.integers(0, (1 << 32) - 1)

Blocks, Parts = list[tuple[int, int]], list[tuple[int, int, int]]


def packed(values: list[int], size: int) -> bytes:
    return b"".join(value.to_bytes(size, "little") for value in values)


def segments(items: list[tuple[Blocks, Parts]]) -> list[Row]:
    """Returns rows of the table segment. Blocks are given as (compressed_size, codec), parts as (kind, size, head)."""
    rows: list[Row] = []
    first_block = 0
    for number, (blocks, parts) in enumerate(items):
        rows.append(
            (
                number, first_block, 16 * number, packed([size for size, _ in blocks], 4),
                bytes(codec for _, codec in blocks), bytes(kind for kind, _, _ in parts),
                packed([size for _, size, _ in parts], 8), LARGEST - number, packed([head for _, _, head in parts], 4),
            )
        )  # fmt: skip
        first_block += len(blocks)
    return rows


def with_target(row: Row, target: bytes) -> Row:
    is_link = isinstance(row[1], int) and row[1] & 0o170000 == 0o120000
    return (*row, target if is_link else None)


def lists(*fields: st.SearchStrategy[object], num_keys: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(*fields), max_size=30).map(
        lambda rows: list({row[:num_keys]: row for row in rows}.values())
    )


MODES = st.one_of(INTEGERS, st.sampled_from([DIRECTORY, FILE, LINK]))
INODE_FIELDS = (INOS, MODES, INTEGERS, INTEGERS, NUMBERS, INTEGERS, INTEGERS, NUMBERS)
ROWS = st.fixed_dictionaries(
    {
        "meta": lists(TEXTS, TEXTS, num_keys=1),
        "inode": lists(*INODE_FIELDS, NAMES, num_keys=1).map(
            lambda rows: [with_target(row[:8], row[8]) for row in rows]  # type: ignore[arg-type]
        ),
        "dirent": lists(NUMBERS, NAMES, NUMBERS, num_keys=2),
        "extent": lists(NUMBERS, NUMBERS, NUMBERS, NUMBERS, num_keys=2),
        "xattr": lists(NUMBERS, NAMES, st.binary(max_size=3000), num_keys=2),
        "segment": st.lists(
            st.tuples(
                st.lists(st.tuples(U32, st.integers(0, 255)), max_size=5),
                st.lists(st.tuples(st.integers(0, 255), NUMBERS, U32), max_size=5),
            ),
            max_size=4,
        ).map(segments),
        "section": lists(
            NUMBERS,
            TEXTS,
            NUMBERS,
            NUMBERS,
            st.binary(max_size=40).map(lambda raw: raw + bytes(-len(raw) % 4)),
            num_keys=2,
        ),
        "binary_file": lists(INOS, num_keys=1),
        "generation": st.lists(st.tuples(INTEGERS, NUMBERS, NUMBERS, TEXTS, TEXTS), max_size=4).map(
            lambda rows: [(number, *row) for number, row in enumerate(rows, 1)]
        ),
    }
)


@settings(max_examples=33, deadline=None)
@given(ROWS)
def test_any_rows(rows: Rows) -> None:
    check(rows)


@pytest.mark.parametrize("count", [*range(40), 97, 250, 251, 252, 253, 1000])
def test_any_number_of_records(count: int) -> None:
    """With 4 records in a page, 1,000 records need b-trees of five levels."""
    value = bytes(950)
    check({"inode": [], "xattr": [(number, b"user.a", value) for number in range(count)]})


@pytest.mark.parametrize("count", [0, 1, 2, 508, 509, 510, 511, 512, 513, 1019, 1020, 1021, 1022, 1023])
def test_any_number_of_rows(count: int) -> None:
    """With a row in a page, an interior page has about 510 children."""
    rows = [inode(number + 1, LINK, target=bytes([1 + number % 255]) * 3900) for number in range(count)]
    columns, _ = columns_of_image(database({"inode": rows}).serialize())
    assert [row[8] for row in rows_of(image_of(columns, tables()))["inode"]] == [row[8] for row in rows]


@pytest.mark.parametrize("size", [*range(985, 1010), 4040, 4060, 4090, 4100, 5075, 5090, 8190, 65536])
def test_records_around_the_size_of_a_page(size: int) -> None:
    rows: list[Row] = [(number, b"user.a", bytes([number]) * size) for number in range(6)]
    targets = [inode(number + 1, LINK, target=b"t" * (size - number)) for number in range(6)]
    check({"xattr": rows, "inode": targets})


def test_many_rows() -> None:
    rng = random.Random(1)
    inodes = [inode(ino, rng.choice([FILE, DIRECTORY]), rng.randrange(1 << 20)) for ino in range(1, 1000)]
    names: list[Row] = [
        (parent, b"%x" % rng.getrandbits(60), rng.randrange(1100)) for parent in range(40) for _ in range(70)
    ]
    extents: list[Row] = [(ino, begin, rng.randrange(1 << 40), 5) for ino in range(2, 900) for begin in (0, 7)]
    FileRows(check({"inode": inodes, "dirent": names, "extent": extents}))


def test_differences_wrap() -> None:
    values = [-(1 << 63), LARGEST, -1, 0, LARGEST, -(1 << 63)]
    check(
        {"inode": [(n, FILE, value, -value - 1, LARGEST, value, 0, LARGEST, None) for n, value in enumerate(values, 1)]}
    )


IMPOSSIBLE = {
    "a negative size": "INSERT INTO inode VALUES (1, 33188, 0, 0, -1, 0, 0, 0, NULL)",
    "inode 0": "INSERT INTO inode VALUES (0, 33188, 0, 0, 0, 0, 0, 0, NULL)",
    "a size of text": "INSERT INTO inode VALUES (1, 33188, 0, 0, 'x', 0, 0, 0, NULL)",
    "a fraction": "INSERT INTO inode VALUES (1, 33188, 0.5, 0, 0, 0, 0, 0, NULL)",
    "a link without a target": "INSERT INTO inode VALUES (1, 41471, 0, 0, 0, 0, 0, 0, NULL)",
    "a target of a file": "INSERT INTO inode VALUES (1, 33188, 0, 0, 0, 0, 0, 0, x'61')",
    "a NUL in a name": "INSERT INTO dirent VALUES (1, x'6100', 2)",
    "a name of text": "INSERT INTO dirent VALUES (1, 'a', 2)",
    "an offset below 0": "INSERT INTO extent VALUES (1, 0, -5, 2)",
    "parts without whole numbers": "INSERT INTO segment VALUES (0, 0, 0, x'', x'', x'00', x'00', 0, x'00000000')",
    "fewer codecs than blocks": "INSERT INTO segment VALUES (0, 0, 0, x'00000000', x'', x'', x'', 0, x'')",
    "segment 1": "INSERT INTO segment VALUES (1, 0, 0, x'', x'', x'', x'', 0, x'')",
    "another first block": "INSERT INTO segment VALUES (0, 1, 0, x'', x'', x'', x'', 0, x'')",
    "generation 2": "INSERT INTO generation VALUES (2, 0, 0, 0, '', '')",
    "a comment of bytes": "INSERT INTO generation VALUES (1, 0, 0, 0, '', x'61')",
    "no table": "DROP TABLE xattr",
}


@pytest.mark.parametrize("statement", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_rows_that_columns_cannot_store(statement: str) -> None:
    connection = database({})
    connection.execute(statement)
    with pytest.raises(ValueError, match=r"\w"):
        columns_of_image(connection.serialize())
    connection.close()


@pytest.mark.parametrize("image", [b"", b"x" * 5000, b"SQLite format 3\0" + bytes(5000)])
def test_what_is_no_database_has_no_columns(image: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        columns_of_image(image)


SOUND: Rows = {
    "meta": [("a", "b"), ("c", "d")],
    "inode": [inode(1, DIRECTORY), inode(2, FILE, 300), inode(3, LINK, 1, b"t")],
    "dirent": [(1, b"a", 2), (1, b"b", 3)],
    "extent": [(2, 0, 0, 100), (2, 100, 200, 200)],
    "xattr": [(2, b"user.a", b"value"), (2, b"user.b", b"")],
    "segment": segments([([(50, 2), (60, 2)], [(0, 300, 0)]), ([], [])]),
    "section": [(0, "a", 5, 64, bytes(4)), (0, "b", 5, 64, b"")],
    "binary_file": [(2,)],
    "generation": [(1, -5, 3, 0, "pack", "\u00e9"), (2, 300, 1, 200, "add", "")],
}


def test_columns_that_are_cut_off_anywhere_are_refused() -> None:
    columns = check(SOUND)
    for size in range(len(columns)):
        with pytest.raises(ValueError, match=r"\w"):
            image_of(columns[:size], tables())
    with pytest.raises(ValueError, match="bytes follow its columns"):
        image_of(columns + b"\0", tables())


@pytest.mark.parametrize("place", [f"{group}.{name}" for group, names in GROUPS.items() for name in names])
def test_the_length_of_each_column_is_checked(place: str) -> None:
    columns = check(SOUND)
    group, name = place.split(".")
    column = cut(columns)[group].columns[name]
    for other in (column[:-1], column + b"\0", column + b"\xff"):
        with pytest.raises(ValueError, match=r"\w"):
            image_of(changed(columns, place, other), tables())


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("num_rows", [0, 5, 1 << 30, (1 << 64) - 1])
def test_the_number_of_rows_is_checked(group: str, num_rows: int) -> None:
    groups = cut(check(SOUND))
    assert groups[group].num_rows not in (0, 5)
    groups[group].num_rows = num_rows
    with pytest.raises(ValueError, match=r"\w"):
        image_of(join(groups), tables())


def test_random_columns_are_read_as_the_slow_reader_reads_them() -> None:
    """Both refuse the same columns, and find the same rows in the others."""
    columns = check(SOUND)
    rng = random.Random(2)
    num_read = 0
    for _ in range(4000):
        groups = cut(columns)
        for _ in range(rng.choice((1, 1, 2))):
            group = rng.choice(list(groups.values()))
            name = rng.choice(list(group.columns))
            column = bytearray(group.columns[name])
            if column and rng.random() < 0.8:
                column[rng.randrange(len(column))] = rng.choice((0, 1, 2, 3, 127, 128, 255, rng.randrange(256)))
            else:
                column += rng.choice((b"\0", b"\1", b"\x80", signed(-1), b"\xff" * 9 + b"\1"))
            group.columns[name] = bytes(column)
        raw = join(groups)
        try:
            expected = read_columns(raw)
        except ValueError:
            with pytest.raises(ValueError, match=r"\w"):
                image_of(raw, tables())
        else:
            num_read += 1
            found = rows_of(image_of(raw, tables()))
            assert all(found[table] == getattr(expected, table) for table in TABLES)
    assert 200 < num_read < 3800
