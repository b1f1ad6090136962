"""Cuts the columns of an index into groups, and joins groups that a test has changed: docs/format.md, section 3."""

from __future__ import annotations

import os
from dataclasses import dataclass

from gompfs._native.index import columns_of

GROUPS = {
    "meta": ("key", "value"),
    "inode": ("ino", "mode", "uid", "gid", "size", "mtime_ns", "rdev", "symlink_target"),
    "dirent": ("parent", "name", "ino"),
    "extent": ("ino", "file_offset", "stream_offset", "size"),
    "xattr": ("ino", "name", "value_size", "value"),
    "segment": ("archive_offset", "num_blocks", "num_parts", "heads_offset"),
    "part": ("part_kind", "part_size", "head_size"),
    "block": ("compressed_size", "codec"),
    "section": ("segment", "kind", "uncompressed_size", "archive_offset", "num_blocks"),
    "section_block": ("compressed_size",),
    "binary_file": ("ino",),
    "generation": ("time", "added", "removed", "command", "comment"),
}
CHANGE_GROUPS = GROUPS | {"removed_inode": ("ino",), "removed_name": ("parent", "name")}


@dataclass
class Group:
    """The number of rows of a group, and its columns by name."""

    num_rows: int
    columns: dict[str, bytes]


def cut(raw: bytes, names: dict[str, tuple[str, ...]] = GROUPS) -> dict[str, Group]:
    """Returns the groups of columns, of changes with CHANGE_GROUPS. Raises ValueError or IndexError for damage."""
    groups = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    for name, columns in names.items():
        group = groups[name] = Group(number(), {})
        for column in columns:
            size = number()
            group.columns[column] = raw[at : at + size]
            at += size
    if at != len(raw):
        raise ValueError("the columns are damaged")
    return groups


def join(groups: dict[str, Group]) -> bytes:
    """Returns the columns of these groups."""
    raw = b""
    for group in groups.values():
        raw += varint(group.num_rows)
        for column in group.columns.values():
            raw += varint(len(column)) + column
    return raw


def changed(raw: bytes, place: str, column: bytes, *, num_rows: int | None = None) -> bytes:
    """Returns columns in which one, given as "GROUP.COLUMN", has other bytes, and its group another number of rows."""
    groups = cut(raw)
    group, name = place.split(".")
    groups[group].columns[name] = column
    if num_rows is not None:
        groups[group].num_rows = num_rows
    return join(groups)


def varint(value: int) -> bytes:
    """Returns a number as a varint."""
    raw = bytearray()
    while value >= 128:
        raw.append(value & 127 | 128)
        value >>= 7
    return bytes([*raw, value])


def numbers(*values: int) -> bytes:
    """Returns a column of numbers."""
    raw, left = b"", [varint(value) for value in values]
    while left:
        raw += bytes(value[0] for value in left)
        left = [value[1:] for value in left if len(value) > 1]
    return raw


def signed(*values: int) -> bytes:
    """Returns a column of signed numbers."""
    return numbers(*(2 * value if value >= 0 else -2 * value - 1 for value in values))


def columns_of_image(image: bytes | memoryview) -> tuple[bytes, list[int]]:
    """Returns the columns for the tables in a SQLite image, and where each of them ends."""
    descriptor = os.memfd_create("image")
    try:
        os.write(descriptor, image)
        columns, ends = columns_of(descriptor)
    finally:
        os.close(descriptor)
    return bytes(columns), ends
