"""An archive of format version 2 taken apart, and reassembled with right checksums; see taken_apart.py.

Blocks of a row lie one after another, so a row whose blocks were moved gets copies of them at the end of the data.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from taken_apart import SUPERBLOCK_FIELDS, Footer, Places, TakenApart, Where, row_condition, with_checksum
from xxhash import xxh3_64_intdigest

from gompfs.format import NUM_COPIES, TrailerPosition, align, encode_image
from gompfs.generations import find_newest

TRAILER_FIELDS = struct.Struct("<8sII16sQQQQQQQ")
HEADER_FIELDS = struct.Struct("<8sII16sQQQ")
_MASK = (1 << 64) - 1


class BytesFile:
    """An archive in memory. Implements ArchiveFile."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def size(self) -> int:
        return len(self._content)

    def read(self, size: int, archive_offset: int) -> bytes:
        return self._content[archive_offset : archive_offset + size]


@dataclass
class TakenApart2(TakenApart):
    """The parts of an archive of version 2. `start` is the offset of the header of the newest generation, or 0."""

    uuid: bytes = bytes(16)
    start: int = 0
    odd_copies: tuple[int, ...] = (0, 1)
    """The copies of the index whose footers have the fields in `odd_footer`."""
    odd_pin: dict[str, int] = field(default_factory=dict)
    """Fields of the header (or superblock) that differ: index_offset, index_size, generation, reserved."""

    @classmethod
    def of(cls, content: bytes) -> TakenApart2:
        """Takes apart an archive that ends with its trailers."""
        newest = find_newest(BytesFile(content))  # type: ignore[arg-type]
        found = newest.footer
        footer = Footer(found.generation, newest.data_end, found.index_size, 0, found.previous_footer)
        data, image = bytearray(content[: newest.data_end]), bytes(newest.image)
        return cls(data, image, footer, uuid=content[16:32], start=found.start)  # type: ignore[union-attr]

    def build(self) -> bytes:
        """Returns the archive made of these parts."""
        self.data += bytes(-len(self.data) % 16)
        stored = encode_image(self.image, self.block_size if 1 << 14 <= self.block_size <= 1 << 20 else 1 << 16)
        position = TrailerPosition(len(self.data), len(stored))
        content = bytearray(self.data)
        for copy in range(NUM_COPIES):
            content += stored.ljust(align(len(stored), 16), b"\0") + self._footer(copy, position, len(stored))
        self._pin(content, position)
        changed = bytes(content)
        for change in self.after_image:
            changed = change(changed)
        return changed

    def _footer(self, copy: int, position: TrailerPosition, stored_size: int) -> bytes:
        fields = {
            "generation": self.footer.generation,
            "copy": copy,
            "start": self.start,
            "index_offset": position.copy_offset(copy),
            "index_size": stored_size,
            "image_size": len(self.image),
            "index_xxh3": xxh3_64_intdigest(self.image),
            "previous": self.footer.previous,
            "reserved": 0,
        }
        if copy in self.odd_copies:
            fields |= {name: value for name, value in self.odd_footer.items() if name in fields}
        generation, number, *numbers = fields.values()
        masked = [value & _MASK for value in numbers]
        raw = TRAILER_FIELDS.pack(b"GOMPEND2", generation & 0xFFFFFFFF, number & 0xFFFFFFFF, self.uuid, *masked)
        return with_checksum(raw)

    def _pin(self, content: bytearray, position: TrailerPosition) -> None:
        """Writes the position of the index to the header of the generation, or to the superblock."""
        offset = self.odd_pin.get("index_offset", position.index_offset) & _MASK
        size = self.odd_pin.get("index_size", position.index_size) & _MASK
        if self.start:
            generation = self.odd_pin.get("generation", self.footer.generation) & 0xFFFFFFFF
            reserved = self.odd_pin.get("reserved", 0) & _MASK
            fields = HEADER_FIELDS.pack(b"\x89GGENER\n", generation, 0, self.uuid, offset, size, reserved)
            content[self.start : self.start + 64] = with_checksum(fields)
        else:
            content[32:48] = struct.pack("<QQ", offset, size)
            content[:64] = with_checksum(bytes(content[: SUPERBLOCK_FIELDS.size]))

    # Blocks

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
        """Returns where the blocks of a row are."""
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
        """Sets where the blocks of a row are. If they do not lie one after another, they are copied."""
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
