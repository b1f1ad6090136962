"""The SQLite image of an index, opened for queries.

An archive stores columns, which are untrusted input. C++ checks them, and writes the pages of the image itself
(native/index/image.h). So SQLite reads no page that comes from an archive.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # the module sqlite3 also imports datetime, for conversions that no query needs
from collections.abc import Iterator
from contextlib import contextmanager

from gompfs._native.index import image_of, write_image_of
from gompfs.codec.block import Buffer
from gompfs.errors import CorruptIndexError
from gompfs.forks import ForkLock
from gompfs.index.schema import tables
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO, Any

# The exceptions that sqlite3 raises for values that it cannot hold or return.
_SQLITE_ERRORS = (sqlite3.Error, OverflowError, MemoryError)
_MAX_IN_MEMORY = 64 << 20  # bytes of an image
_PAGES_OF_COLUMNS = 3  # an image has about as many bytes for each byte of the columns


def build_image(columns: Buffer) -> memoryview:
    """Returns the SQLite image for the columns of an index. Raises CorruptIndexError if they are damaged."""
    try:
        return image_of(columns, tables())
    except ValueError as error:
        raise CorruptIndexError(f"the index is damaged: {error}") from None


def write_image(columns: Buffer, descriptor: int) -> None:
    """Write that image to an empty file. Little of it is in memory. Raises OSError, too."""
    try:
        write_image_of(columns, tables(), descriptor)
    except ValueError as error:
        raise CorruptIndexError(f"the index is damaged: {error}") from None


class IndexImage:
    """Runs SQL on an index. Thread-safe."""

    def __init__(self, columns: Buffer, archive: str) -> None:
        """Open the index of an archive, given by its columns. `archive` is its path, for errors.

        Raises CorruptIndexError if the columns are damaged.
        """
        self._archive = archive
        self._lock = ForkLock()
        try:
            with self._lock:
                self._connection = connect(columns)
        except CorruptIndexError as error:
            error.archive = archive
            raise
        except _SQLITE_ERRORS as error:
            raise self.error(str(error)) from None

    def close(self) -> None:
        """Free the image, after other threads have finished their queries."""
        with self._lock:
            self._connection.close()

    def query(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Returns all rows of a query. Raises CorruptIndexError if SQLite cannot compute a value."""
        with self._lock:
            try:
                return self._connection.execute(sql, arguments).fetchall()
            except _SQLITE_ERRORS as error:
                raise self.error(str(error) or type(error).__name__) from None

    def error(self, reason: str) -> CorruptIndexError:
        """Returns the error that says how the index is damaged."""
        return CorruptIndexError(f"the index is damaged: {reason}", archive=self._archive)


def connect(columns: Buffer) -> sqlite3.Connection:
    """Returns a connection that reads the image for `columns`: in memory or, if it is large, in a temporary file.

    Raises CorruptIndexError if the columns are damaged, sqlite3.Error, MemoryError, or OSError if the disk is full.
    """
    if _PAGES_OF_COLUMNS * len(columns) > _MAX_IN_MEMORY:
        return _connect_to_file(columns)
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    connection.deserialize(build_image(columns))
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect_to_file(columns: Buffer) -> sqlite3.Connection:
    """Returns a connection that reads a temporary file without a name."""
    from urllib.parse import quote

    with image_file(columns) as file:
        uri = f"file:{quote(file.name)}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA schema_version")  # opens the file, before it is unlinked
    return connection


@contextmanager
def image_file(columns: Buffer) -> Iterator[IO[bytes]]:
    """A temporary file with the image for `columns`. Raises OSError if the disk is full, or as write_image does."""
    import tempfile  # here, since most archives have small indexes, and a mount starts faster without it

    with tempfile.NamedTemporaryFile(prefix="gompfs-", suffix=".sqlite") as file:
        write_image(columns, file.fileno())
        yield file
