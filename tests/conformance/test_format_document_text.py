"""Reads the text of an archive with docs/format.md: files, and their words.

Where things lie, what the fields of heads and blocks are, and which files a splitter ends, comes from the document.
The decoder of tests/oracle expands symbols; test_tadoc_example.py compares it with the document.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from forged_index import index_image
from format_tables import FormatTables
from oracle.tadoc import GlobalWords, Part, decode_tadoc, join_root, read_block, read_head, read_words
from test_format_document import align, consecutive_blocks, decode_block, unpack
from tree_helpers import add, pack
from xxhash import xxh3_64_intdigest

from gompfs.codec import Codec

TABLES = FormatTables()
BLOCK_SIZE = 1 << 14
PART_SIZE = 20_000
WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")


@pytest.mark.parametrize(
    ("heading", "size"),
    [("## 12. Heads", 32), ("The payload of a head:", 40), ("## 13. Payload of gompresso-tadoc", 12)],
)
def test_tables_have_no_gaps(heading: str, size: int) -> None:
    TABLES.check_gaps(heading, size)


def read_stored(archive: bytes, start: int, size: int, codec: int) -> tuple[dict[str, int], bytes]:
    """Returns the fields of the header of a head or block, and the payload, after comparing the second checksum."""
    raw = archive[start : start + size]
    header = TABLES.fields(raw, "## 2. Blocks")
    assert start % 16 == 0
    assert header["codec"] == codec
    assert header["size of the payload"] == size - 32
    assert header["XXH3-64 of the 24 bytes before and the payload"] == xxh3_64_intdigest(raw[:24] + raw[32:])
    return header, raw[32:]


def open_head(archive: bytes, start: int, size: int, words: GlobalWords) -> Part:
    header, payload = read_stored(archive, start, size, 4)
    part = read_head(payload, header["uncompressed size"], words)
    assert xxh3_64_intdigest(part.pool) == header["XXH3-64 of the uncompressed bytes"]
    fields = TABLES.fields(payload, "The payload of a head:")
    assert fields["number of local words"] == part.num_local_words
    assert fields["number of global words"] == len(part.global_words)
    assert fields["number of local separators"] == part.num_local_separators
    assert fields["number of global separators"] == len(part.global_separators)
    assert fields["number of rules"] == len(part.rules)
    low = [number for number in part.global_words if number < 4096]
    assert fields["number of global words whose number is below 4"] == len(low)
    assert bool(fields["1 if the part has a splitter"]) is part.has_splitter
    return part


class TextOfPart(NamedTuple):
    """The text of a part, and its pieces: offset and size, words, and whether the file ends."""

    text: bytes
    pieces: list[tuple[int, int, list[bytes], bool]]


def words_of_symbols(part: Part) -> list[list[bytes]]:
    """Returns the words that each symbol stands for."""
    first = int(part.has_splitter)
    num_words = part.num_local_words + len(part.global_words)
    words = [
        [content[:-1]] if first <= symbol < first + num_words else []
        for symbol, content in enumerate(part.expansions.contents[: -len(part.rules) or None])
    ]
    for rule in part.rules:
        words.append([word for symbol in rule for word in words[symbol]])
    return words


def cut_root(part: Part, root: list[int]) -> TextOfPart:
    """Section 13, "Splitters and files"."""
    words = words_of_symbols(part)
    text, pieces, of_piece = bytearray(), [], []
    begin = 0
    for previous, symbol in zip([None, *root], root, strict=False):
        part.expansions.take_space(text, previous, symbol)
        text += part.expansions.contents[symbol]
        of_piece += words[symbol]
        if part.is_splitter(symbol):
            pieces.append((begin, len(text) - begin, of_piece, True))
            begin, of_piece = len(text), []
    if begin < len(text):
        pieces.append((begin, len(text) - begin, of_piece, False))
    return TextOfPart(bytes(text), pieces)


def read_grammar(archive: bytes, part: Part, places: list[tuple[int, int]], part_size: int) -> TextOfPart:
    contents, symbols = [], []
    for start, size in places:
        header, payload = read_stored(archive, start, size, 3)
        content = decode_tadoc(payload, header["uncompressed size"], part)
        assert xxh3_64_intdigest(content) == header["XXH3-64 of the uncompressed bytes"]
        symbols.append(read_block(payload, len(content), part))
        fields = TABLES.fields(payload, "## 13. Payload of gompresso-tadoc")
        assert (fields["number of symbols"], fields["skip"]) == (len(symbols[-1].symbols), symbols[-1].skip)
        contents.append(content)
    assert [len(content) for content in contents[:-1]] == [BLOCK_SIZE] * (len(contents) - 1)
    text = cut_root(part, join_root(symbols))
    assert text.text == b"".join(contents)
    assert len(text.text) == part_size
    return text


class SolidPart(NamedTuple):
    """A part in the solid stream. It has pieces if it is stored as a grammar."""

    start: int
    kind: int
    text: TextOfPart


def read_parts(archive: bytes, index: sqlite3.Connection) -> Iterator[SolidPart]:
    first = 0
    for row in index.execute("SELECT * FROM segment ORDER BY number").fetchall():
        number, first_block, start, sizes, codecs, kinds, part_sizes, heads_offset, head_sizes = row
        assert first_block == first
        places = []
        for size in unpack(sizes, 4):
            places.append((start, size))
            start = align(start + size)
        words = read_words(words_of_segment(archive, index, number))
        for kind, part_size, head_size in zip(kinds, unpack(part_sizes, 8), unpack(head_sizes, 4), strict=True):
            num_blocks = -(-part_size // BLOCK_SIZE)
            of_part, places = places[:num_blocks], places[num_blocks:]
            assert (kind == 2) == (head_size > 0)
            if head_size:
                head = open_head(archive, heads_offset, head_size, words)
                heads_offset = align(heads_offset + head_size)
                yield SolidPart(first * BLOCK_SIZE, kind, read_grammar(archive, head, of_part, part_size))
            else:
                content = b"".join(decode_block(archive, *place) for place in of_part)
                assert len(content) == part_size
                yield SolidPart(first * BLOCK_SIZE, kind, TextOfPart(content, []))
            first += num_blocks
        assert not places
        assert len(codecs) == first - first_block


def words_of_segment(archive: bytes, index: sqlite3.Connection, segment: int) -> bytes:
    rows = index.execute("SELECT * FROM section WHERE segment = ? AND kind = 'words'", (segment,)).fetchall()
    for _, _, size, offset, sizes in rows:
        content = b"".join(consecutive_blocks(archive, offset, unpack(sizes, 4)))
        assert len(content) == size
        return content
    return bytes(8)


def read_files(archive: bytes, index: sqlite3.Connection) -> tuple[dict[bytes, bytes], dict[bytes, list[bytes]]]:
    """Returns the content of each file, and the words of each file that is text."""
    parts = list(read_parts(archive, index))
    files, words = {}, {}
    for name, ino in index.execute("SELECT name, ino FROM dirent JOIN inode USING (ino) WHERE mode >> 12 = 8"):
        content, of_file, ends = b"", [], True
        for file_offset, stream_offset, size in index.execute(
            "SELECT file_offset, stream_offset, size FROM extent WHERE ino = ? ORDER BY file_offset", (ino,)
        ):
            part = max((part for part in parts if part.start <= stream_offset), key=lambda part: part.start)
            offset = stream_offset - part.start
            assert offset + size <= len(part.text.text)
            assert file_offset == len(content)
            content += part.text.text[offset : offset + size]
            if part.kind == 1:
                of_file += WORD.findall(part.text.text[offset : offset + size])
            if part.kind == 2:
                ((_, _, of_piece, ends),) = (piece for piece in part.text.pieces if piece[:2] == (offset, size))
                of_file += of_piece
        assert ends
        files[name] = content
        if not index.execute("SELECT * FROM binary_file WHERE ino = ?", (ino,)).fetchone():
            words[name] = of_file
    return files, words


def test_text_of_two_generations_is_read(tmp_path: Path) -> None:
    rng = random.Random(4)
    alice = (Path(__file__).parents[2] / "examples/corpus/carroll/alice29.txt").read_bytes()
    noise = "".join(rng.choices("abcdefgh.,;:-+*/()[]{}", k=2 * PART_SIZE)).encode()
    first = {
        b"a": alice[:50_000], b"again": alice[:50_000], b"b": b" to be ", b"binary": b"\0 words", b"c": noise,
        b"d": alice[50_000:55_000], b"empty": b"", b"lines": b"to be\nor not\n" * 100,
    }  # fmt: skip
    later = {b"b": b"replaced", b"e": alice[110_000:120_000]}
    options = {"codec": Codec.GOMPRESSO_TADOC}
    path = tmp_path / "archive.gomp"
    for folder, contents, write in (("first", first, pack), ("later", later, add)):
        (tmp_path / folder).mkdir()
        for name, content in contents.items():
            (tmp_path / folder / name.decode()).write_bytes(content)
        write(path, tmp_path / folder, **options, block_size=BLOCK_SIZE, part_size=PART_SIZE)
    index = sqlite3.connect(":memory:")
    index.deserialize(index_image(path))
    archive = path.read_bytes()
    assert {part.kind for part in read_parts(archive, index)} == {0, 1, 2}
    assert {words_of_segment(archive, index, number) == bytes(8) for number in (0, 1)} == {False, True}
    files, words = read_files(archive, index)
    index.close()
    assert files == {**first, **later}
    assert words == {name: WORD.findall(content) for name, content in files.items() if name != b"binary"}
