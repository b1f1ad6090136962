"""Replaces the index of an archive, and keeps all checksums valid."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from xxhash import xxh3_64_intdigest

from gompfs.format import (
    NUM_COPIES,
    SUPERBLOCK_SIZE,
    Footer,
    GenerationHeader,
    LocalFile,
    Superblock,
    TrailerPosition,
    align,
    encode_image,
    find_newest,
)


def index_image(archive: Path) -> bytes:
    """Returns the image of the newest index."""
    file = LocalFile.open(archive)
    try:
        return bytes(find_newest(file).image)
    finally:
        file.close()


def forge_index(archive: Path, *statements: str) -> None:
    """Changes the index with SQL and corrects all checksums."""
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory, "index.sqlite")
        database.write_bytes(index_image(archive))
        connection = sqlite3.connect(database, isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()
        replace_index(archive, database.read_bytes())


def replace_index(archive: Path, image: bytes, **fields: int) -> None:
    """Replaces the index by another one or by any bytes. The footers match, except for `fields`."""
    superblock = Superblock.from_bytes(archive.read_bytes()[:SUPERBLOCK_SIZE])
    replace_stored_index(archive, encode_image(image, superblock.block_size), image, **fields)


def replace_stored_index(archive: Path, stored: bytes, image: bytes, **fields: int) -> None:
    """Replaces the blocks of both copies of the index of an archive, which need not decode to `image`."""
    file = LocalFile.open(archive)
    newest = find_newest(file)
    file.close()
    footer, superblock, content = newest.footer, newest.superblock, bytearray(archive.read_bytes())
    position = TrailerPosition(newest.data_end, len(stored))
    footer = footer._replace(index_size=len(stored), image_size=len(image), image_xxh3=xxh3_64_intdigest(image))
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
