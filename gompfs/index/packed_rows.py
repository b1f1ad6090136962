"""Queries whose rows SQLite joins into one text for each column (PackedRows), for code in C++ to parse.

Creating Python objects for all fields would take four times as long. C++ checks the values.
"""

from __future__ import annotations

from collections.abc import Sequence


def _packed(columns: Sequence[str], tables: str, order: str) -> str:
    """Returns a query for PackedRows, sorted by the first column, in which SQLite concatenates each column."""
    texts = [f"CAST(GROUP_CONCAT(c{n}, '{'/' if name == 'name' else ','}') AS BLOB)" for n, name in enumerate(columns)]
    renamed = ", ".join(f"{column} AS c{n}" for n, column in enumerate(columns))
    rows = f"SELECT {renamed} FROM {tables} AND {columns[0]} BETWEEN ? AND ? ORDER BY {order} LIMIT ?"
    return f"SELECT COUNT(*), MIN(c0), MAX(c0), {', '.join(texts)} FROM ({rows})"


_INODE_COLUMNS = ("ino", "mode", "uid", "gid", "size", "mtime_ns", "nlink", "rdev")

DIRECTORIES = _packed(
    ["parent", "name", *(f"inode.{column}" for column in _INODE_COLUMNS)],
    "dirent LEFT JOIN inode ON inode.ino = dirent.ino WHERE TRUE",
    "parent, name",
)
"""Entries of directories. Columns: parent, name, ino, mode, uid, gid, size, mtime_ns, nlink, rdev."""


LAYOUTS = _packed(
    [
        "inode.ino",
        "inode.size",
        "IFNULL(file_offset, -1)",
        "IFNULL(stream_offset, -1)",
        "IFNULL(extent.size, -1)",
    ],
    "inode LEFT JOIN extent USING (ino) WHERE mode & 61440 = 32768",
    "inode.ino, file_offset",
)
"""Extents of regular files. Columns: ino, size, file_offset, stream_offset, size of the extent.

A file without extents has one row, whose last three fields are -1.
"""


_EXTENT_COLUMNS = ("ino", "file_offset", "stream_offset", "size")
EXTENTS = (
    f"SELECT COUNT(*), {', '.join(f'CAST(GROUP_CONCAT({column}) AS BLOB)' for column in _EXTENT_COLUMNS)}"
    f" FROM (SELECT {', '.join(_EXTENT_COLUMNS)} FROM extent"
    " WHERE (ino, file_offset) > (?, ?) ORDER BY ino, file_offset LIMIT ?)"
)
"""The next extents in order, at most the third argument, after those with an inode number and a file offset."""
