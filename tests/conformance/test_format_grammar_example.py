"""The examples of numbers and of a grammar section in docs/format.md are right, byte for byte."""

from __future__ import annotations

import re
import struct
from collections import Counter
from itertools import pairwise

from format_tables import FormatTables

from gompfs.grammar import Grammar
from gompfs.grammar.reference import expand_part, word_counts

TABLES = FormatTables("format.md")
(SECTION,) = TABLES.examples("grammar")
EXAMPLE = TABLES.text.partition("\n```grammar\n")[2].partition("\n## ")[0]
FILES = {2: b"to be or not to be", 5: b"been to be or not", 3: b"be"}


def number(value: int) -> bytes:
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def difference(change: int) -> bytes:
    return number(2 * change if change >= 0 else -2 * change - 1)


def differences(*numbers: int) -> bytes:
    return b"".join(difference(after - before) for before, after in pairwise([0, *numbers]))


def test_numbers_and_differences() -> None:
    for label, encode in (("number", number), ("difference", difference)):
        rows = re.search(rf"^\| (?:value|b - a) \|(.*)\|\n\|[-|]+\n\| {label} \|(.*)\|$", TABLES.text, re.MULTILINE)
        assert rows is not None
        values = [int(cell.replace(",", "")) for cell in rows[1].split("|")]
        assert [encode(value) for value in values] == [bytes.fromhex(cell.strip(" `")) for cell in rows[2].split("|")]


def test_the_section_is_what_the_document_describes() -> None:
    header = struct.pack("<4sHBBII16x", b"GGRM", 1, 0, 0, 5, 2)
    dictionary = bytes([0, 2, 0, 0, 0]) + bytes([2, 2, 3, 2, 2]) + b"be" + b"en" + b"not" + b"or" + b"to"
    first = [
        b"\0\x09", number(2), differences(2, 5), number(5), differences(4, 0, 3, 2, 1), number(2), b"\x08\x02",
        bytes([2, 5, 7, 2, 0, 9, 2, 0]), bytes([1, 3]),
    ]  # fmt: skip
    second = [
        b"\x01\x03", number(2), differences(5, 3), number(3), differences(3, 2, 0), b"\x01\x05",
        bytes([1, 3, 0, 5, 0]),
    ]  # fmt: skip
    assert b"".join([header, dictionary, *first, *second]) == SECTION


def test_the_words_of_the_files() -> None:
    grammar = Grammar.from_bytes(SECTION)
    found: dict[int, list[bytes]] = {}
    for part, (_, inos, _) in zip(grammar.parts(), grammar.files(), strict=True):
        for ino, words in zip(inos.tolist(), expand_part(part), strict=True):
            found.setdefault(ino, []).extend(map(grammar.word, words))
    assert {ino: b" ".join(words) for ino, words in found.items()} == FILES
    assert word_counts(grammar) == Counter(b" ".join(FILES.values()).split())
    shown = " ".join(TABLES.text.partition("\n```grammar\n")[0].split())
    assert all(f"`{words.decode()}`" in shown for words in FILES.values())


def test_the_bytes_that_the_text_names() -> None:
    """The quoted bytes of the first part follow each other as the list explains them."""
    listed = re.findall(r"^- ((?:`[0-9a-f ]+`[^;\n]*; )?`[0-9a-f ]+`)", EXAMPLE, re.MULTILINE)
    quoted = b"".join(bytes.fromhex(digits) for entry in listed for digits in re.findall(r"`([0-9a-f ]+)`", entry))
    start = SECTION.index(quoted)
    assert start == 32 + 10 + len(b"beennotorto")
    assert SECTION[start + len(quoted) :] == bytes.fromhex("01 03 02 0a 03 03 06 01 03 01 05 01 03 00 05 00")
