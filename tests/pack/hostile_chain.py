"""Files with generations of an attacker, with the offsets that are right where the file will be stored."""

from __future__ import annotations

import random
import sqlite3
import stat
from dataclasses import dataclass
from importlib import resources

from column_groups import columns_of_image
from oracle.block import build_block
from xxhash import xxh3_64_intdigest

from gompfs.codec import BLOCK_HEADER_SIZE, Codec
from gompfs.format import (
    GENERATION_HEADER_SIZE,
    NUM_COPIES,
    Footer,
    GenerationHeader,
    TrailerPosition,
    align,
    encode_columns,
)

BLOCK_SIZE = 64 << 10
EVIL_NAME = b"evil"
EVIL_CONTENT = b"#!/bin/sh\nowned by the attacker\n"
EVIL_MODE = stat.S_IFREG | 0o4755


@dataclass(frozen=True)
class HostileChain:
    """The content of a file, and the archive offsets at which a cut leaves a footer of it as the end of the file."""

    content: bytes
    ends: list[int]


def hostile_chain(
    size: int, archive_offset: int, uuid: bytes, *, first: int = 1, start: int = 0, previous_footer: int = 0
) -> HostileChain:
    """Returns `size` bytes with two generations of an attacker, who knows the archive to which the file is added.

    In the archive, the bytes are stored from `archive_offset` on. Generation `first` has its header at `start`, which
    may be the offset of a genuine one, and `previous_footer` before it; the next generation follows it. Every field of
    their headers and footers has the value that it would have in a genuine generation there.
    """
    content = bytearray(random.Random(archive_offset).randbytes(size))
    evil = build_block(Codec.STORED, EVIL_CONTENT, EVIL_CONTENT).data
    block_offset = align(archive_offset, 64)
    stored_at = {block_offset: evil}
    next_offset, ends = block_offset + len(evil), []
    for generation in (first, first + 1):
        columns = _evil_columns(block_offset, len(evil))
        stored = encode_columns(columns, [])
        position = TrailerPosition(align(next_offset, 16), len(stored))
        for copy in range(NUM_COPIES):
            offset = position.copy_offset(copy)
            stored_at[offset] = stored.ljust(align(len(stored), 16), b"\0")
            sizes = len(stored), len(columns)
            checksum = xxh3_64_intdigest(columns)
            footer = Footer(generation, copy, uuid, start, offset, *sizes, checksum, previous_footer)
            stored_at[position.footer_offset(copy)] = footer.to_bytes()
            ends.append(position.copy_end(copy))
        start, previous_footer = align(position.end, GENERATION_HEADER_SIZE), position.footer_offset(NUM_COPIES - 1)
        next_offset = start + GENERATION_HEADER_SIZE
        following = TrailerPosition(align(next_offset, 16), len(stored))
        header = GenerationHeader(generation + 1, uuid, following.index_offset, following.index_size)
        stored_at[start] = header.to_bytes()
        ends.append(next_offset)
    for offset, data in stored_at.items():
        content[offset - archive_offset : offset - archive_offset + len(data)] = data
    assert len(content) == size
    return HostileChain(bytes(content), ends)


def _evil_columns(archive_offset: int, compressed_size: int) -> bytes:
    """Returns the index of an archive with a setuid-root program, whose content is the block at `archive_offset`."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(resources.files("gompfs.index").joinpath("schema.sql").read_text())
    connection.execute("INSERT INTO inode VALUES (1, ?, 0, 0, 0, 0, 2, 0, NULL)", (stat.S_IFDIR | 0o755,))
    connection.execute("INSERT INTO inode VALUES (2, ?, 0, 0, ?, 0, 1, 0, NULL)", (EVIL_MODE, len(EVIL_CONTENT)))
    connection.execute("INSERT INTO dirent VALUES (1, ?, 2)", (EVIL_NAME,))
    connection.execute("INSERT INTO extent VALUES (2, 0, 0, ?)", (len(EVIL_CONTENT),))
    connection.execute("INSERT INTO meta VALUES ('words', 'whitespace'), ('next_ino', '3')")
    connection.execute(
        "INSERT INTO segment VALUES (0, 0, ?, ?, x'00', x'00', ?, 0, zeroblob(4))",
        (archive_offset, compressed_size.to_bytes(4, "little"), len(EVIL_CONTENT).to_bytes(8, "little")),
    )
    columns, _ = columns_of_image(connection.serialize())
    connection.close()
    return columns


def payload_offset(block_offset: int) -> int:
    """Returns the offset of a block's payload."""
    return block_offset + BLOCK_HEADER_SIZE
