"""An archive taken apart into superblock, blocks, index and footer, which can be changed and reassembled.

`TakenApart.build` computes all checksums from the inside out, so that a mutation looks as if a writer had written it.
Blocks that grow are appended after all others, and the index is updated with their new offsets.
"""

from __future__ import annotations

import itertools
import sqlite3
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from xxhash import xxh3_64, xxh3_64_intdigest

BLOCK_FIELDS = struct.Struct("<4sB3sIIQ")  # magic, codec, reserved, payload size, uncompressed size, content checksum
BLOCK_HEADER_SIZE = 32
FOOTER_FIELDS = struct.Struct("<8sIIQQQQQ")
FOOTER_SIZE = 64
SUPERBLOCK_FIELDS = struct.Struct("<8sII16s24s")
SUPERBLOCK_SIZE = 64

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


@dataclass
class Footer:
    """The footer fields that mutations change."""

    generation: int
    index_offset: int
    index_size: int
    index_xxh3: int
    previous: int
    reserved: int = 0
    reserved_too: int = 0

    def to_bytes(self) -> bytes:
        numbers = (self.index_offset, self.index_size, self.index_xxh3, self.previous, self.reserved_too)
        masked = [number & (1 << 64) - 1 for number in numbers]
        fields = (b"GOMPEND\n", self.generation & 0xFFFFFFFF, self.reserved & 0xFFFFFFFF, *masked)
        return with_checksum(FOOTER_FIELDS.pack(*fields))


@dataclass
class TakenApart:
    """The parts of an archive. `data` is everything before the newest index, `image` is the index."""

    data: bytearray
    image: bytes
    footer: Footer
    after_image: list[Callable[[bytes], bytes]] = field(default_factory=list)
    """Changes of the whole file that are made after all checksums, such as cuts and tails."""
    odd_footer: dict[str, int] = field(default_factory=dict)
    """Fields of the footer that differ from what the parts imply."""

    @classmethod
    def of(cls, content: bytes) -> TakenApart:
        """Takes apart an archive that ends with its newest generation."""
        if content[8:12] == b"\2\0\0\0":
            from taken_apart_2 import TakenApart2

            return TakenApart2.of(content)
        _, generation, _, offset, size, xxh3, previous, _ = FOOTER_FIELDS.unpack_from(content, len(content) - 64)
        footer = Footer(generation, offset, size, xxh3, previous)
        return cls(bytearray(content[:offset]), content[offset : offset + size], footer)

    def build(self) -> bytes:
        """Returns the archive made of these parts."""
        self.data += bytes(-len(self.data) % 4096)
        footer = Footer(
            self.footer.generation, len(self.data), len(self.image), xxh3_64_intdigest(self.image), self.footer.previous
        )
        content = bytes(self.data) + self.image + bytes(-len(self.image) % FOOTER_SIZE)
        for name, value in self.odd_footer.items():
            setattr(footer, name, value)
        if {"index_offset", "index_size"} & self.odd_footer.keys():
            start, size = footer.index_offset, footer.index_size
            if start >= 0 and 0 <= size < 1 << 31:
                footer.index_xxh3 = xxh3_64_intdigest(content[start : start + size])
                content += bytes(max(0, -(-(start + size) // 64) * 64 - len(content)) if start + size < 1 << 26 else 0)
        content += footer.to_bytes()
        for change in self.after_image:
            content = change(content)
        return content

    # The index

    def change_index(self, change: Callable[[sqlite3.Connection], None]) -> None:
        """Changes the database. Raises sqlite3.Error."""
        connection = self._connect()
        try:
            change(connection)
            self.image = connection.serialize()
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
        connection.deserialize(self.image)
        steps = itertools.count()
        connection.set_progress_handler(lambda: next(steps) > _MAX_STEPS, 1000)
        return connection

    # Blocks

    @property
    def block_size(self) -> int:
        return SUPERBLOCK_FIELDS.unpack_from(self.data)[2]

    def block_rows(self) -> list[Where]:
        """Returns all rows that have blocks: of the stream and of sections."""
        segments = [(number,) for (number,) in self.rows("SELECT number FROM segment WHERE num_blocks > 0")]
        return segments + self.rows("SELECT segment, kind FROM section WHERE uncompressed_size > 0")

    def places(self, where: Where) -> Places:
        """Returns where the blocks of a row are."""
        columns = "archive_offsets, compressed_sizes, uncompressed_size"
        ((offsets, sizes, size),) = self.rows(f"SELECT {columns} FROM {row_condition(where)}", *where)
        count = len(offsets) // 8
        return Places(list(struct.unpack(f"<{count}Q", offsets)), list(struct.unpack(f"<{count}I", sizes)), size)

    def set_places(self, where: Where, places: Places) -> None:
        """Sets where the blocks of a row are."""
        offsets = b"".join((number & (1 << 64) - 1).to_bytes(8, "little") for number in places.offsets)
        sizes = b"".join((number & 0xFFFFFFFF).to_bytes(4, "little") for number in places.sizes)
        sets = "archive_offsets = ?, compressed_sizes = ?, uncompressed_size = ?"
        values: list[object] = [offsets, sizes, places.uncompressed_size]
        if len(where) == 1:
            sets += ", num_blocks = ?, codecs = substr(CAST(codecs || zeroblob(?) AS BLOB), 1, ?)"
            values += [len(places.offsets)] * 3
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

    def set_section(self, where: Where, content: bytes) -> None:
        """Replaces the content of a section, in stored blocks."""
        places = Places([], [], len(content))
        for start in range(0, len(content), self.block_size):
            piece = content[start : start + self.block_size]
            block = seal(0, piece, len(piece), xxh3_64_intdigest(piece))
            places.offsets.append(self.append(block))
            places.sizes.append(len(block))
        self.set_places(where, places)


def row_condition(where: Where) -> str:
    """Returns the table of a row, and the SQL condition that selects the row."""
    return "segment WHERE number = ?" if len(where) == 1 else "section WHERE segment = ? AND kind = ?"
