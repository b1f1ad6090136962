"""The check of an image's pages accepts all that SQLite writes, and refuses pages that would be read without end."""

from __future__ import annotations

import random
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gompfs._native.index import check_pages

PAGE_SIZES = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]
TABLES = """
    CREATE TABLE row (number INTEGER PRIMARY KEY, content);
    CREATE TABLE pair (first, second, content, PRIMARY KEY (first, second)) WITHOUT ROWID;
    CREATE TABLE indexed (first, second, content, PRIMARY KEY (first, second));
"""
NUM_KEYS = {"row": 0, "pair": 2, "indexed": 2, "sqlite_autoindex_indexed_1": 2}


def new_image(page_size: int, fill: Callable[[sqlite3.Connection], object], *pragmas: str) -> bytes:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for pragma in (f"page_size = {page_size}", *pragmas):
        connection.execute(f"PRAGMA {pragma}")
    connection.executescript(TABLES)
    connection.execute("BEGIN")
    fill(connection)
    if connection.in_transaction:
        connection.execute("COMMIT")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    image = connection.serialize()
    connection.close()
    return image


def roots_of(image: bytes) -> list[tuple[int, int]]:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(image)
    rows = connection.execute("SELECT name, rootpage FROM sqlite_master").fetchall()
    connection.close()
    return [(page, NUM_KEYS[name]) for name, page in rows]


def check(image: bytes) -> None:
    check_pages(image, [])
    check_pages(image, roots_of(image))


def fill_much(seed: int, size: int) -> Callable[[sqlite3.Connection], None]:
    """Inserts rows of many sizes in random order, and deletes some of them."""

    def fill(connection: sqlite3.Connection) -> None:
        rng = random.Random(seed)
        for number in range(size):
            content = rng.randbytes(rng.choice([0, 3, 50, 300, 5000]) + rng.randrange(40))
            name = rng.randbytes(rng.choice([1, 8, 255])).hex().encode()
            connection.execute("INSERT INTO row VALUES (?, ?)", (rng.getrandbits(63) - (1 << 62), content))
            for table in ("pair", "indexed"):
                key = rng.choice([number, -number, float(number), str(number)])
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", (key, name, content))
        connection.execute("INSERT INTO row VALUES (NULL, zeroblob(1000000))")
        connection.execute("DELETE FROM row WHERE number % 3 = 0")
        connection.execute("DELETE FROM indexed WHERE abs(first) % 5 = 1")

    return fill


@pytest.mark.parametrize("pragma", ["auto_vacuum = NONE", "auto_vacuum = FULL", "auto_vacuum = INCREMENTAL"])
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_images_of_sqlite_pass(page_size: int, pragma: str) -> None:
    check(new_image(page_size, lambda connection: None, pragma))
    image = new_image(page_size, fill_much(page_size, 700), pragma)
    check(image)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(image)
    connection.execute("VACUUM")
    check(connection.serialize())


def test_an_image_with_reserved_bytes_and_extra_pages_passes() -> None:
    image = new_image(4096, fill_much(1, 100))
    check(image + bytes(8192))
    unversioned = bytearray(image)
    unversioned[28:32] = bytes(4)
    check(bytes(unversioned))


VALUES = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-3, 3),
    st.floats(allow_nan=False),
    st.binary(max_size=700),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40),
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(PAGE_SIZES),
    st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=60),
    st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), VALUES), max_size=60),
    st.sampled_from([0, 2]),
)
def test_any_values_pass(page_size: int, pairs: list[object], rows: list[object], auto_vacuum: int) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.executemany("INSERT OR REPLACE INTO pair VALUES (?, ?, ?)", pairs)
        connection.executemany("INSERT OR REPLACE INTO indexed VALUES (?, ?, ?)", pairs)
        connection.executemany("INSERT OR REPLACE INTO row VALUES (?, ?)", rows)
        connection.execute("DELETE FROM pair WHERE first > 0")

    check(new_image(page_size, fill, f"auto_vacuum = {auto_vacuum}"))


@pytest.mark.slow
def test_an_image_beyond_the_lock_byte_passes(tmp_path: Path) -> None:
    """SQLite does not use the page that contains byte 2^30."""
    path = tmp_path / "large.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA page_size = 65536; PRAGMA journal_mode = OFF;" + TABLES)
    for _ in range(3):
        connection.execute("INSERT INTO row VALUES (NULL, zeroblob(400000000))")
    roots = connection.execute("SELECT name, rootpage FROM sqlite_master").fetchall()
    connection.close()
    check_pages(path.read_bytes(), [(page, NUM_KEYS[name]) for name, page in roots])


def test_a_check_takes_about_2_milliseconds_for_1000_pages() -> None:
    """A mount must be ready in 100 ms, and the index of a kernel source tree has 1,700 pages."""

    def fill(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO pair VALUES (?, ?, ?)", ((n // 20, b"some-name-%d.c" % n, n) for n in range(200_000))
        )

    image = new_image(4096, fill)
    roots = roots_of(image)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        check_pages(image, roots)
        times.append(time.perf_counter() - start)
    assert min(times) < len(image) / 4096 / 1000 * 0.02, "ten times what it takes on a quiet machine"


# Images made by an attacker

PAGE = 512


def deep_image() -> tuple[bytearray, dict[str, int]]:
    """Returns an image with interior pages in each table, and the root page of each table."""

    def fill(connection: sqlite3.Connection) -> None:
        for number in range(400):
            connection.execute("INSERT INTO row VALUES (?, ?)", (number, bytes(20)))
            connection.execute("INSERT INTO pair VALUES (?, 1, ?)", (number, bytes(20)))
        connection.execute("INSERT INTO row VALUES (1000, zeroblob(3000))")
        connection.execute("INSERT INTO row VALUES (1001, zeroblob(3000))")
        connection.execute("INSERT INTO row VALUES (1002, zeroblob(9000))")
        connection.execute("DELETE FROM row WHERE number = 1002")

    image = bytearray(new_image(PAGE, fill))
    connection = sqlite3.connect(":memory:")
    connection.deserialize(bytes(image))
    roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master").fetchall())
    connection.close()
    return image, roots


def cell_offsets(image: bytearray, page: int) -> list[int]:
    start = (page - 1) * PAGE
    is_leaf = image[start] in (10, 13)
    count = struct.unpack_from(">H", image, start + 3)[0]
    return [start + offset for offset in struct.unpack_from(f">{count}H", image, start + (8 if is_leaf else 12))]


def children(image: bytearray, page: int) -> list[int]:
    cells = [struct.unpack_from(">I", image, cell)[0] for cell in cell_offsets(image, page)]
    return [*cells, struct.unpack_from(">I", image, (page - 1) * PAGE + 8)[0]]


def leaves(image: bytearray, page: int) -> list[int]:
    if image[(page - 1) * PAGE] in (10, 13):
        return [page]
    return [leaf for child in children(image, page) for leaf in leaves(image, child)]


def refused(image: bytearray, roots: dict[str, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_pages(bytes(image), [(page, NUM_KEYS[name]) for name, page in roots.items()])


@pytest.mark.parametrize("table", ["row", "pair"])
def test_pages_that_all_lead_to_one_child_are_refused(table: str) -> None:
    image, roots = deep_image()
    child = children(image, roots[table])[-1]
    for cell in cell_offsets(image, roots[table]):
        struct.pack_into(">I", image, cell, child)
    refused(image, roots, f"page {child} is used twice|not in order")


@pytest.mark.parametrize("table", ["row", "pair"])
def test_a_page_that_leads_to_itself_is_refused(table: str) -> None:
    image, roots = deep_image()
    struct.pack_into(">I", image, cell_offsets(image, roots[table])[0], roots[table])
    refused(image, roots, f"page {roots[table]} is used twice")


def test_tables_that_share_a_root_are_refused() -> None:
    image, roots = deep_image()
    refused(image, {**roots, "indexed": roots["pair"]}, "used twice")


@pytest.mark.parametrize("page", [0, 1, 1 << 31])
def test_an_invalid_root_page_is_refused(page: int) -> None:
    image, roots = deep_image()
    refused(image, {**roots, "row": page}, "there is no page|used twice")


def test_overflow_chains_that_share_pages_are_refused() -> None:
    image, roots = deep_image()
    first, second = [cell for leaf in leaves(image, roots["row"]) for cell in cell_offsets(image, leaf)][-2:]
    size = struct.unpack_from(">H", image, first)[0]
    assert size == struct.unpack_from(">H", image, second)[0], "both records have one size"
    payload = (size >> 8 & 0x7F) << 7 | size & 0x7F
    least = (PAGE - 12) * 32 // 255 - 23
    kept = least + (payload - least) % (PAGE - 4)
    kept = kept if kept <= PAGE - 35 else least
    place = 2 + 2 + kept
    image[second + place : second + place + 4] = image[first + place : first + place + 4]
    refused(image, roots, "used twice")


def test_records_that_claim_more_than_the_image_are_refused() -> None:
    image, roots = deep_image()
    leaf = leaves(image, roots["row"])[0]
    cell = cell_offsets(image, leaf)[0]
    image[cell : cell + 5] = b"\x87\xff\xff\xff\x7f"
    refused(image, roots, "there is no page|longer than its page|used twice|not in order")


def test_cells_that_share_bytes_are_refused() -> None:
    """Otherwise, a page of 64 KiB could hold 10,000 records of 60 KiB each."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("PRAGMA page_size = 65536;" + TABLES)
    connection.execute("INSERT INTO row VALUES (1, zeroblob(60000))")
    image = bytearray(connection.serialize())
    roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master").fetchall())
    start = (roots["row"] - 1) * 65536
    pointer = image[start + 8 : start + 10]
    struct.pack_into(">H", image, start + 3, 2)
    image[start + 10 : start + 12] = pointer
    refused(image, roots, "overlap|not in order")


def test_a_cyclic_freelist_is_refused() -> None:
    image, roots = deep_image()
    trunk = struct.unpack_from(">I", image, 32)[0]
    struct.pack_into(">I", image, (trunk - 1) * PAGE, trunk)
    refused(image, roots, f"page {trunk} is used twice")


@pytest.mark.parametrize("table", ["row", "pair"])
def test_keys_out_of_order_are_refused(table: str) -> None:
    """A query that continues after the last key of the rows before would never end."""
    image, roots = deep_image()
    leaf = leaves(image, roots[table])[0]
    pointers = (leaf - 1) * PAGE + 8
    image[pointers : pointers + 4] = image[pointers + 2 : pointers + 4] + image[pointers : pointers + 2]
    refused(image, roots, "not in order")


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (0, b"X", "not a database"),
        (16, b"\0\3", "impossible size"),
        (18, b"\2\2", "WAL"),
        (20, b"\xff", "impossible size"),
        (28, b"\0\1\0\0", "shorter"),
        (56, b"\0\0\0\2", "UTF-8"),
        (36, b"\0\0\0\xff", "freelist"),
        (100, b"\7", "unknown type"),
        (103, b"\xff\xff", "too many cells"),
        (108, b"\xff\xff", "outside its page"),
    ],
)
def test_invalid_headers_are_refused(offset: int, value: bytes, reason: str) -> None:
    image, roots = deep_image()
    image[offset : offset + len(value)] = value
    refused(image, roots, reason)


def test_random_bytes_do_no_harm() -> None:
    """They are refused or accepted at once, and SQLite reads what is accepted in bounded time."""
    sound, roots = deep_image()
    rng = random.Random(3)
    for _ in range(3000):
        image = bytearray(sound)
        for _ in range(rng.choice([1, 2, 10])):
            image[rng.randrange(len(image))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        try:
            check_pages(bytes(image), [(page, NUM_KEYS[name]) for name, page in roots.items()])
        except ValueError:
            pass
