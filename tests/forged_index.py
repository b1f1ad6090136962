"""Replaces the index of an archive, and keeps all checksums valid."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from column_groups import columns_of_image
from xxhash import xxh3_64_intdigest

from gompfs.format import (
    NUM_COPIES,
    SUPERBLOCK_SIZE,
    Footer,
    GenerationHeader,
    LocalFile,
    TrailerPosition,
    align,
    encode_columns,
    find_newest,
    least_stored_size,
)
from gompfs.index.image import build_image


def index_columns(archive: Path) -> bytes:
    """Returns the columns of the newest index."""
    file = LocalFile.open(archive)
    try:
        return bytes(find_newest(file).columns)
    finally:
        file.close()


def index_image(archive: Path) -> bytes:
    """Returns the SQLite image of the newest index."""
    return bytes(build_image(index_columns(archive)))


def forge_index(archive: Path, *statements: str) -> None:
    """Changes the index with SQL and corrects all checksums."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(index_image(archive))
    for statement in statements:
        connection.execute(statement)
    replace_index(archive, connection.serialize())
    connection.close()


def replace_index(archive: Path, image: bytes) -> None:
    """Replaces the index by the rows of a SQLite image."""
    columns, ends = columns_of_image(image)
    replace_stored_index(archive, encode_columns(columns, ends, least_stored_size(columns)), columns)


def replace_columns(archive: Path, columns: bytes, **fields: int) -> None:
    """Replaces the columns of the index by any bytes. The footers match, except for `fields`."""
    replace_stored_index(archive, encode_columns(columns, []), columns, **fields)


def replace_stored_index(archive: Path, stored: bytes, columns: bytes, **fields: int) -> None:
    """Replaces the blocks of both copies of the index of an archive, which need not decode to `columns`."""
    file = LocalFile.open(archive)
    newest = find_newest(file)
    file.close()
    footer, superblock, content = newest.footer, newest.superblock, bytearray(archive.read_bytes())
    position = TrailerPosition(newest.data_end, len(stored))
    footer = footer._replace(
        index_size=len(stored), columns_size=len(columns), columns_xxh3=xxh3_64_intdigest(columns), num_changes=0
    )
    content[newest.data_end :] = trailers(footer._replace(**fields), stored, newest.data_end)
    if footer.start:
        header = GenerationHeader(footer.generation, superblock.uuid, position.index_offset, position.index_size)
        content[footer.start : footer.start + len(header.to_bytes())] = header.to_bytes()
    else:
        superblock = superblock._replace(index_offset=position.index_offset, index_size=position.index_size)
        content[:SUPERBLOCK_SIZE] = superblock.to_bytes()
    archive.write_bytes(content)


def trailers(footer: Footer, stored: bytes, index_offset: int) -> bytes:
    """Returns both copies of the blocks of an index with their footers, which are like `footer`."""
    content = bytearray()
    for copy in range(NUM_COPIES):
        own = footer._replace(copy=copy, index_offset=index_offset + len(content))
        content += stored.ljust(align(len(stored), 16), b"\0") + own.to_bytes()
    return bytes(content)
