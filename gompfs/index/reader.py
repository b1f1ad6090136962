"""Reads an index. Its image comes out of an archive, and an archive is untrusted input."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gompfs.codec import BLOCK_HEADER_SIZE, MAX_BLOCK_SIZE
from gompfs.errors import CorruptIndexError
from gompfs.model import BlockPlaces, DirectoryEntry, Extent, Inode, Section, Segment

_TABLES = {"meta", "inode", "dirent", "extent", "xattr", "segment", "section", "binary_file"}
_BYTES_OR_NONE = {bytes, type(None)}
_NOT_NEGATIVE = (0, 1, 2, 3, 4, 6, 7)  # of those columns, all but mtime_ns
_NO_NAMES = {b"", b".", b".."}
_INODE_COLUMNS = "ino, mode, uid, gid, size, mtime_ns, nlink, rdev, symlink_target"
_DIRECTORY_QUERY = f"""
    SELECT name, {", ".join(f"inode.{column}" for column in _INODE_COLUMNS.split(", "))}
    FROM dirent JOIN inode USING (ino) WHERE parent = ? ORDER BY name
"""


class IndexReader:
    """Answers questions about an archive's entries. Methods may be called by several threads."""

    def __init__(self, image: bytes, archive: str, data_end: int, block_size: int) -> None:
        """Take the SQLite `image`; blocks must lie before `data_end` in the file.

        Raises CorruptIndexError, naming `archive`, when the image is not what an index must be.
        """
        self._archive = archive
        self._data_end = data_end
        self._block_size = block_size
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        try:
            self._connection.deserialize(image)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA query_only = ON")
            objects = self._connection.execute("SELECT type, name FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            raise self._corrupt(str(error)) from None
        if {name for kind, name in objects if not name.startswith("sqlite_")} != _TABLES or any(
            kind not in ("table", "index") for kind, _ in objects
        ):
            raise self._corrupt("it has other tables than an index has")

    def close(self) -> None:
        """Free the image."""
        self._connection.close()

    def meta(self) -> dict[str, str]:
        """Facts about the archive by name."""
        return {str(key): str(value) for key, value in self._query("SELECT key, value FROM meta")}

    def inodes(self, first: int, count: int) -> dict[int, Inode]:
        """The inodes of numbers from `first` on, `count` numbers in all."""
        rows = self._query(
            f"SELECT {_INODE_COLUMNS} FROM inode WHERE ino BETWEEN ? AND ?", first, first + count - 1
        )
        if not rows:
            return {}
        columns = list(zip(*rows, strict=True))
        self._check_inodes(columns, f"one of {count} inodes from {first} on")
        return dict(zip(columns[0], map(Inode._make, rows), strict=True))

    def inode(self, ino: int) -> Inode | None:
        """The inode of that number."""
        return self.inodes(ino, 1).get(ino)

    def directory(self, ino: int) -> list[DirectoryEntry]:
        """The entries of a directory, by name in byte order."""
        rows = self._query(_DIRECTORY_QUERY, ino)
        if not rows:
            return []
        names, *columns = zip(*rows, strict=True)
        self._check_names(names)
        self._check_inodes(columns, f"directory {ino}")
        return list(map(DirectoryEntry, names, map(Inode._make, zip(*columns, strict=True))))

    def child(self, parent: int, name: bytes) -> Inode | None:
        """The inode that a directory has under a name."""
        rows = self._query("SELECT ino FROM dirent WHERE parent = ? AND name = ?", parent, name)
        return self.inode(rows[0][0]) if rows else None

    def extents(self, first: int, count: int) -> dict[int, list[Extent]]:
        """The stored pieces of files, for inode numbers from `first` on, `count` numbers in all.

        They come by file_offset, lie inside the stream and do not overlap.
        """
        rows = self._query(
            "SELECT ino, file_offset, stream_offset, size FROM extent WHERE ino BETWEEN ? AND ?"
            " ORDER BY ino, file_offset",
            first,
            first + count - 1,
        )
        extents: dict[int, list[Extent]] = {ino: [] for ino in range(first, first + count)}
        for ino, *fields in rows:
            known = extents[ino]
            end = known[-1].file_offset + known[-1].size if known else 0
            if set(map(type, fields)) != {int} or min(fields) < 0 or fields[0] < end or fields[2] == 0:
                raise self._corrupt(f"inode {ino} has impossible extents")
            known.append(Extent(*fields))
        return extents

    def files_of_block(self, block: int) -> list[int]:
        """The inodes that have bytes in a block of the stream."""
        start = block * self._block_size
        rows = self._query(
            "SELECT DISTINCT ino FROM extent WHERE stream_offset < ? AND stream_offset + size > ?",
            start + self._block_size,
            start,
        )
        return [int(row[0]) for row in rows]

    def xattrs(self, ino: int) -> dict[bytes, bytes]:
        """The extended attributes of an inode."""
        rows = self._query("SELECT name, value FROM xattr WHERE ino = ? ORDER BY name", ino)
        return {bytes(name): bytes(value) for name, value in rows}

    def has_xattrs(self) -> bool:
        """Whether any inode has extended attributes."""
        return bool(self._query("SELECT 1 FROM xattr LIMIT 1"))

    def segments(self) -> list[Segment]:
        """All segments in order, with the places of their blocks checked against the file."""
        rows = self._query(
            "SELECT number, first_block, num_blocks, uncompressed_size, archive_offsets, compressed_sizes, codecs"
            " FROM segment ORDER BY number"
        )
        segments = []
        next_block = 0
        for number, first_block, num_blocks, size, offsets, sizes, codecs in rows:
            places = self._places(f"segment {number}", offsets, sizes, size)
            if first_block != next_block or len(places) != num_blocks or len(codecs) != num_blocks:
                raise self._corrupt(f"segment {number} contradicts itself")
            segments.append(Segment(number, first_block, places, np.frombuffer(codecs, "u1")))
            next_block += num_blocks
        return segments

    def sections(self) -> list[Section]:
        """All sections, by segment and kind."""
        rows = self._query(
            "SELECT segment, kind, archive_offsets, compressed_sizes, uncompressed_size FROM section"
            " ORDER BY segment, kind"
        )
        return [
            Section(segment, kind, self._places(f"section {kind} of segment {segment}", *columns))
            for segment, kind, *columns in rows
        ]

    def binary_files(self) -> list[int]:
        """The inodes that the grammar leaves out."""
        return [int(row[0]) for row in self._query("SELECT ino FROM binary_file ORDER BY ino")]

    def totals(self) -> tuple[int, int]:
        """How many inodes there are, and the sum of the sizes of regular files in bytes."""
        ((count, size),) = self._query(
            "SELECT COUNT(*), COALESCE(SUM(CASE WHEN mode & 61440 = 32768 THEN size END), 0) FROM inode"
        )
        return int(count), int(size)

    def names(self) -> Iterator[tuple[int, bytes, int]]:
        """Every (parent, name, ino), in the order of the index."""
        return iter(self._query("SELECT parent, name, ino FROM dirent"))

    def _places(self, what: str, offsets: bytes, sizes: bytes, uncompressed_size: int) -> BlockPlaces:
        try:
            archive_offsets = np.frombuffer(offsets, "<u8")
            compressed_sizes = np.frombuffer(sizes, "<u4")
        except (TypeError, ValueError):
            raise self._corrupt(f"{what} has no whole block places") from None
        num_blocks = len(archive_offsets)
        fits = (
            isinstance(uncompressed_size, int)
            and len(compressed_sizes) == num_blocks
            and num_blocks == -(-uncompressed_size // self._block_size)
            and bool(np.all(archive_offsets <= self._data_end))
            and bool(np.all(compressed_sizes >= BLOCK_HEADER_SIZE))
            and bool(np.all(compressed_sizes <= BLOCK_HEADER_SIZE + MAX_BLOCK_SIZE))
            and bool(np.all(archive_offsets + compressed_sizes <= self._data_end))
        )
        if not fits:
            raise self._corrupt(f"{what} has blocks outside the file, or not as many as its size needs")
        return BlockPlaces(archive_offsets, compressed_sizes, uncompressed_size)

    def _check_inodes(self, columns: Sequence[tuple[Any, ...]], what: str) -> None:
        """Raise CorruptIndexError unless the columns of one or more inodes make sense; fast for many."""
        integers, targets = columns[:8], columns[8]
        if any(set(map(type, column)) != {int} for column in integers) or not _BYTES_OR_NONE.issuperset(
            map(type, targets)
        ):
            raise self._corrupt(f"{what} has fields of impossible types")
        if min(map(min, (columns[index] for index in _NOT_NEGATIVE))) < 0:
            raise self._corrupt(f"{what} has impossible fields")

    def _check_names(self, names: tuple[Any, ...]) -> None:
        if set(map(type, names)) != {bytes}:
            raise self._corrupt("it has a name that is no bytes")
        joined = b"\0".join(names)
        if b"/" in joined or joined.count(b"\0") != len(names) - 1 or not _NO_NAMES.isdisjoint(names):
            raise self._corrupt("it has an impossible name")

    def _query(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(sql, arguments).fetchall()
            except sqlite3.Error as error:
                raise self._corrupt(str(error)) from None

    def _corrupt(self, reason: str) -> CorruptIndexError:
        return CorruptIndexError(f"the index is damaged: {reason}", archive=self._archive)
