"""Converts lines of a statistic: their fields, the columns of their table, and texts of many lines."""

from __future__ import annotations

from collections.abc import Iterator

from gompfs._native.statistics import FieldType, LineFormat
from gompfs.errors import StatsUnavailableError
from gompfs.statistics.records import Column, Columns, ColumnType, lines_of_fields
from gompfs.statistics.report import Report

_BYTES_AT_ONCE = 16 << 20
_SAME_TEXT = {ColumnType.SHA256: FieldType.WORD, ColumnType.LINE: FieldType.PATH}
"""The types whose fields have the text of another one."""


def line_format(columns: Columns) -> LineFormat:
    """Returns how the C++ core takes the columns of a task."""
    fields = [_named(column) for column in columns if isinstance(column, Column)]
    last = columns[-1]
    if isinstance(last, Column):
        return LineFormat(fields)
    weight = None if last.weight is None else _named(last.weight)
    return LineFormat(fields, last.name, _named(last.value), weight)


def _named(column: Column) -> tuple[str, FieldType]:
    return column.name, _SAME_TEXT.get(column.type) or FieldType[column.type.name]


def table_columns(columns: Columns) -> tuple[list[Column], list[Column]]:
    """Returns the columns of a flat table: those of the fields of a line, and those of its items."""
    fields = [column for column in columns if isinstance(column, Column)]
    last = columns[-1]
    if isinstance(last, Column):
        return fields, []
    items = [last.value] if last.weight is None else [last.value, last.weight]
    names = {column.name for column in fields}
    # In overlap, the document and each file have n-grams.
    return fields, [
        item._replace(name=f"{last.value.name}_{item.name}") if item.name in names else item for item in items
    ]


def groups_of_pieces(report: Report, columns: Columns) -> Iterator[list[bytes]]:
    """Yields the lines of a text in pieces, in lists of up to 16 MiB, for several threads to work on.

    Tabs separate their fields.
    """
    group: list[bytes] = []
    size = 0
    for piece in lines_of_fields(columns, report):
        group.append(piece)
        size += len(piece)
        if size >= _BYTES_AT_ONCE:
            yield group
            group, size = [], 0
    yield group


def unfit_for_columns(error: ValueError) -> StatsUnavailableError:
    """Returns the error for a text that is not as its columns say."""
    return StatsUnavailableError(f"this statistic cannot be converted, its text has {error}")
