"""Reads an archive with docs/format.md alone: its field tables, SQLite, XXH3 and the reference decoders."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from format_tables import FormatTables
from xxhash import xxh3_64_intdigest

from gompfs.codec import Codec
from gompfs.codec.reference import decode_payload
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive

TABLES = FormatTables("format.md")
BLOCK_SIZE = 1 << 14


@pytest.mark.parametrize(("heading", "size"), [("### Superblock", 64), ("### Footer", 64), ("## 2. Blocks", 32)])
def test_tables_have_no_gaps(heading: str, size: int) -> None:
    TABLES.check_gaps(heading, size)


def decode_block(archive: bytes, start: int, compressed_size: int) -> bytes:
    assert start % 16 == 0
    raw = archive[start : start + compressed_size]
    header = TABLES.fields(raw, "## 2. Blocks")
    assert header["XXH3-64 of the 24 bytes before and the payload"] == xxh3_64_intdigest(raw[:24] + raw[32:])
    assert header["size of the payload"] == len(raw) - 32
    content = decode_payload(Codec(header["codec"]), raw[32:], header["uncompressed size"])
    assert header["XXH3-64 of the uncompressed bytes"] == xxh3_64_intdigest(content)
    return content


def unpack(packed: bytes, size: int) -> list[int]:
    return [int.from_bytes(packed[place : place + size], "little") for place in range(0, len(packed), size)]


def decode_blocks(archive: bytes, offsets: bytes, sizes: bytes, uncompressed_size: int) -> list[bytes]:
    places = zip(unpack(offsets, 8), unpack(sizes, 4), strict=True)
    blocks = [decode_block(archive, start, size) for start, size in places]
    assert all(len(block) == BLOCK_SIZE for block in blocks[:-1])
    assert len(b"".join(blocks)) == uncompressed_size
    return blocks


def read_generation(archive: bytes, footer_offset: int) -> tuple[dict[str, int], dict[bytes, bytes], list[bytes]]:
    """Returns the footer, the regular files by path, and the sections of one generation."""
    footer = TABLES.fields(archive[footer_offset : footer_offset + 64], "### Footer")
    assert footer["XXH3-64 of the 56 bytes before"] == xxh3_64_intdigest(archive[footer_offset : footer_offset + 56])
    start, size = footer["archive offset of the index"], footer["size of the index"]
    assert start % 4096 == 0
    assert footer_offset == -(-(start + size) // 64) * 64
    image = archive[start : start + size]
    assert footer["XXH3-64 of the index"] == xxh3_64_intdigest(image)
    index = sqlite3.connect(":memory:")
    index.deserialize(image)
    stream: dict[int, bytes] = {}
    for _, first_block, num_blocks, stream_size, offsets, sizes, codecs in index.execute("SELECT * FROM segment"):
        assert first_block == len(stream)
        stream |= enumerate(decode_blocks(archive, offsets, sizes, stream_size), first_block)
        assert len(codecs) == num_blocks == len(stream) - first_block
    sections = [
        b"".join(decode_blocks(archive, offsets, sizes, section_size))
        for section_size, offsets, sizes in index.execute(
            "SELECT uncompressed_size, archive_offsets, compressed_sizes FROM section ORDER BY segment"
        )
    ]
    solid = b"".join(block.ljust(BLOCK_SIZE, b"\0") for block in stream.values())
    files = {}
    for name, ino, file_size in index.execute(
        "SELECT name, ino, size FROM dirent JOIN inode USING (ino) WHERE parent = 1 AND mode >> 12 = 8"
    ):
        content = bytearray(file_size)
        for place, stream_offset, extent_size in index.execute(
            "SELECT file_offset, stream_offset, size FROM extent WHERE ino = ?", (ino,)
        ):
            content[place : place + extent_size] = solid[stream_offset : stream_offset + extent_size]
        files[name] = bytes(content)
    index.close()
    return footer, files, sections


def test_an_archive_of_two_generations_is_read(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "examples/corpus/carroll/alice29.txt").read_bytes()
    first = {b"a": text[:40_000], b"b": b"second", b"same": text[:40_000], b"zeros": bytes(1000)}
    later = {b"b": b"second, replaced", b"c": text[40_000:60_000]}
    for folder, contents in (("first", first), ("later", later)):
        (tmp_path / folder).mkdir()
        for name, content in contents.items():
            (tmp_path / folder / name.decode()).write_bytes(content)
    target = tmp_path / "archive.gomp"
    engine = select_engine("cpu", 1)
    options = PackOptions(block_size=BLOCK_SIZE, words="whitespace", version=1)
    pack_archive([open_source(tmp_path / "first")], target, options, engine=engine)
    old_size = target.stat().st_size
    add_to_archive(target, [open_source(tmp_path / "later")], PackOptions(), engine=engine)

    archive = target.read_bytes()
    superblock = TABLES.fields(archive[:64], "### Superblock")
    assert superblock["format version"] == 1
    assert superblock["block size"] == BLOCK_SIZE
    assert superblock["XXH3-64"] == xxh3_64_intdigest(archive[:56])
    footer, files, sections = read_generation(archive, len(archive) - 64)
    assert footer["generation"] == 2
    assert footer["archive offset of the footer before"] == old_size - 64
    assert files == {**first, **later}
    assert [section[:4] for section in sections] == [b"GGRM", b"GGRM"]
    old_footer, old_files, _ = read_generation(archive, old_size - 64)
    assert (old_footer["generation"], old_footer["archive offset of the footer before"]) == (1, 0)
    assert old_files == first
