"""The field tables of docs/format.md, by which tests read archives."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "format.md"
_ROW = re.compile(r"^\| (\d+) \| (\d+) \| ([^|]+) \|$", re.MULTILINE)


class FormatTables:
    """The tables of the document."""

    def __init__(self) -> None:
        self.text = DOCUMENT.read_text()

    def table(self, heading: str) -> list[tuple[int, int, str]]:
        """Returns offset, size and text of the fields in the first table after a heading."""
        first_table = re.search(r"\|---.*?\n\n", self.text[self.text.index(f"\n{heading}\n") :], re.DOTALL)
        assert first_table is not None
        return [(int(start), int(size), text) for start, size, text in _ROW.findall(first_table[0])]

    def fields(self, raw: bytes, heading: str) -> dict[str, int]:
        """Returns each field under the first words of its text, up to a comma, colon or parenthesis.

        Checks magic values.
        """
        found: dict[str, int] = {}
        for start, size, text in self.table(heading):
            value = raw[start : start + size]
            if magic := re.match(r"magic `([^`]+)`", text):
                assert value == (magic[1].encode() if magic[1] == "GBLK" else bytes.fromhex(magic[1]))
            elif text == "reserved":
                assert not any(value)
            else:
                found[re.split(r"[,:;(]", text)[0].strip()] = int.from_bytes(value, "little")
        return found

    def check_gaps(self, heading: str, size: int) -> None:
        """Checks that the fields of a table follow each other and have `size` bytes in all."""
        position = 0
        for start, field_size, _ in self.table(heading):
            assert start == position
            position += field_size
        assert position == size

    def examples(self, label: str) -> list[bytes]:
        """Returns the hexadecimal examples that have this label."""
        return [bytes.fromhex(digits) for digits in re.findall(rf"^```{label}\n([^`]+)```", self.text, re.MULTILINE)]

    def rows(self) -> list[list[tuple[str, str]]]:
        """Returns the tables of rows of an index: the name of the table and the values in SQL of each row."""
        found = re.findall(r"^\| table \| row \|\n\|---\|---\|\n((?:\|.*\|\n)+)", self.text, re.MULTILINE)
        return [re.findall(r"^\| (\w+) \| `(.*)` \|$", rows, re.MULTILINE) for rows in found]
