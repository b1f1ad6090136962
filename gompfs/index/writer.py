"""Writes an index as a SQLite file, whose bytes become part of the archive."""

from __future__ import annotations

import errno
import os
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from gompfs.index.schema import script
from gompfs.index.written_blocks import WrittenBlocks
from gompfs.model import Extent, Generation, Inode, WrittenPart

_BATCH = 4096
_EXTENTS = 4 * _BATCH  # of text files, whose extents are known after all inodes
_ROWS_AT_ONCE = 64  # takes half the time of one row after the other
_ERRNOS = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO, sqlite3.SQLITE_CANTOPEN: errno.EIO}


class _Connection(sqlite3.Connection):
    """Raises OSError with the name of the folder if SQLite cannot write its files."""

    folder = ""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """See sqlite3.Connection.execute."""
        with self._translating_errors():
            return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        """See sqlite3.Connection.executemany."""
        with self._translating_errors():
            return super().executemany(*arguments)

    def executescript(self, *arguments: Any) -> sqlite3.Cursor:
        """See sqlite3.Connection.executescript."""
        with self._translating_errors():
            return super().executescript(*arguments)

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            result = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
            if (code := _ERRNOS.get(result)) is not None:
                raise OSError(code, f"{os.strerror(code)} (for the new index)", self.folder) from None
            raise


class IndexWriter:
    """Collects the rows of an archive's index in the SQLite file at `path`. The caller numbers the inodes.

    A thread inserts most rows, while the caller collects the next. An error of its own is raised by the next call that
    writes. Statements run in the order of the calls, so the file does not depend on the thread.

    A file that is not empty has an image already, which is extended, for `add`.
    """

    def __init__(self, path: Path) -> None:
        is_new = not path.stat().st_size
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=_Connection)
        self._connection.folder = str(path.parent)
        self._connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        if is_new:
            self._connection.executescript(script())
        self._connection.execute("BEGIN")
        self._inodes: list[tuple[object, ...]] = []
        self._dirents: list[tuple[object, ...]] = []
        self._extents: list[tuple[int, int, int, int]] = []
        self._binary_files: list[tuple[int]] = []
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="gompfs-index")
        self._inserting: Future[None] | None = None

    def add_inode(self, inode: Inode) -> None:
        """Store an inode. Its link count is not stored in the archive, since it follows from the names."""
        self._inodes.append(inode)
        if len(self._inodes) >= _BATCH:
            self._flush()

    def add_name(self, parent: int, name: bytes, ino: int) -> None:
        """Give an inode a name. If the directory has an entry of that name, it is replaced."""
        self._dirents.append((parent, name, ino))

    @property
    def room(self) -> int:
        """How many inodes can be added until rows are written, at least one."""
        return _BATCH - len(self._inodes)

    def add_files(self, inodes: Iterable[tuple[object, ...]], dirents: Iterable[tuple[object, ...]]) -> None:
        """Store rows of the tables inode and dirent for at most `room` files."""
        self._inodes += inodes
        self._dirents += dirents
        if len(self._inodes) >= _BATCH:
            self._flush()

    def add_extents(self, ino: int, extents: Iterable[Extent]) -> None:
        """Store the extents of a regular file."""
        self._extents.extend((ino, *extent) for extent in extents)

    def add_extent_rows(self, extents: Iterable[tuple[int, int, int, int]]) -> None:
        """Store rows of the table extent: (inode number, file_offset, stream_offset, size)."""
        self._extents += extents
        if len(self._extents) >= _EXTENTS:
            self._flush()

    def add_xattrs(self, rows: Iterable[tuple[int, bytes, bytes]]) -> None:
        """Store extended attributes, given as (inode number, name, value), before the inodes are added."""
        if found := list(rows):
            self._wait()
            self._connection.executemany("INSERT OR REPLACE INTO xattr VALUES (?, ?, ?)", found)

    def remove_xattrs(self, ino: int) -> None:
        """Remove the extended attributes of an inode, before it gets new ones."""
        self._wait()
        self._connection.execute("DELETE FROM xattr WHERE ino = ?", (ino,))

    def add_binary_files(self, inos: Iterable[int]) -> None:
        """Record that the grammar leaves these files out."""
        self._binary_files.extend([(ino,) for ino in inos])

    def remove_names(self, parent: int, name: bytes) -> int:
        """Remove a name and, if it is that of a directory, all names below it. Returns the number of names."""
        self._wait()
        before = self._connection.total_changes
        gone = self._connection.execute(
            """
            WITH RECURSIVE gone(ino) AS (
                SELECT ino FROM dirent WHERE parent = ? AND name = ?
                UNION SELECT dirent.ino FROM gone JOIN dirent ON dirent.parent = gone.ino
            )
            SELECT ino FROM gone
            """,
            (parent, name),
        ).fetchall()
        self._connection.execute("DELETE FROM dirent WHERE parent = ? AND name = ?", (parent, name))
        self._connection.executemany("DELETE FROM dirent WHERE parent = ?", gone)
        return self._connection.total_changes - before

    def add_segment(self, number: int, first_block: int, blocks: WrittenBlocks, parts: Sequence[WrittenPart]) -> None:
        """Store a segment of these blocks, which are those of `parts`, in order."""
        kinds = bytes(part.kind for part in parts)
        sizes = array("Q", [part.size for part in parts]).tobytes()
        row = (number, first_block, *_positions(blocks), bytes(blocks.codecs), kinds, sizes, *_head_positions(parts))
        self._wait()
        self._connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def add_section(self, segment: int, kind: str, uncompressed_size: int, blocks: WrittenBlocks) -> None:
        """Store a section of these blocks."""
        row = (segment, kind, uncompressed_size, *_positions(blocks))
        self._wait()
        self._connection.execute("INSERT INTO section VALUES (?, ?, ?, ?, ?)", row)

    def add_generation(self, note: Generation) -> None:
        """Store what is noted of the generation that this index is for."""
        self._wait()
        self._connection.execute("INSERT INTO generation VALUES (?, ?, ?, ?, ?, ?)", note)

    def set_meta(self, values: dict[str, str]) -> None:
        """Store facts about the archive by name."""
        self._wait()
        self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def finish(self) -> None:
        """Delete inodes that have no name left, and close the file."""
        self._flush()
        self._wait()
        self._connection.executescript(
            """
            CREATE TEMP TABLE named (ino INTEGER PRIMARY KEY);
            INSERT INTO named SELECT DISTINCT ino FROM dirent;
            DELETE FROM inode WHERE ino != 1 AND ino NOT IN (SELECT ino FROM named);
            DELETE FROM extent WHERE ino NOT IN (SELECT ino FROM inode);
            DELETE FROM xattr WHERE ino NOT IN (SELECT ino FROM inode);
            DELETE FROM binary_file WHERE ino NOT IN (SELECT ino FROM inode);
            """
        )
        self.abandon()

    def abandon(self) -> None:
        """Close the file without finishing."""
        self._executor.shutdown(cancel_futures=True)
        self._connection.close()

    def _flush(self) -> None:
        """Have the thread insert all rows. Waits for the rows before, which bounds the memory."""
        self._wait()
        rows = self._binary_files, self._inodes, self._dirents, self._extents
        self._inserting = self._executor.submit(self._insert_all, *rows)
        self._binary_files, self._inodes, self._dirents, self._extents = [], [], [], []

    def _wait(self) -> None:
        """Wait until the thread has inserted its rows. Raises its error."""
        if self._inserting is not None:
            self._inserting.result()
            self._inserting = None

    def _insert_all(self, binary_files: list[Any], inodes: list[Any], dirents: list[Any], extents: list[Any]) -> None:
        self._insert("binary_file", 1, binary_files)
        self._insert("inode", 9, inodes)
        self._insert("dirent", 3, dirents)
        self._insert("extent", 4, extents)

    def _insert(self, table: str, num_columns: int, rows: list[Any]) -> None:
        """Insert rows, many with each statement."""
        row = f"({', '.join('?' * num_columns)})"
        statement = f"INSERT OR REPLACE INTO {table} VALUES "
        last = len(rows) - len(rows) % _ROWS_AT_ONCE
        at_once = (rows[start : start + _ROWS_AT_ONCE] for start in range(0, last, _ROWS_AT_ONCE))
        self._connection.executemany(
            statement + ", ".join([row] * _ROWS_AT_ONCE), (list(chain.from_iterable(some)) for some in at_once)
        )
        self._connection.executemany(statement + row, rows[last:])


def _positions(blocks: WrittenBlocks) -> tuple[int, bytes]:
    """Returns the columns that say where blocks lie: archive_offset and compressed_sizes."""
    return blocks.archive_offset, blocks.compressed_sizes.tobytes()


def _head_positions(parts: Sequence[WrittenPart]) -> tuple[int, bytes]:
    """Returns the columns that say where heads lie: heads_offset and head_sizes. Heads lie one after another."""
    heads = WrittenBlocks([part.head for part in parts if part.head is not None])
    sizes = array("I", [part.head.compressed_size if part.head is not None else 0 for part in parts])
    return heads.archive_offset, sizes.tobytes()
