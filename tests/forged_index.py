"""Replaces the index of an archive and keeps all checksums valid."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from xxhash import xxh3_64_intdigest

from gompfs.format import FOOTER_SIZE, Footer, LocalFile, last_footer


def forge_index(archive: Path, *statements: str) -> None:
    """Changes the index with SQL and corrects all checksums."""
    with open(archive, "rb") as file:
        content = file.read()
        footer = last_footer(LocalFile(file.fileno()))
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory, "index.sqlite")
        database.write_bytes(content[footer.index_offset : footer.index_offset + footer.index_size])
        connection = sqlite3.connect(database, isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()
        replace_index(archive, database.read_bytes())


def replace_index(archive: Path, image: bytes, **fields: int) -> None:
    """Replaces the index by another one or by any bytes. The footer matches, except for `fields`."""
    with open(archive, "r+b") as file:
        footer = last_footer(LocalFile(file.fileno()))
        file.seek(footer.index_offset)
        file.truncate()
        file.write(image + bytes(-len(image) % FOOTER_SIZE))
        values = {
            "generation": 1,
            "index_offset": footer.index_offset,
            "index_size": len(image),
            "index_xxh3": xxh3_64_intdigest(image),
            "previous_footer": 0,
        }
        file.write(Footer(**{**values, **fields}).to_bytes())
