"""Reads an archive with docs/format.md alone: its field tables, SQLite, XXH3 and the decoders of tests/oracle."""

from __future__ import annotations

import re
import sqlite3
import struct
from pathlib import Path

import pytest
from archive_builder import SCHEMA
from format_tables import FormatTables
from oracle.payload import decode_payload
from xxhash import xxh3_64_intdigest

from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive

TABLES = FormatTables()
BLOCK_SIZE = 1 << 14
PART_SIZE = BLOCK_SIZE + 1000
HEADINGS = {"### Superblock": 64, "### Generation header": 64, "### Footer": 96, "## 2. Blocks": 32}
OFFSET, SIZE = "archive offset of the index", "stored size of that index"


@pytest.mark.parametrize("heading", HEADINGS)
def test_tables_have_no_gaps(heading: str) -> None:
    TABLES.check_gaps(heading, HEADINGS[heading])


def test_the_document_has_the_tables_of_the_index() -> None:
    """Strangers need no file of the sources."""
    document = (Path(__file__).parents[2] / "docs/format.md").read_text()
    (in_document,) = re.findall(r"```sql\n(.*?)```", document, re.DOTALL)
    statements = re.findall(r"^CREATE .*?;\n", SCHEMA.read_text(), re.DOTALL | re.MULTILINE)
    assert in_document == "".join(statements)


def align(offset: int, alignment: int = 16) -> int:
    return -(-offset // alignment) * alignment


def checked(raw: bytes, heading: str) -> dict[str, int]:
    """Returns the fields of a structure, after comparing its checksum."""
    size = HEADINGS[heading]
    found = TABLES.fields(raw[:size], heading)
    field = "XXH3-64" if heading == "### Superblock" else f"XXH3-64 of the {size - 8} bytes before"
    checksum = [value for name, value in found.items() if name.startswith("XXH3-64") and "image" not in name]
    assert checksum == [xxh3_64_intdigest(raw[: size - 8])], field
    return found


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


def consecutive_blocks(archive: bytes, start: int, sizes: list[int]) -> list[bytes]:
    """Returns the content of blocks that lie one after another."""
    contents = []
    for size in sizes:
        contents.append(decode_block(archive, start, size))
        start = align(start + size)
    return contents


def read_image(archive: bytes, generation: int, start: int, where: dict[str, int], previous: int) -> bytes:
    """Returns the image of a generation; both copies must have it. `start` is the offset of its header."""
    offset, size = (value for name, value in where.items() if name.startswith((OFFSET, SIZE)))
    images = []
    for copy in (0, 1):
        begin = offset + copy * (align(size) + 96)
        footer = checked(archive[begin + align(size) :], "### Footer")
        assert list(footer.values())[:2] == [generation, copy]
        assert footer["UUID of the archive"] == where["UUID of the archive"]
        assert footer["archive offset of the generation header"] == start
        assert footer["archive offset of the stored index of this copy"] == begin
        assert footer["stored size of the index"] == size
        assert footer["archive offset of the footer before"] == previous
        position, image = begin, b""
        while position < begin + size:
            (payload_size,) = struct.unpack_from("<I", archive, position + 8)
            image += decode_block(archive, position, 32 + payload_size)
            end = position + 32 + payload_size
            position = align(end)
        assert end == begin + size
        assert len(image) == footer["size of the image"]
        assert xxh3_64_intdigest(image) == footer["XXH3-64 of the image"]
        images.append(image)
    assert images[0] == images[1]
    return images[0]


def read_files(archive: bytes, image: bytes) -> dict[bytes, bytes]:
    """Returns the regular files of the root by name."""
    index = sqlite3.connect(":memory:")
    index.deserialize(image)
    solid = bytearray()
    for row in index.execute("SELECT * FROM segment ORDER BY number"):
        _, first_block, offset, sizes, codecs, kinds, part_sizes, heads_offset, head_sizes = row
        assert first_block == len(solid) // BLOCK_SIZE
        blocks = consecutive_blocks(archive, offset, unpack(sizes, 4))
        assert len(codecs) == len(blocks)
        assert (heads_offset, head_sizes, kinds) == (0, bytes(4 * len(kinds)), bytes(len(kinds)))
        rest = iter(blocks)
        for part_size in unpack(part_sizes, 8):
            assert 0 < part_size <= PART_SIZE
            part = b"".join(next(rest) for _ in range(-(-part_size // BLOCK_SIZE)))
            assert len(part) == part_size
            solid += part.ljust(align(part_size, BLOCK_SIZE), b"\xff")
        assert next(rest, None) is None
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
    return files


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
    options = PackOptions(Codec.GOMPRESSO_BIT, block_size=BLOCK_SIZE, part_size=PART_SIZE, dictionary_size=0)
    pack_archive([open_source(tmp_path / "first")], target, options, engine=engine)
    old_size = target.stat().st_size
    add_to_archive(target, [open_source(tmp_path / "later")], options, engine=engine)

    archive = target.read_bytes()
    superblock = checked(archive, "### Superblock")
    assert (superblock["format version"], superblock["block size"]) == (2, BLOCK_SIZE)
    assert read_files(archive, read_image(archive, 1, 0, superblock, 0)) == first
    start = align(old_size, 64)
    header = checked(archive[start:], "### Generation header")
    assert header["generation"] == 2
    assert header["UUID of the archive"] == superblock["UUID of the archive"]
    assert read_files(archive, read_image(archive, 2, start, header, old_size - 96)) == {**first, **later}
