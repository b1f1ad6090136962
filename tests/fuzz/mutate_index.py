"""Mutations of the index: of its rows by SQL, and of the bytes of its columns."""

from __future__ import annotations

import random
import sqlite3

from column_groups import CHANGE_GROUPS, Group, cut, join, numbers
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
    "generation": ("number", "time", "added", "removed", "command", "comment"),
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
_TEXTS = (
    *("", "text", "letters", "whitespace", "identifiers", "9" * 30, "-1", "\u0663", "grammar", "other", "1.5"),
    *("\x1b[2J\n", "x" * 5000),
)


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


def index_columns(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes the columns: their bytes, lengths and numbers of rows, and their order."""
    if rng.random() < 0.15:
        told = rng.choice(_RAW_CHANGES)(parts, rng)
        return told, False
    groups = cut(parts.columns)
    told = "; ".join(rng.choice(_COLUMN_CHANGES)(groups, rng) for _ in range(rng.choice((1, 1, 1, 2, 4))))
    parts.columns = join(groups)
    return told, False


def index_changes(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes the columns of an index of changes, or has it remove other inodes and names."""
    parts.num_changes, parts.columns = parts.changes
    groups = cut(parts.columns, CHANGE_GROUPS)  # raises an error if the index is whole
    changes = [*_COLUMN_CHANGES, *[_removals] * 8]
    told = "; ".join(rng.choice(changes)(groups, rng) for _ in range(rng.choice((1, 1, 1, 2, 4))))
    parts.columns = join(groups)
    return told, False


def _removals(groups: dict[str, Group], rng: random.Random) -> str:
    """Removes inodes with near numbers, or names of near directories."""
    count = rng.choice((0, 1, 1, 2, 5))
    steps = numbers(*(rng.choice((0, 0, 1, 2, 10, (1 << 63) - 1)) for _ in range(count)))
    if rng.random() < 0.5:
        groups["removed_inode"] = Group(count, {"ino": steps})
        return f"{count} inodes are removed"
    known = groups["dirent"].columns["name"].split(b"\0")[:-1]
    names = sorted(rng.choice((*known, *_NAMES)).replace(b"\0", b"") for _ in range(count))
    groups["removed_name"] = Group(count, {"parent": steps, "name": b"".join(name + b"\0" for name in names)})
    return f"{count} names are removed"


def _any_column(groups: dict[str, Group], rng: random.Random) -> tuple[str, str]:
    """Returns a group and one of its columns, which is not empty if possible."""
    places = [(group, name) for group, found in groups.items() for name in found.columns]
    full = [(group, name) for group, name in places if groups[group].columns[name]]
    return rng.choice(full if full and rng.random() < 0.9 else places)


def _column_bytes(groups: dict[str, Group], rng: random.Random) -> str:
    group, name = _any_column(groups, rng)
    column = bytearray(groups[group].columns[name])
    for _ in range(rng.choice((1, 1, 2, 20)) if column else 0):
        at = rng.randrange(len(column))
        column[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF, column[at] ^ 1, rng.randrange(256)))
    groups[group].columns[name] = bytes(column)
    return f"bytes of {group}.{name}"


def _column_length(groups: dict[str, Group], rng: random.Random) -> str:
    group, name = _any_column(groups, rng)
    column = groups[group].columns[name]
    more = rng.choice((b"\0", b"\1", b"\x80", b"\xff" * 9 + b"\1", b"name\0", rng.randbytes(100)))
    at = rng.randrange(len(column) + 1)
    kind = rng.choice(("shorter", "longer", "empty", "twice"))
    groups[group].columns[name] = {
        "shorter": column[:at],
        "longer": column[:at] + more + column[at:],
        "empty": b"",
        "twice": column * 2,
    }[kind]
    return f"{group}.{name} is {kind}"


def _num_rows(groups: dict[str, Group], rng: random.Random) -> str:
    group = groups[name := rng.choice(list(groups))]
    near = (group.num_rows + 1, max(group.num_rows - 1, 0), 2 * group.num_rows)
    group.num_rows = rng.choice((*near, 0, 1, 1 << 20, 1 << 32, (1 << 63) - 1, (1 << 64) - 1))
    return f"{name} has {group.num_rows} rows"


def _another_value(groups: dict[str, Group], rng: random.Random) -> str:
    """Replaces a number of a column, and keeps the structure of the column."""
    group, name = _any_column(groups, rng)
    rows = min(groups[group].num_rows, 1 << 16)  # a change before this one may claim any number
    at, value = rng.randrange(max(rows, 1)), rng.choice((*(number % (1 << 64) for number in _NUMBERS), (1 << 64) - 1))
    values = [rng.choice((0, 0, 0, 1, 2, 100)) for _ in range(rows)]
    values[at : at + 1] = [value] if rows else []
    groups[group].columns[name] = numbers(*values)
    return f"{group}.{name} has other numbers, and {value} in row {at}"


def _exchange_columns(groups: dict[str, Group], rng: random.Random) -> str:
    (first, name), (second, other) = _any_column(groups, rng), _any_column(groups, rng)
    columns = groups[first].columns, groups[second].columns
    columns[0][name], columns[1][other] = columns[1][other], columns[0][name]
    return f"{first}.{name} and {second}.{other} are exchanged"


def _cut_columns(parts: TakenApart, rng: random.Random) -> str:
    at = rng.randrange(1, len(parts.columns))
    parts.columns = parts.columns[:at]
    return f"columns cut off at {at}"


def _more_columns(parts: TakenApart, rng: random.Random) -> str:
    parts.columns += rng.choice((b"\0", b"\0\0", bytes(1000), rng.randbytes(10)))
    return "bytes after the columns"


def _any_bytes(parts: TakenApart, rng: random.Random) -> str:
    columns = bytearray(parts.columns)
    at = rng.randrange(len(columns))
    columns[at : at + rng.choice((0, 1, 1, 5))] = rng.choice((b"", b"\xff" * 10, rng.randbytes(rng.choice((1, 4, 20)))))
    parts.columns = bytes(columns) or b"\0"
    return f"random bytes at {at}"


_COLUMN_CHANGES = [_column_bytes] * 5 + [_column_length] * 3 + [_num_rows] + [_another_value] * 4 + [_exchange_columns]
_RAW_CHANGES = [_cut_columns, _more_columns, _any_bytes, _any_bytes]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."
