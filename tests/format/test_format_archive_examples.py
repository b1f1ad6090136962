"""The example archive of docs/format.md: gompfs writes and reads what the document shows."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

from archive_builder import SCHEMA
from forged_index import index_image, replace_index
from format_tables import FormatTables
from tree_helpers import add, pack
from xxhash import xxh3_64_intdigest

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.verify import verify_archive

OPTIONS = {"mtime_ns": 0, "owner": 0, "group": 0, "codec": Codec.GOMPRESSO_BIT, "dependency_elimination": True}
DOCUMENT = FormatTables()
TABLES = ("meta", "inode", "dirent", "extent", "xattr", "segment", "section", "binary_file")


def image_of(rows: list[tuple[str, str]]) -> bytes:
    """Returns the image of an index with these rows."""
    index = sqlite3.connect(":memory:", isolation_level=None)
    index.executescript(SCHEMA.read_text())
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


def pack_hello(path: Path) -> Path:
    file = path / "hello"
    file.write_bytes(b"hello\n")
    file.chmod(0o644)
    pack(path / "a.gomp", file, **OPTIONS)
    return path / "a.gomp"


def test_checksums() -> None:
    for label in ("superblock", "footer", "generation-header"):
        for example in DOCUMENT.examples(label):
            assert struct.unpack("<Q", example[-8:]) == (xxh3_64_intdigest(example[:-8]),)
    (block,) = DOCUMENT.examples("block")
    of_content, of_block = xxh3_64_intdigest(block[32:]), xxh3_64_intdigest(block[:24] + block[32:])
    assert struct.unpack("<QQ", block[16:32]) == (of_content, of_block)
    assert f"`{of_content:016x}`" in DOCUMENT.text


def test_gompfs_writes_the_example(tmp_path: Path) -> None:
    path = pack_hello(tmp_path)
    archive = path.read_bytes()
    (block,), rows = DOCUMENT.examples("block"), DOCUMENT.rows()
    assert archive[64 : 64 + len(block)] == block
    assert archive[:16] == DOCUMENT.examples("superblock")[0][:16]
    with Archive(path) as opened:
        assert all_rows(index_image(path)) == all_rows(image_of(rows[0]))
        (segment,) = opened.segments
        assert list(segment.blocks.archive_offsets) == [64]
        assert list(segment.blocks.compressed_sizes) == [38] == [len(block)]


def test_gompfs_adds_the_second_generation_of_the_example(tmp_path: Path) -> None:
    path, more = pack_hello(tmp_path), tmp_path / "more"
    more.write_bytes(b"more\n")
    add(path, more, **OPTIONS)
    _, second, *_ = DOCUMENT.rows()
    with Archive(path) as opened:
        found = all_rows(index_image(path))
        start = opened.segments[1].blocks.archive_offsets[0]
    for table, values in all_rows(image_of(second)).items():
        # The first index of the document has the size that one release of SQLite gave it.
        moved = {tuple(start if value == 2496 else value for value in row) for row in values}
        assert moved <= found[table]
    assert struct.unpack_from("<Q", DOCUMENT.examples("generation-header")[0], 32) == (2544,)


def test_gompfs_reads_the_example(tmp_path: Path) -> None:
    """The block of the document, with an index of its rows, is an archive."""
    path = pack_hello(tmp_path)
    content = bytearray(path.read_bytes())
    (content[64:102],) = DOCUMENT.examples("block")
    path.write_bytes(content)
    replace_index(path, image_of(DOCUMENT.rows()[0]))
    with Archive(path, verify=True) as archive:
        inode = archive.resolve("hello")
        assert archive.read(inode.ino, 0, inode.size) == b"hello\n"
        assert verify_archive(archive).is_sound


def test_offsets() -> None:
    (superblock,), (header,), (footer,) = map(DOCUMENT.examples, ("superblock", "generation-header", "footer"))
    offset, size = struct.unpack_from("<QQ", superblock, 32)
    assert (offset, size) == (112, 1030)
    rounded = -(-size // 16) * 16
    ends = offset + rounded, offset + rounded + 96, offset + 2 * rounded + 96, offset + 2 * rounded + 192
    assert ends == (1152, 1248, 2288, 2384)
    of_footer = DOCUMENT.fields(footer, "### Footer")
    assert of_footer["archive offset of the stored index of this copy"] == 1248
    assert of_footer["stored size of the index"] == size
    assert of_footer["size of the image"] == 40_960
    assert superblock[16:32] == header[16:32] == footer[16:32]
    (block_header,) = DOCUMENT.examples("header")
    codec, payload_size, uncompressed_size, xxh3 = struct.unpack_from("<4xIIIQ", block_header)
    assert (codec, 32 + payload_size, uncompressed_size) == (2, size, 40_960)
    assert xxh3 == of_footer["XXH3-64 of the image"]
    assert -(-ends[-1] // 64) * 64 == 2432
