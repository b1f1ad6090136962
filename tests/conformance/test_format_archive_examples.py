"""The example archives of docs/format.md and docs/format-2.md: gompfs writes and reads what the documents show."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

import pytest
from forged_index import index_image, replace_index
from format_tables import FormatTables
from tree_helpers import add, pack
from xxhash import xxh3_64_intdigest

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.verify import verify_archive

OPTIONS = {"mtime_ns": 0, "owner": 0, "group": 0, "codec": Codec.GOMPRESSO_BIT, "dependency_elimination": True}
DOCUMENTS = {1: FormatTables("format.md"), 2: FormatTables("format-2.md")}
OPTIONS_OF = {1: {"words": "whitespace", "version": 1}, 2: {"words": "identifiers", "version": 2}}
SCHEMAS = {1: "schema.sql", 2: "schema2.sql"}
TABLES = ("meta", "inode", "dirent", "extent", "xattr", "segment", "section", "binary_file")
versions = pytest.mark.parametrize("version", DOCUMENTS)


def image_of(version: int, rows: list[tuple[str, str]]) -> bytes:
    """Returns the image of an index with these rows."""
    index = sqlite3.connect(":memory:", isolation_level=None)
    index.executescript((Path(__file__).parents[2] / "gompfs/index" / SCHEMAS[version]).read_text())
    for table, values in rows:
        index.execute(f"INSERT INTO {table} VALUES ({values})")
    image = index.serialize()
    index.close()
    return image


def all_rows(image: bytes | memoryview) -> dict[str, set[tuple[object, ...]]]:
    index = sqlite3.connect(":memory:")
    index.deserialize(image)
    found = {table: set(index.execute(f"SELECT * FROM {table}")) for table in TABLES}
    index.close()
    return found


def pack_hello(version: int, path: Path) -> Path:
    file = path / "hello"
    file.write_bytes(b"hello\n")
    file.chmod(0o644)
    pack(path / "a.gomp", file, **OPTIONS, **OPTIONS_OF[version])
    return path / "a.gomp"


@versions
def test_checksums(version: int) -> None:
    tables = DOCUMENTS[version]
    for label in ("superblock", "footer", "generation-header"):
        for example in tables.examples(label):
            assert struct.unpack("<Q", example[-8:]) == (xxh3_64_intdigest(example[:-8]),)
    (block,) = tables.examples("block")
    of_content, of_block = xxh3_64_intdigest(block[32:]), xxh3_64_intdigest(block[:24] + block[32:])
    assert struct.unpack("<QQ", block[16:32]) == (of_content, of_block)
    if version == 1:
        assert f"`{of_content:016x}`" in tables.text


@versions
def test_gompfs_writes_the_example(version: int, tmp_path: Path) -> None:
    path = pack_hello(version, tmp_path)
    tables, archive = DOCUMENTS[version], path.read_bytes()
    (block,), rows = tables.examples("block"), tables.rows()
    assert archive[64 : 64 + len(block)] == block
    assert archive[:16] == tables.examples("superblock")[0][:16]
    with Archive(path) as opened:
        assert all_rows(index_image(path)) == all_rows(image_of(version, rows[0]))
        (segment,) = opened.segments
        assert list(segment.blocks.archive_offsets) == [64]
        assert list(segment.blocks.compressed_sizes) == [38] == [len(block)]


def test_gompfs_adds_the_second_generation_of_the_example(tmp_path: Path) -> None:
    path, more = pack_hello(2, tmp_path), tmp_path / "more"
    more.write_bytes(b"more\n")
    add(path, more, **OPTIONS, **OPTIONS_OF[2])
    _, second = DOCUMENTS[2].rows()
    with Archive(path) as opened:
        found = all_rows(index_image(path))
        start = opened.segments[1].blocks.archive_offsets[0]
    for table, values in all_rows(image_of(2, second)).items():
        # The first index of the document has the size that one release of SQLite gave it.
        moved = {tuple(start if value == 2496 else value for value in row) for row in values}
        assert moved <= found[table]
    assert struct.unpack_from("<Q", DOCUMENTS[2].examples("generation-header")[0], 32) == (2544,)


@versions
def test_gompfs_reads_the_example(version: int, tmp_path: Path) -> None:
    """The bytes of the document, with an index of its rows, are an archive."""
    path, tables = pack_hello(version, tmp_path), DOCUMENTS[version]
    content = bytearray(path.read_bytes())
    (block,), (superblock,) = tables.examples("block"), tables.examples("superblock")
    content[64:102] = block
    if version == 1:
        content[:64] = superblock
    path.write_bytes(content)
    replace_index(path, image_of(version, tables.rows()[0]))
    with Archive(path, engine=select_engine("reference"), verify=True) as archive:
        inode = archive.resolve("hello")
        assert archive.read(inode.ino, 0, inode.size) == b"hello\n"
        assert verify_archive(archive).is_sound


def test_offsets_of_version_1() -> None:
    tables = DOCUMENTS[1]
    footer = tables.fields(tables.examples("footer")[0], "### Footer")
    assert (footer["archive offset of the index"], footer["size of the index"]) == (4096, 40_960)
    assert "at offset 45,056" in tables.text
    assert 4096 + 40_960 == 45_056


def test_offsets_of_version_2() -> None:
    tables = DOCUMENTS[2]
    (superblock,), (header,), (footer,) = map(tables.examples, ("superblock", "generation-header", "footer"))
    offset, size = struct.unpack_from("<QQ", superblock, 32)
    assert (offset, size) == (112, 1030)
    rounded = -(-size // 16) * 16
    ends = offset + rounded, offset + rounded + 96, offset + 2 * rounded + 96, offset + 2 * rounded + 192
    assert ends == (1152, 1248, 2288, 2384)
    of_footer = tables.fields(footer, "### Footer")
    assert of_footer["archive offset of the stored index of this copy"] == 1248
    assert of_footer["stored size of the index"] == size
    assert of_footer["size of the image"] == 40_960
    assert superblock[16:32] == header[16:32] == footer[16:32]
    (block_header,) = tables.examples("header")
    codec, payload_size, uncompressed_size, xxh3 = struct.unpack_from("<4xIIIQ", block_header)
    assert (codec, 32 + payload_size, uncompressed_size) == (2, size, 40_960)
    assert xxh3 == of_footer["XXH3-64 of the image"]
    assert -(-ends[-1] // 64) * 64 == 2432
