"""The tables of an index, by format version. The files schema.sql and schema2.sql create them."""

from __future__ import annotations

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
