"""Writes small archives from docs/format.md, including valid ones that the packer never writes, and invalid ones.

Checksums are valid whatever the content is.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from column_groups import columns_of_image
from forged_index import trailers
from xxhash import xxh3_64_intdigest

from gompfs.format import (
    GENERATION_HEADER_SIZE,
    NUM_COPIES,
    SUPERBLOCK_SIZE,
    Footer,
    GenerationHeader,
    Superblock,
    TrailerPosition,
    align,
    encode_columns,
)
from gompfs.model import PartKind

SCHEMA = Path(__file__).parents[2] / "gompfs" / "index" / "schema.sql"
BLOCK_SIZE = 1 << 14
_ALIGNMENT = 16
_ROOT_INO = 1
_TIME_NS = 1_500_000_000_000_000_000


@dataclass
class StoredPart:
    """A part of the stream: its size in bytes, its blocks and its head as they are stored in the file."""

    size: int
    blocks: list[bytes]
    head: bytes = b""
    kind: PartKind = PartKind.GRAMMAR


@dataclass
class ArchiveBuilder:
    """One segment of these parts and sections, entries of the root, and SQL statements that then change the index.

    The blocks of sections are given as they are stored in the file, with their uncompressed sizes.
    """

    parts: list[StoredPart] = field(default_factory=list)
    sections: dict[str, list[tuple[bytes, int]]] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    uuid: bytes = UUID(int=1).bytes
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
        content, columns = self.content_and_columns()
        return with_index(content, columns)

    def content_and_columns(self) -> tuple[bytes, bytes]:
        """Returns a superblock that locates no index, blocks and heads; and the columns of the index."""
        content = bytearray(Superblock(self.block_size, self.uuid, index_offset=0, index_size=0).to_bytes())
        blocks = [block for part in self.parts for block in part.blocks]
        heads = [part.head for part in self.parts]
        segment = (
            0, 0, _append(content, blocks), _u32(map(len, blocks)), bytes(block[4] for block in blocks),
            bytes(part.kind for part in self.parts),
            b"".join(part.size.to_bytes(8, "little") for part in self.parts),
            _append(content, [head for head in heads if head]), _u32(map(len, heads)),
        )  # fmt: skip
        sections = []
        for kind, stored in self.sections.items():
            raw = [block for block, _ in stored]
            sections.append((0, kind, sum(size for _, size in stored), _append(content, raw), _u32(map(len, raw))))
        content += bytes(-len(content) % _ALIGNMENT)
        return bytes(content), self._columns(segment, sections)

    def _columns(self, segment: tuple[object, ...], sections: Sequence[tuple[object, ...]]) -> bytes:
        """Returns an index with these rows of the tables `segment` and `section`."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(SCHEMA.read_text())
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
        note = (1, _TIME_NS // 10**9, len(self._inodes), 0, "tests", "")
        connection.execute("INSERT INTO generation VALUES (?, ?, ?, ?, ?, ?)", note)
        for statement in self.statements:
            connection.execute(statement)
        columns, _ = columns_of_image(connection.serialize())
        connection.close()
        return columns


def with_index(content: bytes, columns: bytes, stored: bytes | None = None, **fields: int) -> bytes:
    """Returns an archive of one generation: superblock and blocks, and both copies of an index.

    `stored` are the blocks of the index, if they are not those of `columns`; `fields` override those of the footers.
    """
    stored = encode_columns(columns, []) if stored is None else stored
    superblock = Superblock.from_bytes(content[:SUPERBLOCK_SIZE])
    superblock = superblock._replace(index_offset=len(content), index_size=len(stored))
    footer = _footer(1, superblock, 0, len(content), stored, columns, 0)
    return superblock.to_bytes() + content[SUPERBLOCK_SIZE:] + trailers(footer._replace(**fields), stored, len(content))


def with_generation(archive: bytes, columns: bytes) -> tuple[bytes, int]:
    """Returns an archive with a second generation that has no blocks, and the archive offset of its header."""
    superblock = Superblock.from_bytes(archive[:SUPERBLOCK_SIZE])
    before = position_of(archive)
    start = align(before.end, GENERATION_HEADER_SIZE)
    offset = start + GENERATION_HEADER_SIZE
    stored = encode_columns(columns, [])
    header = GenerationHeader(2, superblock.uuid, offset, len(stored))
    footer = _footer(2, superblock, start, offset, stored, columns, before.footer_offset(NUM_COPIES - 1))
    return archive.ljust(start, b"\0") + header.to_bytes() + trailers(footer, stored, offset), start


def position_of(archive: bytes) -> TrailerPosition:
    """Returns where the trailers of generation 1 are."""
    superblock = Superblock.from_bytes(archive[:SUPERBLOCK_SIZE])
    return TrailerPosition(superblock.index_offset, superblock.index_size)


def _footer(
    generation: int, superblock: Superblock, start: int, offset: int, stored: bytes, columns: bytes, previous: int
) -> Footer:
    checksum = xxh3_64_intdigest(columns)
    return Footer(generation, 0, superblock.uuid, start, offset, len(stored), len(columns), checksum, previous)


def _append(content: bytearray, blocks: Sequence[bytes]) -> int:
    """Appends blocks. Returns the archive offset of the first one, or 0 if there is none."""
    start = align(len(content), _ALIGNMENT) if blocks else 0
    for block in blocks:
        content += bytes(-len(content) % _ALIGNMENT) + block
    return start


def _u32(numbers: Iterable[int]) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)
