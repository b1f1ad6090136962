"""The tables of an index, which the file schema.sql creates."""

from __future__ import annotations

import os
from functools import cache

INODE_COLUMNS = "ino, mode, uid, gid, size, mtime_ns, nlink, rdev, symlink_target"
SEGMENT_COLUMNS = (
    "number, first_block, archive_offset, compressed_sizes, codecs, part_kinds, part_sizes, heads_offset, head_sizes"
)
SECTION_COLUMNS = "segment, kind, uncompressed_size, archive_offset, compressed_sizes"
NUM_KEY_COLUMNS = {
    "meta": 1,
    "inode": 1,
    "dirent": 2,
    "extent": 2,
    "xattr": 2,
    "segment": 1,
    "section": 2,
    "binary_file": 1,
}
"""The tables, and how many columns the primary key of each has: the first ones."""


@cache
def script() -> str:
    """Returns the SQL that creates the tables."""
    # Without importlib.resources, whose import takes as long as opening an index does.
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()


@cache
def statements() -> dict[str, bytes]:
    """Returns the statement that creates each table, as `normalized` returns it."""
    lines = (line for line in script().splitlines() if not line.startswith("--"))
    found = map(normalized, "\n".join(lines).split(";"))
    return {
        words[2].decode(): b" ".join(words) for words in map(bytes.split, found) if words[:2] == [b"create", b"table"]
    }


def normalized(statement: str) -> bytes:
    """Returns an SQL statement with a space between all words and signs, and in small letters."""
    for sign in "(),":
        statement = statement.replace(sign, f" {sign} ")
    return b" ".join(statement.encode("utf-8", "surrogatepass").split()).lower()  # bytes are split at ASCII spaces
