"""The field tables of docs/format.md are those of tests/oracle, which reads archives by them."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import pytest
from archive_builder import SCHEMA
from format_tables import FormatTables
from oracle import archive as frame
from oracle import bit, byte, head, tadoc
from oracle.archive import generation_ends, read_archive
from tree_helpers import add, pack

from gompfs.codec import Codec

TABLES = FormatTables()
BLOCK_SIZE = 1 << 14
ALICE = (Path(__file__).parents[2] / "examples/corpus/carroll/alice29.txt").read_bytes()
CHECKSUM = [8]


def sizes_of(fields: struct.Struct) -> list[int]:
    """Returns the size of each field."""
    found = []
    for count, kind in re.findall(r"(\d*)([a-zA-Z])", fields.format):
        size = struct.calcsize("<" + kind)
        found += [int(count or 1)] if kind == "s" else [size] * int(count or 1)
    return found


@pytest.mark.parametrize(
    ("heading", "sizes"),
    [
        ("### Superblock", sizes_of(frame.SUPERBLOCK_FIELDS) + CHECKSUM),
        ("### Generation header", sizes_of(frame.HEADER_FIELDS) + CHECKSUM),
        ("### Footer", sizes_of(frame.FOOTER_FIELDS) + CHECKSUM),
        ("## 2. Blocks", sizes_of(frame.BLOCK_FIELDS) + CHECKSUM),
        ("## 5. Payload of gompresso-byte", sizes_of(byte._HEADER)),
        ("## 6. Payload of gompresso-bit", sizes_of(bit._HEADER)),
        ("## 12. Heads", sizes_of(frame.BLOCK_FIELDS) + CHECKSUM),
        ("The payload of a head:", sizes_of(head._HEADER)),
        ("## 13. Payload of gompresso-tadoc", sizes_of(tadoc._HEADER)),
    ],
)
def test_tables_have_the_fields_of_the_decoders(heading: str, sizes: list[int]) -> None:
    TABLES.check_gaps(heading, sum(sizes))
    assert [size for _, size, _ in TABLES.table(heading)] == sizes


def test_the_document_has_the_tables_of_the_index() -> None:
    """Strangers need no file of the sources."""
    (in_document,) = re.findall(r"```sql\n(.*?)```", TABLES.text, re.DOTALL)
    statements = re.findall(r"^CREATE .*?;\n", SCHEMA.read_text(), re.DOTALL | re.MULTILINE)
    assert in_document == "".join(statements)


@pytest.mark.parametrize("codec", [Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE, Codec.GOMPRESSO_TADOC])
def test_an_archive_of_two_generations_is_read(codec: Codec, tmp_path: Path) -> None:
    noise = "".join(random.Random(4).choices("abcdefgh.,;:-+*/()[]{}", k=40_000)).encode()
    first = {
        b"a": ALICE[:50_000], b"again": ALICE[:50_000], b"b": b" to be ", b"binary": b"\0 words", b"c": noise,
        b"d": ALICE[50_000:55_000], b"empty": b"", b"lines": b"to be\nor not\n" * 100, b"zeros": bytes(1000),
    }  # fmt: skip
    later = {b"b": b"replaced", b"e": ALICE[110_000:120_000]}
    path = tmp_path / "archive.gomp"
    for folder, contents, write in (("first", first, pack), ("later", later, add)):
        (tmp_path / folder).mkdir()
        for name, content in contents.items():
            (tmp_path / folder / name.decode()).write_bytes(content)
        write(path, tmp_path / folder, codec=codec, block_size=BLOCK_SIZE, part_size=20_000)
    archive = path.read_bytes()
    newest, oldest = generation_ends(archive)
    for end, expected in ((newest, {**first, **later}), (oldest, first)):
        reading = read_archive(archive[:end])
        inos = {name: entry.ino for name, entry in reading.paths.items() if name}
        assert {name: reading.content(ino, verify=True) for name, ino in inos.items()} == expected
    assert newest == len(archive)
