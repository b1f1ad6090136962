"""An index that is too large for SQLite's memory, as a file without a name."""

from __future__ import annotations

import sqlite3
import tempfile
from urllib.parse import quote


def connect_to_file(image: bytes) -> sqlite3.Connection:
    """The database of an image; raises sqlite3.Error, or OSError where there is no room."""
    with tempfile.NamedTemporaryFile(prefix="gompfs-", suffix=".sqlite") as file:
        file.write(image)
        file.flush()
        uri = f"file:{quote(file.name)}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA schema_version")  # which opens the file
    return connection
