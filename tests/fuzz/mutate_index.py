"""Mutations of the index: of its rows and its schema by SQL, and of the pages of SQLite's file format."""

from __future__ import annotations

import random
import sqlite3
import struct

from taken_apart import TakenApart

TABLES = {
    "meta": ("key", "value"),
    "inode": ("ino", "mode", "uid", "gid", "size", "mtime_ns", "nlink", "rdev", "symlink_target"),
    "dirent": ("parent", "name", "ino"),
    "extent": ("ino", "file_offset", "stream_offset", "size"),
    "xattr": ("ino", "name", "value"),
    "segment": (
        "number",
        "first_block",
        "archive_offset",
        "compressed_sizes",
        "codecs",
        "part_kinds",
        "part_sizes",
        "heads_offset",
        "head_sizes",
    ),
    "section": ("segment", "kind", "uncompressed_size", "archive_offset", "compressed_sizes"),
    "binary_file": ("ino",),
}
_NUMBERS = (
    *(0, 1, -1, 2, 3, 4095, 4096, 16383, 16384, 65535, 65536, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 32) - 1),
    *((1 << 53) + 1, (1 << 61), (1 << 62) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63)),
)
_MODES = (
    0,
    0o644,
    0o10644,
    0o20644,
    0o40755,
    0o60644,
    0o100644,
    0o104755,
    0o120777,
    0o140755,
    0o170000,
    0o100000,
    1 << 16,
)
_NAMES = (
    *(b"", b".", b"..", b"a/b", b"/", b"a\0b", b"\0", b"x" * 255, b"x" * 256, b"x" * 5000, b"stats", b".gompfs"),
    *(b"\xff\xfe", b"new\nline", b"tab\there", b"back\\slash", b"-rf", b"--help", b"\x1b[31m", b"word", b"files"),
)
_TARGETS = (b"", b"\0", b"a\0b", b".", b"..", b"../..", b"/", b"/etc/passwd", b"x" * 4095, b"x" * 5000, b"loop")
_XATTR_NAMES = (
    b"",
    b"user.",
    b"user.a\0b",
    b"\0",
    b"user." + b"x" * 300,
    b"trusted.x",
    b"security.capability",
    b"none",
)
_TEXTS = ("", "text", "letters", "whitespace", "identifiers", "9" * 30, "-1", "\u0663", "grammar", "other", "1.5")


def index_rows(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes, copies, deletes or exchanges rows by SQL."""
    told: list[str] = []

    def change(index: sqlite3.Connection) -> None:
        told.extend(rng.choice(_ROW_CHANGES)(index, rng) for _ in range(rng.choice((1, 1, 1, 2, 5))))

    parts.change_index(change)
    return "; ".join(told), False


def _any_row(index: sqlite3.Connection, table: str, rng: random.Random) -> dict[str, object]:
    rows = index.execute(f"SELECT {', '.join(TABLES[table])} FROM {table}").fetchall()
    if not rows:
        raise sqlite3.Error(f"{table} is empty")
    return dict(zip(TABLES[table], rng.choice(rows), strict=True))


def _full_table(index: sqlite3.Connection, rng: random.Random) -> str:
    weights = {"inode": 4, "dirent": 4, "extent": 4}
    filled = [table for table in TABLES if index.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall()]
    return rng.choices(filled, [weights.get(table, 1) for table in filled])[0]


def _where(row: dict[str, object]) -> tuple[str, list[object]]:
    """Returns the SQL condition that selects a row by all its columns."""
    return " AND ".join(f"{column} IS ?" for column in row), list(row.values())


def _other_value(index: sqlite3.Connection, table: str, column: str, old: object, rng: random.Random) -> object:
    kind = rng.random()
    if kind < 0.25:
        return _any_row(index, table, rng)[column]
    if kind < 0.32:  # a value of another type
        return rng.choice((5, 0.5, "text", b"blob", b"", "", -1))
    if column == "mode":
        return rng.choice(_MODES)
    if isinstance(old, int):
        near = [number for number in (old + 1, old - 1, old * 2, old + 1000, old // 2) if abs(number) < 1 << 63]
        return rng.choice((*_NUMBERS, *near))
    if isinstance(old, str):
        return rng.choice(_TEXTS)
    choices = {"symlink_target": (*_TARGETS, None), "name": _XATTR_NAMES if table == "xattr" else _NAMES}
    if column in choices:
        return rng.choice(choices[column])
    return _other_blob(old if isinstance(old, bytes) else b"\0", rng)


def _other_blob(old: bytes, rng: random.Random) -> bytes:
    blob = bytearray(old)
    for change in rng.choices(("cut", "flip", "grow", "random"), k=rng.choice((1, 2))):
        if change == "cut":
            del blob[rng.randrange(len(blob) + 1) :]
        elif change == "flip" and blob:
            blob[rng.randrange(len(blob))] ^= 1 << rng.randrange(8)
        elif change == "grow":
            blob += rng.randbytes(rng.choice((1, 4, 8, 100)))
        elif blob:
            blob[rng.randrange(len(blob))] = rng.randrange(256)
    return bytes(blob)


def _set_value(index: sqlite3.Connection, rng: random.Random) -> str:
    table = _full_table(index, rng)
    row = _any_row(index, table, rng)
    column = rng.choice(TABLES[table])
    value = _other_value(index, table, column, row[column], rng)
    condition, values = _where(row)
    index.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {condition}", [value, *values])
    return f"{table}.{column} is {_shown(value)}, it was {_shown(row[column])}"


def _set_column(index: sqlite3.Connection, rng: random.Random) -> str:
    table = _full_table(index, rng)
    column = rng.choice(TABLES[table])
    value = _other_value(index, table, column, _any_row(index, table, rng)[column], rng)
    index.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", [value])
    return f"all {table}.{column} are {_shown(value)}"


def _exchange(index: sqlite3.Connection, rng: random.Random) -> str:
    table = _full_table(index, rng)
    first, second = _any_row(index, table, rng), _any_row(index, table, rng)
    column = rng.choice(TABLES[table])
    for row, other in ((first, second), (second, first)):
        condition, values = _where(row)
        index.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {condition}", [other[column], *values])
    return f"{table}.{column}: {_shown(first[column])} and {_shown(second[column])} are exchanged"


def _delete(index: sqlite3.Connection, rng: random.Random) -> str:
    table = _full_table(index, rng)
    if rng.random() < 0.1:
        index.execute(f"DELETE FROM {table}")
        return f"{table} is empty"
    row = _any_row(index, table, rng)
    condition, values = _where(row)
    index.execute(f"DELETE FROM {table} WHERE {condition}", values)
    return f"{table} lacks the row {_shown(list(row.values()))}"


def _copy(index: sqlite3.Connection, rng: random.Random) -> str:
    table = _full_table(index, rng)
    row = _any_row(index, table, rng)
    for column in rng.sample(TABLES[table], min(len(TABLES[table]), rng.choice((1, 1, 2)))):
        row[column] = _other_value(index, table, column, row[column], rng)
    index.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row.values()))
    return f"{table} has a further row {_shown(list(row.values()))}"


def _loop(index: sqlite3.Connection, rng: random.Random) -> str:
    """Makes a directory contain itself or one of its parents."""
    entry = _any_row(index, "dirent", rng)
    parent = rng.choice((1, entry["parent"], entry["ino"]))
    name = rng.choice((entry["name"], b"again", *_NAMES))
    index.execute("INSERT OR REPLACE INTO dirent VALUES (?, ?, ?)", [entry["ino"], name, parent])
    return f"inode {entry['ino']} has an entry {name!r} that leads to inode {parent}"


def _extent(index: sqlite3.Connection, rng: random.Random) -> str:
    """Makes an extent overlap others or point elsewhere."""
    row = _any_row(index, "extent", rng)
    ino, file_offset, stream_offset, size = (int(row[column]) for column in TABLES["extent"])  # type: ignore[call-overload]
    new = rng.choice(
        (
            (ino, file_offset + 1, stream_offset, size),
            (ino, file_offset + size, stream_offset, size),
            (ino, file_offset + size, 0, rng.choice((1, size, 1 << 40, (1 << 62)))),
            (ino, file_offset, stream_offset + rng.choice((1, -1, 16384, 1 << 40)), size),
            (ino, file_offset, stream_offset, rng.choice((0, 1, size - 1, size + 1, size * 2, (1 << 63) - 1))),
            (rng.choice((1, 2, ino + 1, ino - 1)), 0, stream_offset, size),
        )
    )
    index.execute("INSERT OR REPLACE INTO extent VALUES (?, ?, ?, ?)", new)
    return f"extent {new}, beside {ino, file_offset, stream_offset, size}"


def _size(index: sqlite3.Connection, rng: random.Random) -> str:
    row = _any_row(index, "inode", rng)
    value = rng.choice((0, int(row["size"]) + 1, int(row["size"]) - 1, int(row["size"]) + 100_000, *_NUMBERS))  # type: ignore[call-overload]
    index.execute("UPDATE inode SET size = ? WHERE ino = ?", [value, row["ino"]])
    return f"inode {row['ino']} has size {value}, it had {row['size']}"


def _name(index: sqlite3.Connection, rng: random.Random) -> str:
    row = _any_row(index, "dirent", rng)
    value = rng.choice(_NAMES)
    index.execute("UPDATE dirent SET name = ? WHERE parent = ? AND name = ?", [value, row["parent"], row["name"]])
    return f"the name {_shown(row['name'])} is {_shown(value)}"


_ROW_CHANGES = [_set_value] * 5 + [_set_column, _exchange, _exchange, _delete, _delete, _copy, _copy, _loop, _extent]
_ROW_CHANGES += [_extent, _size, _name]


def index_schema(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes the schema: tables without keys, exchanged root pages, other columns, generated columns, settings."""
    table = rng.choice(list(TABLES))
    other = rng.choice(list(TABLES))
    columns = ", ".join(TABLES[table])
    again = [f"ALTER TABLE {table} RENAME TO was", "{new}", f"INSERT INTO {table} SELECT * FROM was", "DROP TABLE was"]
    text = "UPDATE sqlite_master SET sql = "
    roots = f"(SELECT rootpage FROM sqlite_master WHERE name = '{other}' AND type = 'table')"
    scripts: list[list[str]] = [
        [line.format(new=f"CREATE TABLE {table} ({columns})") for line in again],
        [line.format(new=f"CREATE TABLE {table} ({columns})") for line in again]
        + [f"INSERT INTO {table} SELECT * FROM {table} LIMIT {rng.choice((1, 3, 1000))}"],
        [f"UPDATE sqlite_master SET rootpage = {roots} WHERE name = '{table}'"],
        [f"UPDATE sqlite_master SET rootpage = {rng.choice((0, 1, 2, 3, 1000, -1))} WHERE name = '{table}'"],
        [f"{text}replace(sql, 'NOT NULL', '') WHERE name = '{table}'"],
        [f"{text}replace(sql, 'WITHOUT ROWID', '') WHERE name = '{table}'"],
        [f"{text}replace(sql, 'NOT NULL', 'NOT NULL DEFAULT 7') WHERE name = '{table}'"],
        [f"{text}replace(sql, 'NOT NULL', 'NOT NULL CHECK (randomblob(9))') WHERE name = '{table}'"],
        [f"{text}replace(sql, 'NOT NULL', 'COLLATE NOCASE NOT NULL') WHERE name = '{table}'"],
        [f"{text}replace(sql, 'INTEGER', 'TEXT') WHERE name = '{table}'"],
        [f"{text}replace(sql, 'PRIMARY KEY', '') WHERE name = '{table}'"],
        [f"{text}'CREATE TABLE {table} (' WHERE name = '{table}'"],
        [f"{text}NULL WHERE name = '{table}'"],
        [f"UPDATE sqlite_master SET name = '{other}' WHERE name = '{table}'"],
        [f"UPDATE sqlite_master SET type = 'view' WHERE name = '{table}'"],
        [f"CREATE INDEX more ON {table} ({columns})"],
        ["CREATE TABLE more (a)"],
        [f"CREATE VIEW more AS SELECT * FROM {table}"],
        [f"CREATE TRIGGER more AFTER INSERT ON {table} BEGIN SELECT 1; END"],
        ["ANALYZE"],
        [f"ALTER TABLE {table} ADD COLUMN more"],
        [f"ALTER TABLE {table} ADD COLUMN more AS (1)"],
        ["PRAGMA user_version = 77", "PRAGMA application_id = 77"],
        ["PRAGMA auto_vacuum = FULL", "VACUUM"],
        [f"PRAGMA page_size = {rng.choice((512, 1024, 65536))}", "VACUUM"],
        ["DELETE FROM sqlite_master"],
    ]
    script = rng.choice(scripts)

    def change(index: sqlite3.Connection) -> None:
        index.execute("PRAGMA writable_schema = ON")
        for statement in script:
            index.execute(statement)

    parts.change_index(change)
    return "; ".join(script), False


def index_pages(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes bytes of SQLite's pages: cells, pointers, types, varints, the header, the freelist."""
    if rng.random() < 0.25:  # small pages give trees of several levels, and overflow pages
        size = rng.choice((512, 1024))
        parts.change_index(lambda index: index.executescript(f"PRAGMA page_size = {size}; VACUUM"))
    image = bytearray(parts.image)
    told = [rng.choice(_PAGE_CHANGES)(image, rng) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
    parts.image = bytes(image)
    return "; ".join(told), False


def _page_size(image: bytearray) -> int:
    size = int.from_bytes(image[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else 4096


def _page(image: bytearray, rng: random.Random, kinds: tuple[int, ...] = ()) -> tuple[int, int, int]:
    """Returns a random page, of these types if there is one: its number, its offset, and the offset of its header."""
    size = _page_size(image)
    pages = list(range(1, max(len(image) // size, 1) + 1))
    rng.shuffle(pages)
    header = [(page, (page - 1) * size, (page - 1) * size + (100 if page == 1 else 0)) for page in pages]
    fitting = [places for places in header if places[2] < len(image) and image[places[2]] in kinds]
    return (fitting or header)[0]


def _cells(image: bytearray, header: int) -> list[int]:
    """Returns the offsets of the pointers to the cells of a page."""
    first = header + (12 if image[header] in (2, 5) else 8)
    count = int.from_bytes(image[header + 3 : header + 5], "big")
    return [first + 2 * number for number in range(min(count, 2000)) if first + 2 * number + 2 <= len(image)]


def _page_field(image: bytearray, rng: random.Random) -> str:
    page, _, header = _page(image, rng, (2, 5, 10, 13))
    start, width = rng.choice(((0, 1), (1, 2), (3, 2), (3, 2), (5, 2), (7, 1), (8, 4)))
    old = int.from_bytes(image[header + start : header + start + width], "big")
    value = rng.choice((0, 1, 2, 5, 10, 13, old + 1, old - 1, 0xFF, 0xFFFF, 0xFFFFFFFF, rng.getrandbits(32)))
    image[header + start : header + start + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "big")
    return f"page {page}: {width} bytes at {start} of its header are {value}"


def _cell_pointer(image: bytearray, rng: random.Random) -> str:
    page, start, header = _page(image, rng, (2, 5, 10, 13))
    cells = _cells(image, header)
    if not cells:
        return "nothing"
    at, other = rng.choice(cells), rng.choice(cells)
    kind = rng.choice(("swap", "same", "random"))
    if kind == "swap":
        image[at : at + 2], image[other : other + 2] = image[other : other + 2], image[at : at + 2]
    elif kind == "same":
        image[at : at + 2] = image[other : other + 2]
    else:
        image[at : at + 2] = rng.choice((0, 8, at - start, 0xFFFF, rng.randrange(65536))).to_bytes(2, "big")
    return f"page {page}: {kind} of cell pointers"


def _child(image: bytearray, rng: random.Random) -> str:
    """Replaces a child of an interior page by the page itself, its parent, or a child that it already has."""
    page, start, header = _page(image, rng, (2, 5))
    if image[header] not in (2, 5):
        return _page_field(image, rng)
    places = [header + 8, *(start + int.from_bytes(image[at : at + 2], "big") for at in _cells(image, header))]
    places = [at for at in places if at + 4 <= len(image)]
    num_pages = len(image) // _page_size(image)
    same = image[rng.choice(places) :][:4]
    value = (
        int.from_bytes(same, "big")
        if rng.random() < 0.4
        else rng.choice((0, 1, page, rng.randint(1, num_pages), 1 << 31))
    )
    changed = places if rng.random() < 0.2 else [rng.choice(places)]
    for at in changed:
        image[at : at + 4] = value.to_bytes(4, "big")
    return f"page {page}: {len(changed)} children are page {value}"


def _cell_bytes(image: bytearray, rng: random.Random) -> str:
    """Changes bytes near the beginning of a cell, which are varints of sizes and types."""
    page, start, header = _page(image, rng, (2, 5, 10, 13))
    cells = _cells(image, header)
    if not cells:
        return "nothing"
    at = (
        start + int.from_bytes(image[(cell := rng.choice(cells)) : cell + 2], "big") + rng.choice((0, 1, 2, 3, 4, 5, 8))
    )
    if at >= len(image):
        return "nothing"
    value = rng.choice((0, 1, 7, 8, 9, 10, 11, 12, 13, 0x7F, 0x80, 0x81, 0xFF, image[at] ^ 1, image[at] + 2 & 0xFF))
    image[at : at + 1] = bytes([value]) * rng.choice((1, 1, 1, 9) if at + 9 < len(image) else (1,))
    return f"page {page}: the byte at {at - start} is {value}"


def _whole_page(image: bytearray, rng: random.Random) -> str:
    size = _page_size(image)
    first, start, _ = _page(image, rng)
    second, other, _ = _page(image, rng)
    kind = rng.choice(("copied to", "exchanged with", "zeros, not"))
    old = bytes(image[start : start + size])
    if kind == "exchanged with":
        image[start : start + size] = image[other : other + size]
    image[other : other + size] = bytes(len(old)) if kind == "zeros, not" else old
    return f"page {first} is {kind} page {second}"


def _database_header(image: bytearray, rng: random.Random) -> str:
    start, width = rng.choice(
        (
            (0, 1),
            (16, 2),
            (18, 1),
            (19, 1),
            (20, 1),
            (21, 1),
            (22, 1),
            (24, 4),
            (28, 4),
            (32, 4),
            (36, 4),
            (40, 4),
            (44, 4),
            (48, 4),
            (52, 4),
            (56, 4),
            (60, 4),
            (64, 4),
            (68, 4),
            (72, 4),
            (92, 4),
            (96, 4),
        )
    )
    old = int.from_bytes(image[start : start + width], "big")
    value = rng.choice((0, 1, 2, 3, 512, 4096, old + 1, old - 1, old * 2, 0xFF, 0xFFFFFFFF, rng.getrandbits(32)))
    image[start : start + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "big")
    return f"{width} bytes at {start} of the database are {value}"


def _any_bytes(image: bytearray, rng: random.Random) -> str:
    at = rng.randrange(rng.choice((100, 512, len(image))))
    size = rng.choice((1, 1, 1, 4, 20))
    image[at : at + size] = rng.randbytes(min(size, len(image) - at))
    return f"{size} random bytes at {at}"


def _length(image: bytearray, rng: random.Random) -> str:
    size = _page_size(image)
    if rng.random() < 0.5:
        del image[len(image) - rng.choice((1, 100, size, 2 * size)) :]
        image.extend(bytes(max(512 - len(image), 0)))
    else:
        image.extend(bytes(rng.choice((1, 100, size, 5 * size))))
    if rng.random() < 0.5:
        struct.pack_into(">I", image, 28, len(image) // size)
    return f"the database has {len(image)} bytes"


_PAGE_CHANGES = [_page_field] * 3 + [_cell_pointer] * 3 + [_child] * 3 + [_cell_bytes] * 4
_PAGE_CHANGES += [_whole_page, _database_header, _database_header, _any_bytes, _any_bytes, _length]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."
