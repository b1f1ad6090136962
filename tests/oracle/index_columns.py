"""Reads the columns of an index from docs/format.md, section 3, row by row, without SQLite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise

_NUMBER = 1 << 63  # numbers that have no sign are below it
_WORD = 1 << 64
_DIRECTORY, _SYMLINK = 0o040000, 0o120000


class ColumnError(ValueError):
    """The columns are damaged."""


@dataclass
class IndexTables:
    """The rows of all tables, as the document names their fields, in the order of their keys."""

    meta: list[tuple[str, str]] = field(default_factory=list)
    inode: list[tuple[int, int, int, int, int, int, int, int, bytes | None]] = field(default_factory=list)
    dirent: list[tuple[int, bytes, int]] = field(default_factory=list)
    extent: list[tuple[int, int, int, int]] = field(default_factory=list)
    xattr: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    segment: list[tuple[int, int, int, bytes, bytes, bytes, bytes, int, bytes]] = field(default_factory=list)
    section: list[tuple[int, str, int, int, bytes]] = field(default_factory=list)
    binary_file: list[tuple[int]] = field(default_factory=list)
    generation: list[tuple[int, int, int, int, str, str]] = field(default_factory=list)
    removed_inode: list[tuple[int]] = field(default_factory=list)
    """Of changes, as the next one."""
    removed_name: list[tuple[int, bytes]] = field(default_factory=list)
    unpacked_size = 0  # not a field: it is no table


class _Columns:
    """Takes numbers of rows and columns from the columns, in order."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0
        self.all_rows = 0

    def num_rows(self) -> int:
        """Returns the number of rows of the next group."""
        n = self.varint()
        self.all_rows += n
        return n

    def varint(self) -> int:
        value = 0
        for shift in count(0, 7):
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                if value >= _WORD or (byte == 0 and shift):
                    raise ColumnError("a number has more bytes than it needs, or more than 64 bits")
                return value
        raise AssertionError

    def numbers(self, num_rows: int) -> list[int]:
        """Returns a column of numbers."""
        raw = self._take(self.varint())
        if num_rows > len(raw):
            raise ColumnError("a column is shorter than its rows")
        values = [0] * num_rows
        rows, at, shift = list(range(num_rows)), 0, 0
        while rows:
            plane = raw[at : at + len(rows)]
            if len(plane) < len(rows):
                raise ColumnError("a column is shorter than its rows")
            for row, byte in zip(rows, plane, strict=True):
                values[row] |= (byte & 127) << shift
                if values[row] >= _WORD or (byte == 0 and shift):
                    raise ColumnError("a number has more bytes than it needs, or more than 64 bits")
            rows = [row for row, byte in zip(rows, plane, strict=True) if byte >= 128]
            at, shift = at + len(plane), shift + 7
        if at != len(raw):
            raise ColumnError("a column is longer than its rows")
        return values

    def sizes(self, num_rows: int, most: int = _NUMBER - 1) -> list[int]:
        """Returns a column of numbers that are stored as they are."""
        return [_checked(value, most) for value in self.numbers(num_rows)]

    def signed(self, num_rows: int) -> list[int]:
        return [value >> 1 if value % 2 == 0 else -(value >> 1) - 1 for value in self.numbers(num_rows)]

    def differences(self, num_rows: int) -> list[int]:
        """Returns a column of signed numbers of 64 bits, each stored as the difference to the one before."""
        values, last = [], 0
        for difference in self.signed(num_rows):
            last = (last + difference + _NUMBER) % _WORD - _NUMBER
            values.append(last)
        return values

    def ascending(self, num_rows: int, least: int) -> list[int]:
        values, last = [], 0
        for difference in self.numbers(num_rows):
            last = _checked(last + difference + least)
            values.append(last)
        return values

    def strings(self, num_rows: int | None = None) -> list[bytes]:
        raw = self._take(self.varint())
        found = raw.split(b"\0")
        if found.pop() or num_rows not in (None, len(found)):
            raise ColumnError("a column has not one string for each row")
        return found

    def texts(self, num_rows: int) -> list[str]:
        return [text.decode() for text in self.strings(num_rows)]

    def raw(self) -> bytes:
        return self._take(self.varint())

    def finish(self) -> None:
        if self._at != len(self._raw):
            raise ColumnError("bytes follow the last column")

    def _take(self, size: int) -> bytes:
        taken = self._raw[self._at : self._at + size]
        if len(taken) < size:
            raise ColumnError("the columns are cut off")
        self._at += size
        return taken


def read_columns(raw: bytes, *, is_changes: bool = False) -> IndexTables:
    """Returns the rows of an index. Raises ColumnError, or UnicodeDecodeError for a text that is not UTF-8."""
    columns, tables = _Columns(raw), IndexTables()
    for read in _READERS:
        read(columns, tables)
    if is_changes:
        _read_removed(columns, tables)
    columns.finish()
    _set_link_counts(tables)
    tables.unpacked_size = len(raw) + 64 * columns.all_rows
    return tables


def merge_tables(indexes: list[IndexTables]) -> IndexTables:
    """Returns the rows that changes lead to, after those of a whole index. Raises ColumnError."""
    whole, *changes = indexes
    for each in changes:
        whole = _changed(whole, each)
    return whole


def _changed(before: IndexTables, changes: IndexTables) -> IndexTables:
    removed, own = {ino for (ino,) in changes.removed_inode}, {row[0] for row in changes.inode}
    removed_names = set(changes.removed_name)
    names = {row[:2] for row in changes.dirent}
    if removed & own or removed_names & names:
        raise ColumnError("changes both have and remove an inode or name")
    after = IndexTables(meta=changes.meta)
    for table in ("inode", "extent", "xattr", "binary_file"):
        rows = getattr(changes, table)
        if not {row[0] for row in rows} <= own:
            raise ColumnError("changes have rows of another inode")
        kept = [row for row in getattr(before, table) if row[0] not in removed | own]
        setattr(after, table, sorted(kept + rows, key=lambda row: row[:2] if row[1:] else row))
    kept_names = [row for row in before.dirent if row[:2] not in removed_names | names]
    after.dirent = sorted(kept_names + changes.dirent)
    num_blocks = sum(len(row[3]) // 4 for row in before.segment)
    later = [(len(before.segment) + row[0], num_blocks + row[1], *row[2:]) for row in changes.segment]
    after.segment = before.segment + later
    after.section = sorted(before.section + changes.section, key=lambda row: (row[0], row[1].encode()))
    _ascend([(row[0], row[1].encode()) for row in after.section])
    later_numbers = [(len(before.generation) + row[0], *row[1:]) for row in changes.generation]
    after.generation = before.generation + later_numbers
    _set_link_counts(after)
    return after


def _read_removed(columns: _Columns, tables: IndexTables) -> None:
    tables.removed_inode = [(ino,) for ino in columns.ascending(columns.num_rows(), 1)]
    n = columns.num_rows()
    tables.removed_name = list(zip(columns.ascending(n, 0), columns.strings(n), strict=True))
    _ascend(tables.removed_name)


def _checked(value: int, most: int = _NUMBER - 1) -> int:
    if not 0 <= value <= most:
        raise ColumnError("a number is negative or too large")
    return value


def _ascend(keys: list[tuple[object, object]]) -> None:
    if any(not before < after for before, after in pairwise(keys)):  # type: ignore[operator]
        raise ColumnError("keys do not ascend")


def _read_meta(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    keys, values = columns.texts(n), columns.texts(n)
    _ascend([(key.encode(), b"") for key in keys])
    tables.meta = list(zip(keys, values, strict=True))


def _read_inodes(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    inos = columns.ascending(n, 1)
    modes, uids, gids = columns.differences(n), columns.differences(n), columns.differences(n)
    sizes, mtimes, rdevs = columns.sizes(n), columns.differences(n), columns.sizes(n)
    targets = columns.strings()
    if len(targets) != sum(mode & 0o170000 == _SYMLINK for mode in modes):
        raise ColumnError("there is not one target for each symbolic link")
    left = iter(targets)
    for row in zip(inos, modes, uids, gids, sizes, mtimes, rdevs, strict=True):
        target = next(left) if row[1] & 0o170000 == _SYMLINK else None
        tables.inode.append((*row[:6], 0, row[6], target))


def _set_link_counts(tables: IndexTables) -> None:
    is_directory = {row[0]: row[1] & 0o170000 == _DIRECTORY for row in tables.inode}
    links = {ino: 2 if directory else 0 for ino, directory in is_directory.items()}
    for parent, _, ino in tables.dirent:
        if ino in is_directory and not is_directory[ino]:
            links[ino] += 1
        elif is_directory.get(ino) and is_directory.get(parent):
            links[parent] += 1
    tables.inode = [(*row[:6], links[row[0]], *row[7:]) for row in tables.inode]


def _read_entries(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    parents, names, differences = columns.ascending(n, 0), columns.strings(n), columns.signed(n)
    _ascend(list(zip(parents, names, strict=True)))
    ino = 0
    for parent, name, difference in zip(parents, names, differences, strict=True):
        ino = _checked((ino + 1 + difference) % _WORD)
        tables.dirent.append((parent, name, ino))


def _read_extents(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    inos = columns.ascending(n, 0)
    file_sizes = {row[0]: row[4] for row in tables.inode}
    last = stream_end = file_end = 0
    for ino, *differences in zip(inos, columns.signed(n), columns.signed(n), columns.signed(n), strict=True):
        file_end = file_end if ino == last else 0
        file_offset = _checked((file_end + differences[0]) % _WORD)
        stream_offset = _checked((stream_end + differences[1]) % _WORD)
        size = _checked((max(file_sizes.get(ino, 0) - file_offset, 0) + differences[2]) % _WORD)
        tables.extent.append((ino, file_offset, stream_offset, size))
        last, file_end, stream_end = ino, file_offset + size, stream_offset + size
    _ascend([row[:2] for row in tables.extent])


def _read_xattrs(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    inos, names, sizes, values = columns.ascending(n, 0), columns.strings(n), columns.numbers(n), columns.raw()
    _ascend(list(zip(inos, names, strict=True)))
    if sum(sizes) != len(values):
        raise ColumnError("the values do not fill their column")
    at = 0
    for ino, name, size in zip(inos, names, sizes, strict=True):
        tables.xattr.append((ino, name, values[at : at + size]))
        at += size


def _read_segments(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    offsets, nums_blocks, nums_parts = columns.sizes(n), columns.numbers(n), columns.numbers(n)
    heads_offsets = columns.sizes(n)
    num_parts = columns.num_rows()
    kinds, sizes = columns.sizes(num_parts, 255), columns.sizes(num_parts)
    head_sizes = columns.sizes(num_parts, (1 << 32) - 1)
    num_blocks = columns.num_rows()
    compressed, codecs = columns.differences(num_blocks), columns.sizes(num_blocks, 255)
    if sum(nums_parts) != num_parts or sum(nums_blocks) != num_blocks:
        raise ColumnError("the parts or blocks are not those of the segments")
    block = part = 0
    for number in range(n):
        blocks, parts = slice(block, block + nums_blocks[number]), slice(part, part + nums_parts[number])
        tables.segment.append(
            (
                number, block, offsets[number], _packed(compressed[blocks], 4), bytes(codecs[blocks]),
                bytes(kinds[parts]), _packed(sizes[parts], 8), heads_offsets[number], _packed(head_sizes[parts], 4),
            )
        )  # fmt: skip
        block, part = blocks.stop, parts.stop


def _read_sections(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    segments, kinds, sizes = columns.ascending(n, 0), columns.texts(n), columns.sizes(n)
    offsets, nums_blocks = columns.sizes(n), columns.numbers(n)
    num_blocks = columns.num_rows()
    compressed = columns.differences(num_blocks)
    if sum(nums_blocks) != num_blocks:
        raise ColumnError("the blocks are not those of the sections")
    _ascend([(segment, kind.encode()) for segment, kind in zip(segments, kinds, strict=True)])
    block = 0
    for segment, kind, size, offset, number in zip(segments, kinds, sizes, offsets, nums_blocks, strict=True):
        tables.section.append((segment, kind, size, offset, _packed(compressed[block : block + number], 4)))
        block += number


def _read_binary_files(columns: _Columns, tables: IndexTables) -> None:
    tables.binary_file = [(ino,) for ino in columns.ascending(columns.num_rows(), 1)]


def _read_generations(columns: _Columns, tables: IndexTables) -> None:
    n = columns.num_rows()
    found = columns.differences(n), columns.sizes(n), columns.sizes(n), columns.texts(n), columns.texts(n)
    tables.generation = list(zip(range(1, n + 1), *found, strict=True))


def _packed(values: list[int], size: int) -> bytes:
    return b"".join(_checked(value, (1 << 8 * size) - 1).to_bytes(size, "little") for value in values)


_READERS: tuple[Callable[[_Columns, IndexTables], None], ...] = (
    _read_meta,
    _read_inodes,
    _read_entries,
    _read_extents,
    _read_xattrs,
    _read_segments,
    _read_sections,
    _read_binary_files,
    _read_generations,
)
