"""The SQLite image of an index, opened for queries.

The image is untrusted input. Before SQLite reads a page, C++ checks the pages (native/index/pages.h): first those of
the schema, then, once the schema is known to be that of an index, those of all tables. Queries have a limit of steps.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from gompfs._native.index import check_pages
from gompfs.codec.block import Buffer
from gompfs.errors import CorruptIndexError
from gompfs.forks import ForkLock
from gompfs.index.hardening import harden
from gompfs.index.schema import NUM_KEY_COLUMNS, normalized, statements

# The exceptions that sqlite3 raises for a damaged image; UnicodeDecodeError if the message quotes the image.
_SQLITE_ERRORS = (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError)
_MAX_IN_MEMORY = 0x7FFFFEFF  # the largest allocation of SQLite, in bytes
# Limit for the steps of SQLite's virtual machine in one query: a valid query scans each table at most a few times.
_MIN_STEPS, _STEPS_OF_BYTE, _STEPS_AT_ONCE = 10_000_000, 1000, 1_000_000


class IndexImage:
    """Runs SQL on the image of an index. Thread-safe. Methods raise CorruptIndexError if the image is damaged."""

    def __init__(self, image: Buffer, archive: str) -> None:
        """Open the image of the index of an archive. `archive` is its path, for errors.

        Raises CorruptIndexError if its tables are not those of an index.
        """
        self._archive = archive
        self._lock = ForkLock()
        self._check_pages(image, [])  # the pages that SQLite reads for the schema
        try:
            with self._lock:
                self._connection = _connect(image)
                harden(self._connection)
                self._connection.execute("PRAGMA query_only = ON")
        except _SQLITE_ERRORS as error:
            raise self.error(str(error)) from None
        self._num_steps = 0
        self._max_steps = _MIN_STEPS + _STEPS_OF_BYTE * len(image)
        self._connection.set_progress_handler(self._count_steps, _STEPS_AT_ONCE)
        try:
            self._check_pages(image, self._check_schema())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the image, after other threads have finished their queries."""
        with self._lock:
            self._connection.close()

    def query(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Returns all rows of a query."""
        with self._lock:
            self._num_steps = 0
            try:
                return self._connection.execute(sql, arguments).fetchall()
            except _SQLITE_ERRORS as error:
                raise self.error(str(error) or type(error).__name__) from None

    def error(self, reason: str) -> CorruptIndexError:
        """Returns the error that says how the index is damaged."""
        return CorruptIndexError(f"the index is damaged: {reason}", archive=self._archive)

    def _check_pages(self, image: Buffer, roots: list[tuple[int, int]]) -> None:
        try:
            check_pages(image, roots)
        except ValueError as error:
            raise self.error(str(error)) from None

    def _check_schema(self) -> list[tuple[int, int]]:
        """Refuse all but the tables of an index. Returns the root page and the number of key columns of each table."""
        objects = self.query("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master")
        declared = statements()
        if any(kind == "index" for kind, *_ in objects):
            raise self.error("it has an index of its own")
        if sorted(str(name) for _, name, *_ in objects) != sorted(declared) or any(
            kind != "table" or of_table != name or type(page) is not int or not 0 < page < 1 << 32
            for kind, name, of_table, page, _ in objects
        ):
            raise self.error("it has other tables than an index has")
        for _, name, _, _, statement in objects:
            if type(statement) is not str or normalized(statement) != declared[name]:
                raise self.error(f"table {name} is not declared as in an index")
        return [(page, NUM_KEY_COLUMNS[name]) for _, name, _, page, _ in objects]

    def _count_steps(self) -> bool:
        """Called by SQLite after every _STEPS_AT_ONCE steps of a query. Returning True ends the query."""
        self._num_steps += _STEPS_AT_ONCE
        return self._num_steps > self._max_steps


def _connect(image: Buffer) -> sqlite3.Connection:
    """Returns a connection to the database in `image`: in memory or, if it is too large for SQLite, in a file."""
    if len(image) > _MAX_IN_MEMORY:
        return _connect_to_file(image)
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    connection.deserialize(image)
    return connection


def _connect_to_file(image: Buffer) -> sqlite3.Connection:
    """Returns a connection to a temporary file without a name. Raises OSError if the disk is full."""
    import tempfile  # here, since hardly any image is as large, and a mount starts faster without it
    from urllib.parse import quote

    with tempfile.NamedTemporaryFile(prefix="gompfs-", suffix=".sqlite") as file:
        file.write(image)
        file.flush()
        uri = f"file:{quote(file.name)}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA schema_version")  # opens the file, before it is unlinked
    return connection
