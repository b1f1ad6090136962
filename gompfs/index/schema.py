"""The tables of an index, which the file schema.sql creates."""

from __future__ import annotations

import os
from functools import cache

INODE_COLUMNS = "ino, mode, uid, gid, size, mtime_ns, nlink, rdev, symlink_target"
SEGMENT_COLUMNS = (
    "number, first_block, archive_offset, compressed_sizes, codecs, part_kinds, part_sizes, heads_offset, head_sizes"
)
SECTION_COLUMNS = "segment, kind, uncompressed_size, archive_offset, compressed_sizes"


@cache
def script() -> str:
    """Returns the SQL that creates the tables."""
    # Without importlib.resources, whose import takes as long as opening an index does.
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()


@cache
def tables() -> list[tuple[str, str]]:
    """Returns the name of each table and the statement that creates it, as SQLite keeps it."""
    lines = (line for line in script().splitlines() if not line.startswith("--"))
    statements = (statement.strip() for statement in "\n".join(lines).split(";"))
    return [(statement.split()[2], statement) for statement in statements if statement.startswith("CREATE TABLE")]
