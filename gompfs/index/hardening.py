"""SQLite settings for images from archives, which are untrusted."""

from __future__ import annotations

import sqlite3
import sys

_MAX_RECORD = 1 << 30  # bytes: about SQLite's default
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _MAX_RECORD,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 16,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


def harden(connection: sqlite3.Connection) -> None:
    """Configure a connection not to trust the database. Must be called before the first query."""
    for category, limit in _LIMITS.items():
        connection.setlimit(category, limit)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
