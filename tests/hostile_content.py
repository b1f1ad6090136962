"""Files that contain a whole archive of an attacker, with the offsets that are right where the file will be stored."""

from __future__ import annotations

import random
import sqlite3
import stat
from collections.abc import Iterator
from importlib import resources

from xxhash import xxh3_64_intdigest

from gompfs.codec import BLOCK_HEADER_SIZE, Codec, build_block
from gompfs.format import FOOTER_SIZE, INDEX_ALIGNMENT, Footer, align

EVIL_NAME = b"evil"
EVIL_CONTENT = b"#!/bin/sh\nowned by the attacker\n"
EVIL_MODE = stat.S_IFREG | 0o4755


def hostile_content(
    size: int,
    archive_offset: int,
    *,
    generation: int = 1,
    previous_footer: int = 0,
    walked: list[tuple[int, int]] | None = None,
) -> bytes:
    """Returns bytes with a block, an index, and footers at every multiple of 64 after it, right for `archive_offset`.

    In the archive, these bytes are stored contiguously from `archive_offset` on, as the payload of one block or as the
    value of an attribute. Each footer is valid and fits its offset; that of the first one has just the index. The index
    lists the `walked` blocks, given as (archive_offset, compressed_size), and the attacker's own block.
    """
    content = bytearray(random.Random(archive_offset).randbytes(size))
    block = build_block(Codec.STORED, EVIL_CONTENT, EVIL_CONTENT).data
    block_offset = align(archive_offset, 64)
    content[block_offset - archive_offset : block_offset - archive_offset + len(block)] = block
    index_offset = align(block_offset + len(block), INDEX_ALIGNMENT)
    content[block_offset + len(block) - archive_offset : index_offset - archive_offset] = bytes(
        index_offset - block_offset - len(block)
    )
    image = evil_index([*(walked or []), (block_offset, len(block))])
    start = index_offset - archive_offset
    content[start : start + len(image)] = image
    place = align(index_offset + len(image), FOOTER_SIZE)
    while place + FOOTER_SIZE <= archive_offset + size:
        index_size = len(image) if place - index_offset - len(image) < FOOTER_SIZE else place - index_offset
        checksum = xxh3_64_intdigest(bytes(content[start : start + index_size]))
        footer = Footer(generation, index_offset, index_size, checksum, previous_footer).to_bytes()
        content[place - archive_offset : place - archive_offset + FOOTER_SIZE] = footer
        place += FOOTER_SIZE
    assert len(content) == size
    return bytes(content)


def evil_index(blocks: list[tuple[int, int]]) -> bytes:
    """Returns the index of an archive with a setuid-root program, whose content is the last block."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema = resources.files("gompfs.index").joinpath("schema.sql").read_text()
    connection.executescript(schema.replace("page_size = 4096", "page_size = 512"))
    connection.execute("INSERT INTO inode VALUES (1, ?, 0, 0, 0, 0, 2, 0, NULL)", (stat.S_IFDIR | 0o755,))
    connection.execute("INSERT INTO inode VALUES (2, ?, 0, 0, ?, 0, 1, 0, NULL)", (EVIL_MODE, len(EVIL_CONTENT)))
    connection.execute("INSERT INTO dirent VALUES (1, ?, 2)", (EVIL_NAME,))
    connection.execute("INSERT INTO extent VALUES (2, 0, 0, ?)", (len(EVIL_CONTENT),))
    connection.execute("INSERT INTO meta VALUES ('words', 'whitespace'), ('next_ino', '3')")
    connection.execute(
        "INSERT INTO segment VALUES (0, 0, 1, ?, ?, ?, x'00')",
        (len(EVIL_CONTENT), blocks[-1][0].to_bytes(8, "little"), blocks[-1][1].to_bytes(4, "little")),
    )
    if len(blocks) > 1:
        offsets = b"".join(offset.to_bytes(8, "little") for offset, _ in blocks[:-1])
        sizes = b"".join(size.to_bytes(4, "little") for _, size in blocks[:-1])
        connection.execute(
            "INSERT INTO section VALUES (0, 'other', ?, ?, ?)", ((len(blocks) - 1) << 16, offsets, sizes)
        )
    connection.execute("VACUUM")
    image = connection.serialize()
    connection.close()
    return image


def footer_ends(content: bytes, archive_offset: int) -> Iterator[int]:
    """Yields the archive_offsets after the footers in such a content.

    A cut there makes a footer the end of the file.
    """
    place = content.find(b"GOMPEND\n")
    while place >= 0:
        yield archive_offset + place + FOOTER_SIZE
        place = content.find(b"GOMPEND\n", place + FOOTER_SIZE)


def payload_offset(block_offset: int) -> int:
    """Returns the offset of a block's payload."""
    return block_offset + BLOCK_HEADER_SIZE
