"""Writes small archives of format version 2 from docs/format-2.md, including invalid ones.

Checksums are valid whatever the content is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from archive_builder import BLOCK_SIZE, ArchiveBuilder
from forged_index import trailers
from xxhash import xxh3_64_intdigest

from gompfs.format import (
    GENERATION_HEADER_SIZE,
    NUM_COPIES,
    SUPERBLOCK_SIZE,
    GenerationHeader,
    Superblock,
    TrailerFooter,
    TrailerPosition,
    align,
    encode_image,
)
from gompfs.model import PartKind

SCHEMA_2 = Path(__file__).parents[2] / "gompfs" / "index" / "schema2.sql"
_ALIGNMENT = 16


@dataclass
class StoredPart:
    """A part of the stream: its size in bytes, its blocks and its head as they are stored in the file."""

    size: int
    blocks: list[bytes]
    head: bytes = b""
    kind: PartKind = PartKind.GRAMMAR


@dataclass
class ArchiveBuilder2(ArchiveBuilder):
    """One segment of these parts and sections, entries of the root, and SQL statements that then change the index."""

    parts: list[StoredPart] = field(default_factory=list)

    def build(self) -> bytes:
        """Returns the archive."""
        content, image = self.content_and_image()
        return with_index(content, image)

    def content_and_image(self) -> tuple[bytes, bytes]:
        """Returns a superblock that locates no index, blocks and heads; and the image of the index."""
        content = bytearray(Superblock(self.block_size, self.uuid, version=2).to_bytes())
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
        return bytes(content), self.image(SCHEMA_2, segment, sections)


def with_index(content: bytes, image: bytes, stored: bytes | None = None, **fields: int) -> bytes:
    """Returns an archive of one generation: superblock and blocks, and both copies of an index.

    `stored` are the blocks of the index, if they are not those of `image`; `fields` override those of the footers.
    """
    stored = encode_image(image, BLOCK_SIZE) if stored is None else stored
    superblock = Superblock.from_bytes(content[:SUPERBLOCK_SIZE])
    superblock = superblock._replace(index_offset=len(content), index_size=len(stored))
    footer = _footer(1, superblock, 0, len(content), stored, image, 0)
    return superblock.to_bytes() + content[SUPERBLOCK_SIZE:] + trailers(footer._replace(**fields), stored, len(content))


def with_generation(archive: bytes, image: bytes) -> tuple[bytes, int]:
    """Returns an archive with a second generation that has no blocks, and the archive offset of its header."""
    superblock = Superblock.from_bytes(archive[:SUPERBLOCK_SIZE])
    before = position_of(archive)
    start = align(before.end, GENERATION_HEADER_SIZE)
    offset = start + GENERATION_HEADER_SIZE
    stored = encode_image(image, BLOCK_SIZE)
    header = GenerationHeader(2, superblock.uuid, offset, len(stored))
    footer = _footer(2, superblock, start, offset, stored, image, before.footer_offset(NUM_COPIES - 1))
    return archive.ljust(start, b"\0") + header.to_bytes() + trailers(footer, stored, offset), start


def position_of(archive: bytes) -> TrailerPosition:
    """Returns where the trailers of generation 1 are."""
    superblock = Superblock.from_bytes(archive[:SUPERBLOCK_SIZE])
    return TrailerPosition(superblock.index_offset, superblock.index_size)


def _footer(
    generation: int, superblock: Superblock, start: int, offset: int, stored: bytes, image: bytes, previous: int
) -> TrailerFooter:
    checksum = xxh3_64_intdigest(image)
    return TrailerFooter(generation, 0, superblock.uuid, start, offset, len(stored), len(image), checksum, previous)


def _append(content: bytearray, blocks: Sequence[bytes]) -> int:
    """Appends blocks. Returns the archive offset of the first one, or 0 if there is none."""
    start = align(len(content), _ALIGNMENT) if blocks else 0
    for block in blocks:
        content += bytes(-len(content) % _ALIGNMENT) + block
    return start


def _u32(numbers: Iterable[int]) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)
