"""The example archive of docs/format.md: gompfs writes and reads what the document shows."""

from __future__ import annotations

import re
import sqlite3
import struct
from dataclasses import fields
from pathlib import Path

import pytest
from column_groups import CHANGE_GROUPS, GROUPS, cut, join
from forged_index import index_columns
from format_tables import FormatTables
from oracle.index_columns import IndexTables, read_columns
from tree_helpers import add, pack
from xxhash import xxh3_64_intdigest

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.format import LocalFile, find_newest, read_copy
from gompfs.verify import verify_archive

OPTIONS = {"mtime_ns": 0, "owner": 0, "group": 0, "codec": Codec.GOMPRESSO_BIT, "dependency_elimination": True}
DOCUMENT = FormatTables()


def rows_of(tables: IndexTables) -> set[tuple[str, tuple[object, ...]]]:
    """Returns the rows of an index, each with its table."""
    return {(table.name, row) for table in fields(tables) for row in getattr(tables, table.name)}


def rows_of_document(rows: list[tuple[str, str]]) -> set[tuple[str, tuple[object, ...]]]:
    connection = sqlite3.connect(":memory:")
    found = {(table, connection.execute(f"SELECT {values}").fetchall()[0]) for table, values in rows}
    connection.close()
    return found


@pytest.fixture(autouse=True)
def _version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gompfs.__version__", "1.0")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


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
    (superblock,), (block,), (header,), (footer,), (columns,) = map(
        DOCUMENT.examples, ("superblock", "block", "header", "footer", "columns")
    )
    stored = (header + columns).ljust(192, b"\0")
    first = footer[:12] + bytes(4) + footer[16:40] + (112).to_bytes(8, "little") + footer[48:88]
    first += xxh3_64_intdigest(first).to_bytes(8, "little")
    assert path.read_bytes() == superblock + block.ljust(48, b"\0") + stored + first + stored + footer
    assert rows_of(read_columns(columns)) == rows_of_document(DOCUMENT.rows()[0])


def test_gompfs_adds_the_second_generation_of_the_example(tmp_path: Path) -> None:
    path, more = pack_hello(tmp_path), tmp_path / "more"
    more.write_bytes(b"more\n")
    add(path, more, **OPTIONS)
    assert path.read_bytes()[704:768] == DOCUMENT.examples("generation-header")[0]
    assert rows_of_document(DOCUMENT.rows()[1]) <= rows_of(read_columns(index_columns(path)))
    (changes,) = DOCUMENT.examples("changes")
    file = LocalFile.open(path)
    newest = find_newest(file)
    assert newest.footer.num_changes == 1
    assert read_copy(file, newest.footer) == changes
    file.close()


def test_gompfs_reads_the_example(tmp_path: Path) -> None:
    path = pack_hello(tmp_path)
    with Archive(path, verify=True) as archive:
        inode = archive.resolve("hello")
        assert archive.read(inode.ino, 0, inode.size) == b"hello\n"
        assert verify_archive(archive).is_sound


def test_the_columns_of_the_example_are_in_lines_of_groups() -> None:
    check_lines("columns", GROUPS)
    check_lines("changes", CHANGE_GROUPS)


def check_lines(kind: str, names: dict[str, tuple[str, ...]]) -> None:
    (lines,) = re.findall(rf"^```{kind}\n([^`]+)```", DOCUMENT.text, re.MULTILINE)
    groups = cut(bytes.fromhex(lines), names)
    assert len(lines.splitlines()) == len(groups)
    for line, (name, group) in zip(lines.splitlines(), groups.items(), strict=True):
        assert bytes.fromhex(line) == join({name: group})
        assert len(line.split("  ")) == 1 + len(group.columns)


def test_offsets() -> None:
    (superblock,), (header,), (footer,) = map(DOCUMENT.examples, ("superblock", "generation-header", "footer"))
    offset, size = struct.unpack_from("<QQ", superblock, 32)
    assert (offset, size) == (112, 178)
    rounded = -(-size // 16) * 16
    ends = offset + rounded, offset + rounded + 96, offset + 2 * rounded + 96, offset + 2 * rounded + 192
    assert ends == (304, 400, 592, 688)
    of_footer = DOCUMENT.fields(footer, "### Footer")
    assert of_footer["archive offset of the stored index of this copy"] == 400
    assert of_footer["stored size of the index"] == size
    assert of_footer["size of the columns"] == 146
    assert superblock[16:32] == header[16:32] == footer[16:32]
    (block_header,) = DOCUMENT.examples("header")
    codec, payload_size, uncompressed_size, xxh3 = struct.unpack_from("<4xIIIQ", block_header)
    assert (codec, 32 + payload_size, uncompressed_size) == (0, size, 146)
    assert xxh3 == of_footer["XXH3-64 of the columns"]
    assert -(-ends[-1] // 64) * 64 == 704
