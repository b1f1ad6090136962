"""Opens an index that exceeds SQLite's limit for databases in memory, through a temporary file."""

from __future__ import annotations

import sqlite3
import tempfile
from urllib.parse import quote

from gompfs.codec.block import Buffer


def connect_to_file(image: Buffer) -> sqlite3.Connection:
    """Returns a connection to the database in `image`. Raises sqlite3.Error, or OSError if the disk is full."""
    with tempfile.NamedTemporaryFile(prefix="gompfs-", suffix=".sqlite") as file:
        file.write(image)
        file.flush()
        uri = f"file:{quote(file.name)}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA schema_version")  # opens the file, before it is unlinked
    return connection
