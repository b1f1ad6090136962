"""The example of text in docs/format.md is what the builder writes, and decodes to what the document says."""

from __future__ import annotations

import itertools
import re
import sqlite3
import struct
from pathlib import Path

from both_decoders import decode_tadoc, read_block, read_head, read_words
from format_tables import FormatTables
from oracle.numbers import class_base, class_of, num_extra_bits
from oracle.streams import read_sub_blocks
from oracle.tadoc import Part, join_root
from tadoc_builder import GlobalTokens, build_part
from tadoc_grammar import SPLITTER, Grammar, Piece, Rule, Token
from xxhash import xxh3_64_intdigest

from gompfs.codec import BLOCK_HEADER_SIZE

DOCUMENT = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
EXAMPLE = DOCUMENT.partition("\n## 14. Example of text\n")[2].partition("\n## 15. ")[0]
FENCES = re.findall(r"^```(\w+)[ \d]*\n([^`]+)```", EXAMPLE, re.MULTILINE)
SECTION, HEAD, *BLOCKS = [bytes.fromhex(digits) for _, digits in FENCES]
FILES = (b"to be or not to be, to be or not\n", b"or to be\n")
CONTENTS = (b"to be or not to be, to b", b"e or not\nor to be\n")


def check_header(block: bytes, codec: int, content: bytes) -> bytes:
    """Compares all fields of a header with its payload and content, and returns the payload."""
    payload = block[BLOCK_HEADER_SIZE:]
    magic, *fields, content_xxh3, block_xxh3 = struct.unpack_from("<4sIIIQQ", block)
    assert magic == b"GBLK"
    assert fields == [codec, len(payload), len(content)]
    assert content_xxh3 == xxh3_64_intdigest(content)
    assert block_xxh3 == xxh3_64_intdigest(block[:24] + payload)
    return payload


def part() -> Part:
    return read_head(HEAD[BLOCK_HEADER_SIZE:], struct.unpack_from("<I", HEAD, 12)[0], read_words(SECTION))


def bits_of(content: bytes) -> str:
    return "".join(f"{byte:08b}"[::-1] for byte in content)


def tables() -> list[list[list[str]]]:
    """Returns the cells of the tables of the example, without code quotes."""
    found = re.findall(r"(?:^\|.*\|\n)+", EXAMPLE, re.MULTILINE)
    return [[[cell.strip() for cell in row[1:-1].split(" |")] for row in table.splitlines()] for table in found]


def test_the_example_decodes() -> None:
    assert [kind for kind, _ in FENCES] == ["words", "head", "block", "block"]
    assert "".join(CONTENTS[index].decode() for index in (0, 1)).encode() == b"".join(FILES)
    decoded = part()
    check_header(HEAD, 4, decoded.pool)
    blocks = []
    for block, content in zip(BLOCKS, CONTENTS, strict=True):
        payload = check_header(block, 3, content)
        assert decode_tadoc(payload, len(content), decoded) == content
        assert f"`{content.decode()}`".replace("\n", "\\n") in EXAMPLE
        blocks.append(read_block(payload, len(content), decoded))
    assert f"The root of the part is {' '.join(map(str, join_root(blocks)))}:" in EXAMPLE


def test_the_example_is_what_the_builder_writes() -> None:
    first, second = Rule(0), Rule(1)
    comma, newline = Token(b", ", False), Token(b"\n", False)
    to, be, or_, not_ = (Token(word, True) for word in (b"to", b"be", b"or", b"not"))
    root = [second, first, comma, second, newline, SPLITTER, or_, first, newline, SPLITTER]
    grammar = Grammar(list(root), [[to, be], [first, or_, not_]])
    global_tokens = GlobalTokens([b"be", b"been", b"not"], [b"\n"])
    built = build_part([Piece(content) for content in FILES], global_tokens, block_size=24, grammar=grammar)
    assert global_tokens.section() == SECTION
    assert built.head == HEAD[BLOCK_HEADER_SIZE:]
    assert built.blocks == [block[BLOCK_HEADER_SIZE:] for block in BLOCKS]


def test_the_bits_of_the_codes() -> None:
    rows = tables()[0][2:]
    shown = "".join(bits for row in rows for bits in re.findall(r"`([01]+)`", row[0]))
    assert shown == bits_of(HEAD[32 + 48 : 32 + 48 + 28])


def test_the_bits_of_the_sub_blocks() -> None:
    stream = HEAD[32 + 48 + 28 : -8]
    (sub_blocks,) = read_sub_blocks(stream, [(0, 5)])
    rows = [[cell.strip("`") for cell in row[1:]] for row in tables()[1][2:]]
    sizes = [sum(map(len, row)) for row in rows]
    assert sizes == [17, 11, 6]
    assert sub_blocks.num_bits == sum(sizes)
    assert bits_of(stream)[160 : 160 + sum(sizes)] == "".join(cell for row in rows for cell in row)


def test_the_table_of_symbols() -> None:
    decoded = part()
    numbers, _, _, classes, ranks, expansions = (row[1:] for row in tables()[2])
    assert list(map(int, numbers)) == list(range(len(decoded.symbols_by_rank)))
    assert [decoded.symbols_by_rank.index(symbol) for symbol in range(9)] == list(map(int, ranks))
    assert [class_of(int(rank)) for rank in ranks] == list(map(int, classes))
    shown = [cell.strip("`").replace("␣", " ").replace("\\n", "\n").encode() for cell in expansions]
    assert shown == decoded.expansions.contents


def test_the_table_of_classes() -> None:
    section = DOCUMENT.partition("\n## 10. ")[2].partition("\n## 11. ")[0]
    rows = re.findall(r"^\| (?:class|base|extra bits) \|(.*)\|$", section, re.MULTILINE)
    formulas = [row.replace("^", "**").replace("\N{MULTIPLICATION SIGN}", "*").split("|") for row in rows]
    classes, bases, extra = ([eval(cell) for cell in row if cell.strip() != "…"] for row in formulas)
    assert classes == [*range(8), 60, 61]
    assert [class_base(number_class) for number_class in classes] == bases
    assert [num_extra_bits(number_class) for number_class in classes] == extra


def test_the_files_of_the_splitters() -> None:
    """The symbols before each splitter concatenate to the files, whose sizes the text gives."""
    decoded = part()
    blocks = [read_block(block[BLOCK_HEADER_SIZE:], len(content), decoded)
              for block, content in zip(BLOCKS, CONTENTS, strict=True)]  # fmt: skip
    root, text, ends = join_root(blocks), bytearray(), []
    for previous, symbol in zip([None, *root], root, strict=False):
        decoded.expansions.take_space(text, previous, symbol)
        text += decoded.expansions.contents[symbol]
        if decoded.is_splitter(symbol):
            ends.append(len(text))
    first, second = map(len, FILES)
    assert bytes(text) == b"".join(FILES)
    assert ends == [first, first + second]
    shown = " ".join(EXAMPLE.split())
    assert f"{first} bytes; those before the second to {first + second} bytes." in shown
    assert f"an extent of {first} bytes at stream offset 0, and the second" in shown
    assert f"those with an extent of {second} bytes at {first}." in shown


def test_the_rows_of_the_index() -> None:
    *_, rows = FormatTables().rows()
    index = sqlite3.connect(":memory:")
    (segment, section) = (index.execute(f"SELECT {values}").fetchone() for _, values in rows)
    index.close()
    assert [table for table, _ in rows] == ["segment", "section"]
    sizes = struct.pack("<2I", *map(len, BLOCKS))
    _, second, head, words = itertools.accumulate(
        map(len, (*BLOCKS, HEAD)), lambda start, size: -(-(start + size) // 16) * 16, initial=64
    )
    assert second == 128
    part_size = struct.pack("<Q", sum(map(len, CONTENTS)))
    assert segment == (0, 0, 64, sizes, b"\3\3", b"\2", part_size, head, struct.pack("<I", len(HEAD)))
    assert section == (0, "words", len(SECTION), words, struct.pack("<I", BLOCK_HEADER_SIZE + len(SECTION)))


def test_the_example_of_a_number() -> None:
    found = re.search(r"the number (\d+) has the class (\d+) \(base (\d+), (\d+) extra bits\) and the extra bits (\d+)",
                      " ".join(DOCUMENT.split()))  # fmt: skip
    assert found is not None
    number, number_class, base, extra_bits, extra = map(int, found.groups())
    assert class_of(number) == number_class
    assert (class_base(number_class), num_extra_bits(number_class)) == (base, extra_bits)
    assert number == base + extra
