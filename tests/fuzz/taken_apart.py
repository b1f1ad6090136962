"""An archive taken apart into data and index, which can be changed and reassembled.

`TakenApart.build` computes all checksums from the inside out, so that a mutation looks as if a writer had written it.
Blocks of a row lie one after another, so blocks that grow, and those of a row that were moved, are appended after all
others, and the index is updated with their new offsets.
"""

from __future__ import annotations

import itertools
import sqlite3
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from column_groups import columns_of_image
from oracle.archive import BLOCK_FIELDS, FOOTER_FIELDS, HEADER_FIELDS, SUPERBLOCK_FIELDS
from xxhash import xxh3_64, xxh3_64_intdigest

from gompfs.errors import CorruptIndexError
from gompfs.format import NUM_COPIES, ArchiveFile, TrailerPosition, align, encode_columns, find_newest, read_copy
from gompfs.index.image import build_image

_MASK = (1 << 64) - 1
_MAX_STEPS = 5000  # steps of 1,000 SQLite instructions

Where = tuple[int] | tuple[int, str]
"""The row that says where blocks are: (segment,) for the stream, (segment, kind) for a section."""


def with_checksum(fields: bytes) -> bytes:
    """Returns the fields of a superblock or footer, followed by their checksum."""
    return fields + xxh3_64_intdigest(fields).to_bytes(8, "little")


def seal(codec: int, payload: bytes, uncompressed_size: int, content_xxh3: int, **odd: int | bytes) -> bytes:
    """Returns a block with a valid block checksum. `odd` overrides header fields: magic, reserved, size."""
    fields = BLOCK_FIELDS.pack(
        odd.get("magic", b"GBLK"),
        codec & 0xFF,
        odd.get("reserved", bytes(3)),
        int(odd.get("size", len(payload))) & 0xFFFFFFFF,
        uncompressed_size & 0xFFFFFFFF,
        content_xxh3,
    )
    digest = xxh3_64(fields)
    digest.update(payload)
    return fields + digest.intdigest().to_bytes(8, "little") + payload


@dataclass
class Places:
    """The offsets and sizes of the blocks in one row of the index."""

    offsets: list[int]
    sizes: list[int]
    uncompressed_size: int


class BytesFile:
    """An archive in memory. Implements ArchiveFile."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def size(self) -> int:
        return len(self._content)

    def read(self, size: int, archive_offset: int) -> bytes:
        return self._content[archive_offset : archive_offset + size]

    def read_into(self, buffer: memoryview, archive_offset: int) -> int:
        found = self.read(len(buffer), archive_offset)
        buffer[: len(found)] = found
        return len(found)

    def announce(self, ranges: Iterable[tuple[int, int]], *, are_all: bool = True) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class TakenApart:
    """The parts of an archive. `data` is everything before the newest index, `columns` are those of the index.

    `start` is the offset of the header of the newest generation, or 0; `previous` that of the footer before.
    """

    data: bytearray
    columns: bytes
    generation: int
    start: int
    previous: int
    changes: tuple[int, bytes] = (0, b"")
    """If the newest index is one of changes: how many follow the last whole index, and the columns of this one."""
    num_changes: int = 0
    """The field of the footers. It is set with `columns` that are changes."""
    after_index: list[Callable[[bytes], bytes]] = field(default_factory=list)
    """Changes of the whole file that are made after all checksums, such as cuts and tails."""
    odd_footer: dict[str, int] = field(default_factory=dict)
    """Fields of the footers that differ from what the parts imply."""
    odd_copies: tuple[int, ...] = (0, 1)
    """The copies of the index whose footers have the fields in `odd_footer`."""
    odd_pin: dict[str, int] = field(default_factory=dict)
    """Fields of the header (or superblock) that differ: index_offset, index_size, generation, reserved."""

    @classmethod
    def of(cls, content: bytes) -> TakenApart:
        """Takes apart an archive that ends with its trailers."""
        file: ArchiveFile = BytesFile(content)  # type: ignore[assignment]
        newest = find_newest(file)
        found = newest.footer
        data = bytearray(content[: newest.data_end])
        changes = (found.num_changes, bytes(read_copy(file, found))) if found.num_changes else (0, b"")
        return cls(data, bytes(newest.columns), found.generation, found.start, found.previous_footer, changes)

    def build(self) -> bytes:
        """Returns the archive made of these parts."""
        self.data += bytes(-len(self.data) % 16)
        stored = encode_columns(self.columns, [])
        position = TrailerPosition(len(self.data), len(stored))
        content = bytearray(self.data)
        for copy in range(NUM_COPIES):
            content += stored.ljust(align(len(stored), 16), b"\0") + self._footer(copy, position, len(stored))
        self._pin(content, position)
        changed = bytes(content)
        for change in self.after_index:
            changed = change(changed)
        return changed

    def _footer(self, copy: int, position: TrailerPosition, stored_size: int) -> bytes:
        fields = {
            "generation": self.generation,
            "copy": copy,
            "start": self.start,
            "index_offset": position.copy_offset(copy),
            "index_size": stored_size,
            "columns_size": len(self.columns),
            "index_xxh3": xxh3_64_intdigest(self.columns),
            "previous": self.previous,
            "num_changes": self.num_changes,
            "features": 0,
        }
        if copy in self.odd_copies:
            fields |= {name: value for name, value in self.odd_footer.items() if name in fields}
        generation, number, *numbers, num_changes, features = fields.values()
        masked = [*(value & _MASK for value in numbers), num_changes & 0xFFFFFFFF, features & 0xFFFFFFFF]
        raw = FOOTER_FIELDS.pack(b"GOMPEND2", generation & 0xFFFFFFFF, number & 0xFFFFFFFF, self.data[16:32], *masked)
        return with_checksum(raw)

    def _pin(self, content: bytearray, position: TrailerPosition) -> None:
        """Writes the position of the index to the header of the generation, or to the superblock."""
        offset = self.odd_pin.get("index_offset", position.index_offset) & _MASK
        size = self.odd_pin.get("index_size", position.index_size) & _MASK
        if self.start:
            generation = self.odd_pin.get("generation", self.generation) & 0xFFFFFFFF
            reserved = self.odd_pin.get("reserved", 0) & _MASK
            fields = HEADER_FIELDS.pack(b"\x89GGENER\n", generation, 0, self.data[16:32], offset, size, reserved)
            content[self.start : self.start + 64] = with_checksum(fields)
        else:
            content[32:48] = struct.pack("<QQ", offset, size)
            content[:64] = with_checksum(bytes(content[: SUPERBLOCK_FIELDS.size]))

    # The index

    def change_index(self, change: Callable[[sqlite3.Connection], None]) -> None:
        """Changes the rows. Raises sqlite3.Error, also if a value has another type than its column."""
        connection = self._connect()
        try:
            change(connection)
            self.columns, _ = columns_of_image(connection.serialize())
        except ValueError as error:
            raise sqlite3.IntegrityError(str(error)) from error
        finally:
            connection.close()

    def rows(self, query: str, *arguments: object) -> list[tuple]:
        """Returns the rows of a query. Raises sqlite3.Error."""
        connection = self._connect()
        try:
            return connection.execute(query, arguments).fetchall()
        finally:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        """Opens the database. Statements end with an error if an earlier mutation has made them endless."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            connection.deserialize(build_image(self.columns))
        except CorruptIndexError as error:
            raise sqlite3.DatabaseError(str(error)) from error
        steps = itertools.count()
        connection.set_progress_handler(lambda: next(steps) > _MAX_STEPS, 1000)
        return connection

    # Blocks

    @property
    def block_size(self) -> int:
        return SUPERBLOCK_FIELDS.unpack_from(self.data)[2]

    def block_rows(self) -> list[Where]:
        """Returns all rows that have blocks: of the stream and of sections."""
        query = "SELECT number FROM segment WHERE length(compressed_sizes) > 0"
        segments = [(number,) for (number,) in self.rows(query)]
        return segments + self.rows("SELECT segment, kind FROM section WHERE uncompressed_size > 0")

    def heads(self, segment: int) -> list[bytes]:
        """Returns the heads of the parts of a segment, with their headers; empty for a part that has none."""
        ((offset, packed),) = self.rows("SELECT heads_offset, head_sizes FROM segment WHERE number = ?", segment)
        found = []
        for size in struct.unpack(f"<{len(packed) // 4}I", packed):
            found.append(bytes(self.data[offset : offset + size]))
            offset = align(offset + size, 16)
        return found

    def set_heads(self, segment: int, heads: list[bytes]) -> None:
        """Writes other heads at the end of the data."""
        offsets = [self.append(head) for head in heads if head] or [0]
        sizes = b"".join(len(head).to_bytes(4, "little") for head in heads)
        statement = "UPDATE segment SET heads_offset = ?, head_sizes = ? WHERE number = ?"
        self.change_index(lambda index: index.execute(statement, (offsets[0], sizes, segment)))

    def places(self, where: Where) -> Places:
        """Returns the offsets and sizes of the blocks that a row of `segment` or `section` describes."""
        columns = "archive_offset, compressed_sizes, "
        columns += "part_sizes" if len(where) == 1 else "uncompressed_size"
        ((offset, packed, size),) = self.rows(f"SELECT {columns} FROM {row_condition(where)}", *where)
        sizes = list(struct.unpack(f"<{len(packed) // 4}I", packed))
        if isinstance(size, bytes):
            size = sum(struct.unpack(f"<{len(size) // 8}Q", size))
        offsets = []
        for each in sizes:
            offsets.append(offset)
            offset = align(offset + each, 16)
        return Places(offsets, sizes, size)

    def set_places(self, where: Where, places: Places) -> None:
        """Sets the offsets and sizes of the blocks of a row. If they do not lie one after another, they are copied."""
        old = self.places(where)
        ends = [align(offset + size, 16) for offset, size in zip(places.offsets, places.sizes, strict=True)]
        if places.offsets[1:] != ends[:-1]:
            places.offsets = [
                self.append(bytes(self.data[max(offset, 0) : max(offset, 0) + min(size, 2 << 20)]))
                for offset, size in zip(places.offsets, places.sizes, strict=True)
            ]
        first = places.offsets[0] if places.offsets else 0
        values: list[object] = [
            (first + (1 << 63)) % (1 << 64) - (1 << 63),
            b"".join((size & 0xFFFFFFFF).to_bytes(4, "little") for size in places.sizes),
        ]
        sets = "archive_offset = ?, compressed_sizes = ?"
        if len(where) == 2:
            sets += ", uncompressed_size = ?"
            values.append(places.uncompressed_size)
        else:
            count = len(places.sizes)
            sets += ", codecs = substr(CAST(codecs || zeroblob(?) AS BLOB), 1, ?)"
            values += [count, count]
            if places.uncompressed_size != old.uncompressed_size:  # then the segment becomes one part
                sets += ", part_kinds = x'00', head_sizes = zeroblob(4), part_sizes = ?"
                values.append((places.uncompressed_size & _MASK).to_bytes(8, "little"))
        statement = row_condition(where).replace(" WHERE", f" SET {sets} WHERE")
        self.change_index(lambda index: index.execute(f"UPDATE {statement}", (*values, *where)))

    def block(self, where: Where, number: int) -> bytes:
        """Returns a block as it is in the file."""
        places = self.places(where)
        start = places.offsets[number]
        return bytes(self.data[start : start + places.sizes[number]])

    def set_block(self, where: Where, number: int, block: bytes) -> None:
        """Replaces a block, in place if there is space."""
        places = self.places(where)
        if len(block) > places.sizes[number]:
            places.offsets[number] = self.append(block)
        else:
            start = places.offsets[number]
            self.data[start : start + len(block)] = block
        places.sizes[number] = len(block)
        self.set_places(where, places)

    def append(self, block: bytes) -> int:
        """Appends a block after all others and returns its offset."""
        self.data += bytes(-len(self.data) % 16)
        self.data += block
        return len(self.data) - len(block)


def row_condition(where: Where) -> str:
    """Returns the table of a row, and the SQL condition that selects the row."""
    return "segment WHERE number = ?" if len(where) == 1 else "section WHERE segment = ? AND kind = ?"
