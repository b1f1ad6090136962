"""Writes small archives from docs/format.md, including valid ones that the packer never writes, and invalid ones.

Checksums are valid whatever the content is. The index has small pages, which keeps the archives small.
"""

from __future__ import annotations

import sqlite3
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from xxhash import xxh3_64_intdigest

from gompfs.format import FOOTER_SIZE, SUPERBLOCK_SIZE, Footer, Superblock

SCHEMA = Path(__file__).parents[2] / "gompfs" / "index" / "schema.sql"
BLOCK_SIZE = 1 << 14
PAGE_SIZE = 512
_BLOCK_ALIGNMENT = 16
_INDEX_ALIGNMENT = 4096
_ROOT_INO = 1
_TIME_NS = 1_500_000_000_000_000_000


def grammar_section(words: list[bytes], parts: list[bytes], version: int = 1) -> bytes:
    """Returns a grammar section of the builder sequitur and the word rule `whitespace`. Words share no prefixes."""
    header = struct.pack("<4sHBBII16x", b"GGRM", version, 0, 1, len(words), len(parts))
    lengths = b"".join(_number(len(word), 2) for word in words)
    return b"".join([header, bytes(len(words)), lengths, *words, *parts])


def grammar_part(
    ino: int, num_words: int, places: list[int], rules: list[list[int]], *, continues: bool = False
) -> bytes:
    """Returns a part of one file, with the dictionary words at `places`, and rules of coded symbols."""
    return b"".join(
        [
            *map(_number, (continues, num_words, 1)),
            _difference(0, ino),
            _number(len(places)),
            *map(_difference, [0, *places[:-1]], places),
            _number(len(rules)),
            *(_number(len(rule)) for rule in rules),
            *(_number(symbol, 3) for rule in rules for symbol in rule),
        ]
    )


def _number(value: int, size: int = 1) -> bytes:
    """Returns a number of a grammar section, in at least `size` bytes."""
    groups = []
    while value or len(groups) < size:
        groups.append(value & 0x7F)
        value >>= 7
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def _difference(start: int, end: int) -> bytes:
    return _number(2 * (end - start) if end >= start else 2 * (start - end) - 1)


@dataclass
class ArchiveBuilder:
    """One segment: blocks of the stream, sections, entries of the root, and SQL statements that then change the index.

    Blocks are given as stored in the file, with their uncompressed sizes. They are written in reverse order.
    """

    blocks: list[tuple[bytes, int]] = field(default_factory=list)
    sections: dict[str, list[tuple[bytes, int]]] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    uuid: UUID = field(default_factory=lambda: UUID(int=1))
    block_size: int = BLOCK_SIZE
    meta: dict[str, str] = field(default_factory=lambda: {"words": "whitespace"})
    _inodes: list[tuple[object, ...]] = field(default_factory=list)
    _names: list[tuple[object, ...]] = field(default_factory=list)
    _extents: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add_entry(self, name: bytes, mode: int, *, size: int = 0, target: bytes | None = None, rdev: int = 0) -> int:
        """Adds an entry of the root and returns its inode number."""
        ino = _ROOT_INO + 1 + len(self._inodes)
        num_links = 2 if stat.S_ISDIR(mode) else 1
        self._inodes.append((ino, mode, 0, 0, size, _TIME_NS + ino, num_links, rdev, target))
        self._names.append((_ROOT_INO, name, ino))
        return ino

    def add_file(self, name: bytes, size: int, stream_offset: int) -> int:
        """Adds a regular file whose bytes begin at `stream_offset`, and returns its inode number."""
        ino = self.add_entry(name, stat.S_IFREG | 0o644, size=size)
        if size:
            self._extents.append((ino, 0, stream_offset, size))
        return ino

    def build(self) -> bytes:
        """Returns the archive."""
        content = bytearray(Superblock(self.block_size, self.uuid).to_bytes())
        assert len(content) == SUPERBLOCK_SIZE
        stream = _write_blocks(content, self.blocks)
        sections = {kind: _write_blocks(content, blocks) for kind, blocks in self.sections.items()}
        return append_index(bytes(content), self._index(stream, sections))

    def _index(self, stream: tuple[bytes, bytes, int], sections: dict[str, tuple[bytes, bytes, int]]) -> bytes:
        offsets, sizes, size = stream
        codecs = bytes(raw[4] for raw, _ in self.blocks)
        segment = 0, 0, len(self.blocks), size, offsets, sizes, codecs
        return self.image(SCHEMA, segment, [(0, kind, size, *where) for kind, (*where, size) in sections.items()])

    def image(self, schema: Path, segment: tuple[object, ...], sections: Sequence[tuple[object, ...]]) -> bytes:
        """Returns an index with these rows of the tables `segment` and `section`."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(schema.read_text().replace("page_size = 4096", f"page_size = {PAGE_SIZE}"))
        num_directories = sum(stat.S_ISDIR(mode) for _, mode, *_ in self._inodes if isinstance(mode, int))
        root = (_ROOT_INO, stat.S_IFDIR | 0o755, 0, 0, 0, _TIME_NS, 2 + num_directories, 0, None)
        connection.executemany("INSERT INTO inode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [root, *self._inodes])
        connection.executemany("INSERT INTO dirent VALUES (?, ?, ?)", self._names)
        connection.executemany("INSERT INTO extent VALUES (?, ?, ?, ?)", self._extents)
        for table, rows in (("segment", [segment]), ("section", sections)):
            for row in rows:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        meta = {**self.meta, "next_ino": str(_ROOT_INO + 1 + len(self._inodes))}
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        for statement in self.statements:
            connection.execute(statement)
        connection.execute("VACUUM")
        image = connection.serialize()
        connection.close()
        return image


def append_index(content: bytes, image: bytes, **fields: int) -> bytes:
    """Appends an index and its footer to superblock and blocks; `fields` override footer fields."""
    content += bytes(-len(content) % _INDEX_ALIGNMENT)
    values = {
        "generation": 1,
        "index_offset": len(content),
        "index_size": len(image),
        "index_xxh3": xxh3_64_intdigest(image),
        "previous_footer": 0,
    }
    content += image + bytes(-len(image) % FOOTER_SIZE)
    return content + Footer(**{**values, **fields}).to_bytes()


def _write_blocks(content: bytearray, blocks: list[tuple[bytes, int]]) -> tuple[bytes, bytes, int]:
    """Appends blocks. Returns their index columns archive_offsets and compressed_sizes, and their total size."""
    offsets = []
    for raw, _ in reversed(blocks):
        content += bytes(-len(content) % _BLOCK_ALIGNMENT)
        offsets.append(len(content))
        content += raw
    return (
        b"".join(offset.to_bytes(8, "little") for offset in reversed(offsets)),
        b"".join(len(raw).to_bytes(4, "little") for raw, _ in blocks),
        sum(size for _, size in blocks),
    )
