"""The columns of statistics, and their lines as Python values, as `gompfs stats --json` prints them.

A line consists of fields separated by tabs, one for each column. The last column of some tasks repeats: all remaining
fields of the line are its items. Lines that begin with a SHA-256 are those of the program sha256sum.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from gompfs.statistics.paths import sums_as_fields, unescape_path
from gompfs.statistics.report import in_whole_lines


class ColumnType(Enum):
    """The type of a column: the name of the text of a field, and the type of its JSON value."""

    WORD = "word", "string"
    NGRAM = "`w1 w2 w3`", "[string, ...]"
    PATH = "path", "string"
    COUNT = "count", "integer"
    SCORE = "score", "number"
    LINE = "line", "string"
    SHA256 = "SHA-256", "string"

    @property
    def label(self) -> str:
        """The content of a field, for the description of a line."""
        return self.value[0]

    @property
    def json_type(self) -> str:
        """The type of the field's JSON value."""
        return self.value[1]


_PARSERS: dict[ColumnType, Callable[[bytes], Any]] = {
    ColumnType.WORD: os.fsdecode,
    ColumnType.NGRAM: lambda field: os.fsdecode(field).split(" "),
    ColumnType.PATH: lambda field: os.fsdecode(unescape_path(field)),
    ColumnType.COUNT: int,
    ColumnType.SCORE: float,
    ColumnType.LINE: lambda field: os.fsdecode(unescape_path(field)),
    ColumnType.SHA256: os.fsdecode,
}


class Column(NamedTuple):
    """One field of each line. `name` is its JSON key."""

    name: str
    type: ColumnType


class Items(NamedTuple):
    """All remaining fields of a line: an array with the JSON key `name`.

    Without `weight`, each field is a plain value. With it, a field is the weight, a space and the value, and becomes an
    object with both.
    """

    name: str
    value: Column
    weight: Column | None = None


Columns = Sequence[Column | Items]
FACTS = (Column("name", ColumnType.WORD), Column("value", ColumnType.WORD))
"""The columns of a line of facts, if they are listed as lines."""


Record = dict[str, Any] | str
"""One line: its fields by their names, or the only field."""


def records(columns: Columns, text: Iterable[bytes]) -> Iterator[Record]:
    """Yields one value per line of `text`, which is given in pieces.

    The values are dicts; strings, if there is a single column. Without columns, the lines are facts `name<TAB>value`
    with any names, and there is a single dict for all of them.
    """
    if not columns:
        yield _facts(b"".join(text))
        return
    parse = _line_parser(columns)
    for piece in lines_of_fields(columns, text):
        yield from map(parse, piece.split(b"\n")[:-1])


def lines_of_fields(columns: Columns, text: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the lines of a task with these columns in pieces of whole lines, with tabs between the fields."""
    pieces = in_whole_lines(text)
    is_sums = isinstance(columns[0], Column) and columns[0].type is ColumnType.SHA256
    return map(sums_as_fields, pieces) if is_sums else pieces


def _line_parser(columns: Columns) -> Callable[[bytes], Any]:
    """Returns the function that converts one line."""
    fixed = [(column.name, _PARSERS[column.type]) for column in columns if isinstance(column, Column)]
    if len(columns) == 1:
        return fixed[0][1]
    if len(fixed) == len(columns) == 2:
        return _pair_parser(*fixed)
    repeated = columns[-1] if isinstance(columns[-1], Items) else None
    items = _item_parser(repeated) if repeated is not None else None

    def parse(line: bytes) -> dict[str, Any]:
        fields = line.split(b"\t")
        record = {name: parse_field(field) for (name, parse_field), field in zip(fixed, fields, strict=False)}
        if repeated is not None and items is not None:
            record[repeated.name] = [items(field) for field in fields[len(fixed) :]]
        return record

    return parse


def _pair_parser(
    first: tuple[str, Callable[[bytes], Any]], second: tuple[str, Callable[[bytes], Any]]
) -> Callable[[bytes], dict[str, Any]]:
    """Returns the function for lines of two fields: they are many, and a loop over columns takes twice as long."""
    (name, parse_name), (other, parse_other) = first, second

    def parse(line: bytes) -> dict[str, Any]:
        field, _, rest = line.partition(b"\t")
        return {name: parse_name(field), other: parse_other(rest)}

    return parse


def _item_parser(items: Items) -> Callable[[bytes], Any]:
    value, parse_value = items.value.name, _PARSERS[items.value.type]
    if items.weight is None:
        return parse_value
    weight, parse_weight = items.weight.name, _PARSERS[items.weight.type]

    def parse(field: bytes) -> dict[str, Any]:
        number, _, rest = field.partition(b" ")
        return {value: parse_value(rest), weight: parse_weight(number)}

    return parse


def _facts(content: bytes) -> dict[str, Any]:
    """Returns the content of the file `info` as a dict, in which numbers are int."""
    lines = (line.partition("\t") for line in content.decode().splitlines())
    return {name: int(value) if value.isdecimal() else value for name, _, value in lines}
