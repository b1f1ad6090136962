"""The tables of an index, by format version. The files schema.sql and schema2.sql create them."""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

INODE_COLUMNS = "ino, mode, uid, gid, size, mtime_ns, nlink, rdev, symlink_target"
_COMMON_TABLES = {
    "meta": "key, value",
    "inode": INODE_COLUMNS,
    "dirent": "parent, name, ino",
    "extent": "ino, file_offset, stream_offset, size",
    "xattr": "ino, name, value",
    "binary_file": "ino",
}
_COMMON_KEYS = {
    "meta": ["key"],
    "inode": ["ino"],
    "dirent": ["parent", "name"],
    "extent": ["ino", "file_offset"],
    "xattr": ["ino", "name"],
    "segment": ["number"],
    "section": ["segment", "kind"],
    "binary_file": ["ino"],
}


class Schema(NamedTuple):
    """The columns of each table, joined by ', '; the columns of each primary key; and the file that creates them."""

    columns: dict[str, str]
    keys: dict[str, list[str]]
    file_name: str

    def script(self) -> str:
        """Returns the SQL that creates the tables."""
        return _script(self.file_name)

    def statements(self) -> dict[str, bytes]:
        """Returns the statement that creates each table, as `normalized` returns it."""
        return _statements(self.file_name)


def normalized(statement: str) -> bytes:
    """Returns an SQL statement with a space between all words and signs, and in small letters."""
    for sign in "(),":
        statement = statement.replace(sign, f" {sign} ")
    return b" ".join(statement.encode("utf-8", "surrogatepass").split()).lower()  # bytes are split at ASCII spaces


@cache
def _script(file_name: str) -> str:
    # Without importlib.resources, whose import takes as long as opening an index does.
    with open(os.path.join(os.path.dirname(__file__), file_name), encoding="utf-8") as file:
        return file.read()


@cache
def _statements(file_name: str) -> dict[str, bytes]:
    lines = (line for line in _script(file_name).splitlines() if not line.startswith("--"))
    found = map(normalized, "\n".join(lines).split(";"))
    return {
        words[2].decode(): b" ".join(words) for words in map(bytes.split, found) if words[:2] == [b"create", b"table"]
    }


SCHEMAS = {
    1: Schema(
        _COMMON_TABLES
        | {
            "segment": "number, first_block, num_blocks, uncompressed_size, archive_offsets, compressed_sizes, codecs",
            "section": "segment, kind, uncompressed_size, archive_offsets, compressed_sizes",
        },
        _COMMON_KEYS,
        "schema.sql",
    ),
    2: Schema(
        _COMMON_TABLES
        | {
            "segment": "number, first_block, archive_offset, compressed_sizes, codecs, part_kinds, part_sizes,"
            " heads_offset, head_sizes",
            "section": "segment, kind, uncompressed_size, archive_offset, compressed_sizes",
        },
        _COMMON_KEYS,
        "schema2.sql",
    ),
}
