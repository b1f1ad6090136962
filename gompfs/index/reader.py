"""Reads the index of an archive. The index is untrusted input."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from gompfs._native.index import FileRows, integer_rows
from gompfs.codec.block import Buffer
from gompfs.errors import display_path
from gompfs.index.block_rows import BlockRowError, BlockRows
from gompfs.index.check import check_to_extend, find_problems
from gompfs.index.image import IndexImage
from gompfs.index.packed_rows import EXTENTS
from gompfs.index.schema import INODE_COLUMNS
from gompfs.light_types import TYPE_CHECKING
from gompfs.model import (
    ACCESS_ACL,
    MAX_INO,
    MAX_NAME_SIZE,
    MAX_SYMLINK_TARGET_SIZE,
    MAX_XATTR_NAME_SIZE,
    MAX_XATTR_VALUE_SIZE,
    ROOT_INO,
    DirectoryEntry,
    Generation,
    Inode,
    PackedRows,
    Problem,
    Section,
    Segment,
)

if TYPE_CHECKING:
    from typing import Any

_ANY, _ANY_32 = (1 << 63) - 1, (1 << 32) - 1
_LIMITS = ((1, 0xFFFF), (2, _ANY_32), (3, _ANY_32), (4, _ANY), (6, _ANY_32), (7, _ANY))
_FILE_TYPES = {0o1, 0o2, 0o4, 0o6, 0o10, 0o12, 0o14}  # mode >> 12
_DIRECTORY_TYPE, _SYMLINK_TYPE = 0o4, 0o12
_NO_NAMES = {b"", b".", b".."}
_ENTRIES_QUERY = f"""
    SELECT parent, name, {", ".join(f"inode.{column}" for column in INODE_COLUMNS.split(", "))}
    FROM dirent LEFT JOIN inode ON inode.ino = dirent.ino
"""


_INODE_NUMBERS_QUERY = """
    SELECT group_concat(ino), MAX(ino) FROM (SELECT ino FROM inode WHERE ino > ? ORDER BY ino LIMIT ?)
"""
_NUMBERS_AT_ONCE = 1 << 20
# Sums are floats: an integer sum fails if forged sizes overflow 64 bits.
_HAS_HOLES_QUERY = """
    SELECT (SELECT TOTAL(size) FROM extent) != (SELECT TOTAL(size) FROM inode WHERE mode & 61440 = 32768)
"""
_STORED_SIZES_QUERY = """
    SELECT inode.ino, CAST(MAX(TOTAL(extent.size), 0) AS INTEGER) AS stored FROM inode LEFT JOIN extent USING (ino)
    WHERE inode.ino > ? AND mode & 61440 = 32768 GROUP BY inode.ino HAVING stored < inode.size LIMIT 65536
"""
_MAX_MODE = 0xFFFF
_MAX_EXTENTS = 1 << 20  # in one query, whose texts take about 30 bytes for each


class IndexReader:
    """Queries on the entries of an archive. Thread-safe. Methods raise CorruptIndexError if the index is damaged."""

    def __init__(self, columns: Buffer, archive: str, data_end: int, block_size: int) -> None:
        """Open the index of an archive, given by its columns. All blocks must lie before `data_end`.

        Raises CorruptIndexError, with `archive`, if the columns are damaged.
        """
        self._image = IndexImage(columns, archive)
        self._block_rows = BlockRows(self._image.query, data_end, block_size)
        self._block_size = block_size

    def close(self) -> None:
        """Free the image, after other threads have finished their queries."""
        self._image.close()

    def meta(self) -> dict[str, str]:
        """Returns the facts about the archive by name."""
        return {str(key): str(value) for key, value in self._image.query("SELECT key, value FROM meta")}

    def inodes(self, first: int, count: int) -> dict[int, Inode]:
        """Returns the inodes with numbers `first` to `first` + `count` - 1, by number."""
        rows = self._image.query(
            f"SELECT {INODE_COLUMNS} FROM inode WHERE ino BETWEEN ? AND ?", first, first + count - 1
        )
        if not rows:
            return {}
        columns = list(zip(*rows, strict=True))
        self._check_inodes(columns, f"one of {count} inodes from {first} on")
        if ROOT_INO in columns[0] and columns[1][columns[0].index(ROOT_INO)] >> 12 != _DIRECTORY_TYPE:
            raise self._image.error("its root is not a directory")
        return dict(zip(columns[0], map(Inode._make, rows), strict=True))

    def inode(self, ino: int) -> Inode | None:
        """Returns the inode of a number, or None."""
        return self.inodes(ino, 1).get(ino)

    def directory(self, ino: int) -> list[DirectoryEntry]:
        """Returns the entries of a directory in byte order of their names."""
        return self._entries(self._image.query(f"{_ENTRIES_QUERY} WHERE parent = ? ORDER BY name", ino))

    def packed_rows(self, query: str, first: int, max_rows: int, last: int = _ANY) -> PackedRows:
        """Returns rows of DIRECTORIES or LAYOUTS, for whole directories or files with numbers from `first` to `last`.

        There are at most `max_rows` rows, or those of one directory or file.
        """
        ((count, least, most, *columns),) = self._image.query(query, first, last, max_rows)
        if not count:
            return PackedRows(first, first + 1, True, ())
        if None in columns:
            raise self._image.error("it has entries that point to inodes that do not exist")
        if count < max_rows:
            return tuple.__new__(PackedRows, (first, most + 1, True, tuple(columns)))
        if least == most:  # a single directory or file, which may have more rows
            ((_, _, _, *columns),) = self._image.query(query, least, least, -1)
            most = least + 1
        return tuple.__new__(PackedRows, (first, most, False, tuple(columns)))

    def file_rows(self, columns: Buffer) -> FileRows:
        """Returns the names, regular files and extents in the columns of this index, which C++ reads without SQLite."""
        try:
            return FileRows(columns)
        except ValueError as error:
            raise self._image.error(str(error)) from None

    def _entries(self, rows: list[tuple[Any, ...]]) -> list[DirectoryEntry]:
        if not rows:
            return []
        _, names, *columns = zip(*rows, strict=True)
        self._check_names(names)
        if None in columns[0]:
            name = display_path(names[columns[0].index(None)])
            raise self._image.error(
                f"the entry {name} of directory {rows[0][0]} points to an inode that does not exist"
            )
        self._check_inodes(columns, f"one of the entries from directory {rows[0][0]} on")
        return list(map(DirectoryEntry._make, zip(names, map(Inode._make, zip(*columns, strict=True)), strict=True)))

    def child(self, parent: int, name: bytes) -> Inode | None:
        """Returns the inode that a directory has under a name, or None."""
        rows = self._image.query("SELECT ino FROM dirent WHERE parent = ? AND name = ?", parent, name)
        if not rows:
            return None
        ((ino,),) = rows
        inode = self.inode(ino)
        if inode is None:
            entry = f"the entry {display_path(name)} of directory {parent}"
            raise self._image.error(f"{entry} points to an inode that does not exist")
        return inode

    def file_sizes(self) -> Iterator[list[tuple[int, int]]]:
        """Yields lists of rows (ino, size) of all regular files, by ino."""
        last = 0
        while rows := self._image.query(
            "SELECT ino, size FROM inode WHERE ino > ? AND mode & 61440 = 32768 ORDER BY ino LIMIT 65536", last
        ):
            yield rows
            last = rows[-1][0]

    def stored_sizes(self) -> Iterator[list[tuple[int, int]]]:
        """Yields lists of rows (ino, stored bytes) of the files that have holes, by ino.

        If the total size of all extents equals that of all files, no file has a hole. For most archives, this one query
        is enough.
        """
        last = 0
        ((has_holes,),) = self._image.query(_HAS_HOLES_QUERY)
        while has_holes and (rows := self._image.query(_STORED_SIZES_QUERY, last)):
            yield rows
            last = rows[-1][0]

    def all_extents(self) -> array[int]:
        """Returns ino, file_offset, stream_offset, size of all extents, one after another, by ino and file_offset."""
        rows = array("q")
        last = (-1, -1)
        while True:
            ((count, *columns),) = self._image.query(EXTENTS, *last, _MAX_EXTENTS)
            if not count:
                return rows
            rows.frombytes(integer_rows(columns))
            last = rows[-4], rows[-3]

    def xattrs(self, ino: int) -> dict[bytes, bytes]:
        """Returns the extended attributes of an inode."""
        rows = self._image.query("SELECT name, value FROM xattr WHERE ino = ? ORDER BY name", ino)
        for name, value in rows:
            if not 0 < len(name) <= MAX_XATTR_NAME_SIZE or len(value) > MAX_XATTR_VALUE_SIZE:
                raise self._image.error(f"inode {ino} has impossible extended attributes")
        return dict(rows)

    def has_xattrs(self) -> bool:
        """Returns whether any inode has extended attributes."""
        return bool(self._image.query("SELECT 1 FROM xattr LIMIT 1"))

    def inodes_with_xattrs(self, *names: bytes) -> list[int]:
        """Returns the numbers of the inodes that have extended attributes, in ascending order.

        With `names`, only those that have one of these attributes.
        """
        among = f"WHERE name IN ({', '.join('?' * len(names))})" if names else ""
        rows = self._image.query(f"SELECT DISTINCT ino FROM xattr {among} ORDER BY ino", *names)
        return [row[0] for row in rows]

    def has_acls(self) -> bool:
        """Returns whether any inode has an access ACL."""
        return bool(self._image.query("SELECT 1 FROM xattr WHERE name = ? LIMIT 1", ACCESS_ACL))

    def access_acls(self, limit: int) -> list[tuple[int, bytes]]:
        """Returns each different pair of a mode and an access ACL that an inode has, up to `limit` pairs.

        Raises CorruptIndexError.
        """
        return self._image.query(
            "SELECT DISTINCT mode, value FROM xattr JOIN inode USING (ino) WHERE name = ? LIMIT ?", ACCESS_ACL, limit
        )

    def segments(self) -> list[Segment]:
        """Returns all segments in order. The positions of their blocks are checked against the size of the file."""
        try:
            return self._block_rows.segments()
        except BlockRowError as error:
            raise self._image.error(str(error)) from None

    def sections(self) -> list[Section]:
        """Returns all sections, by segment and kind."""
        try:
            return self._block_rows.sections()
        except BlockRowError as error:
            raise self._image.error(str(error)) from None

    def binary_files(self) -> list[int]:
        """Returns the inodes of the binary files, which the grammar leaves out."""
        return [int(row[0]) for row in self._image.query("SELECT ino FROM binary_file ORDER BY ino")]

    def generations(self) -> list[Generation]:
        """Returns what is noted of each generation."""
        return list(map(Generation._make, self._image.query("SELECT * FROM generation ORDER BY number")))

    def num_binary_files(self) -> int:
        """Returns how many files are binary."""
        ((count,),) = self._image.query("SELECT COUNT(*) FROM binary_file")
        return int(count)

    def is_binary_file(self, ino: int) -> bool:
        """Returns whether an inode is that of a binary file."""
        return bool(self._image.query("SELECT 1 FROM binary_file WHERE ino = ?", ino))

    def totals(self) -> tuple[int, int]:
        """Returns the number of inodes, and the total size of regular files in bytes, which may exceed 2^63."""
        ((count, high, low),) = self._image.query(
            "SELECT COUNT(*), SUM(size >> 32), SUM(size & 4294967295)"
            " FROM (SELECT CASE WHEN mode & 61440 = 32768 THEN size ELSE 0 END AS size FROM inode)"
        )
        return count, (high or 0) * (1 << 32) + (low or 0)

    def modes(self) -> list[int]:
        """Returns the modes of all inodes, each different one once. Raises CorruptIndexError."""
        rows = self._image.query("SELECT DISTINCT mode FROM inode LIMIT ?", _MAX_MODE + 2)
        modes = [int(row[0]) for row in rows]
        if any(not 0 <= mode <= _MAX_MODE for mode in modes):
            raise self._image.error("table inode has impossible modes")
        return modes

    def inode_numbers(self) -> Iterator[str]:
        """Yields the numbers of all inodes in ascending order, as strings of many numbers with commas between them.

        Fetching that many rows would block other threads from the interpreter for longer than fetching text does.
        """
        last = -1
        while True:
            ((joined, highest),) = self._image.query(_INODE_NUMBERS_QUERY, last, _NUMBERS_AT_ONCE)
            if joined is None:
                return
            yield joined
            last = highest

    def name_of(self, ino: int) -> tuple[int, bytes] | None:
        """Returns a parent of an inode and its name there, or None if it has no name."""
        rows = self._image.query("SELECT parent, name FROM dirent WHERE ino = ? LIMIT 1", ino)
        if not rows:
            return None
        self._check_names((rows[0][1],))
        return rows[0][0], rows[0][1]

    def names(self) -> Iterator[tuple[int, bytes, int]]:
        """Returns every (parent, name, ino), in the order of the index."""
        rows = self._image.query("SELECT parent, name, ino FROM dirent")
        if rows:
            _, names, _ = zip(*rows, strict=True)
            self._check_names(names)
        return iter(rows)

    def subdirectories(self) -> list[tuple[int, bytes, int]]:
        """Returns (parent, name, ino) of every directory except the root, in no order."""
        rows = self._image.query(
            "SELECT parent, name, ino FROM dirent CROSS JOIN inode USING (ino) WHERE mode & 61440 = 16384"
        )
        if rows:
            self._check_names(tuple(name for _, name, _ in rows))
        return rows

    def check_before_adding(self, generation: int) -> None:
        """Raise CorruptIndexError unless rows can be added to the index of a generation.

        It checks segments, sections, facts and notes of generations.
        """
        self.segments()
        self.sections()
        for problem in check_to_extend(self._image.query, generation):
            raise self._image.error(problem.reason)

    def problems(self, generation: int) -> Iterator[Problem]:
        """Yields violations of the format in the index of a generation. Reads all tables."""
        return find_problems(self._image.query, self.segments(), self._block_size, generation)

    def _check_inodes(self, columns: Sequence[tuple[Any, ...]], what: str) -> None:
        """Raise CorruptIndexError unless the columns of one or more inodes are valid. Fast for many inodes."""
        numbers, modes, targets = columns[0], columns[1], columns[8]
        is_possible = max(numbers) < MAX_INO
        is_possible &= all(min(columns[index]) >= 0 and max(columns[index]) <= limit for index, limit in _LIMITS)
        types = {mode >> 12 for mode in modes}
        is_possible &= types <= _FILE_TYPES
        if _SYMLINK_TYPE in types:
            is_possible &= all(
                _can_be_target(target)
                for mode, target in zip(modes, targets, strict=True)
                if mode >> 12 == _SYMLINK_TYPE
            )
        if not is_possible:
            raise self._image.error(f"{what} has impossible fields")

    def _check_names(self, names: tuple[Any, ...]) -> None:
        if b"/" in b"\0".join(names) or max(map(len, names)) > MAX_NAME_SIZE or not _NO_NAMES.isdisjoint(names):
            raise self._image.error("it has an impossible name")


def _can_be_target(target: bytes) -> bool:
    """Returns whether bytes are a valid target of a symlink."""
    return 0 < len(target) <= MAX_SYMLINK_TARGET_SIZE
