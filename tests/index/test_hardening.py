"""SQLite must not trust a database that comes from an archive."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gompfs.index.hardening import harden


def test_settings(tmp_path: Path) -> None:
    """The writer of `add` opened the old index with trust, as if it were its own."""
    path = tmp_path / "index.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE a (b)")
    harden(connection)
    assert connection.execute("PRAGMA trusted_schema").fetchall() == [(0,)]
    assert connection.execute("PRAGMA cell_size_check").fetchall() == [(1,)]
    with pytest.raises(sqlite3.OperationalError, match="too many attached"):
        connection.execute("ATTACH ':memory:' AS other")
    with pytest.raises((sqlite3.DataError, sqlite3.OperationalError)):
        connection.execute("SELECT zeroblob(2000000000)").fetchall()
    connection.close()
