"""The tables of docs/reference/statistics.md, from the table of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gompfs.statistics.line_format import table_columns
from gompfs.statistics.records import FACTS, Column, Columns, ColumnType, Items
from gompfs.statistics.tasks import NAMES_OF_FILE, OF_FILE_FORM, TASKS


def lines_table() -> str:
    """Returns a table of the lines of each statistic and their order."""
    rows = [(f"`{task.form}`", _line(task.columns), task.order) for task in TASKS.values() if task.columns]
    of_file = ", ".join(f"`{name}`" for name in NAMES_OF_FILE)
    rows.append((f"`{OF_FILE_FORM}`", f"those of NAME, for one file; NAME is one of {of_file}", ""))
    return _table(("statistic, and file in `stats`", "its lines", "their order"), rows)


def records_table() -> str:
    """Returns a table of the options and the JSON value of each statistic."""
    rows = [
        (f"`{task.form}`", " ".join(f"`{option}`" for option in task.options), f"`{_json(task.columns)}`")
        for task in TASKS.values()
        if task.columns
    ]
    return _table(("statistic", "options", "JSON value of a line"), rows)


_TABLE_TYPES = {ColumnType.COUNT: "uint64", ColumnType.SCORE: "double"}


def tables_table() -> str:
    """Returns a table of the columns of each statistic's table, without those of exact bytes."""
    rows = []
    for task in TASKS.values():
        fields, items = table_columns(task.columns or FACTS)
        columns = [f"{column.name} {_TABLE_TYPES.get(column.type, 'string')}" for column in [*fields, *items]]
        of = "an n-gram" if fields[0].type is ColumnType.NGRAM else f"a {fields[0].name}"
        what = f"{items[0].name} of {of}" if items else "line"
        rows.append((f"`{task.form}`", what, f"`{', '.join(columns)}`"))
    return _table(("statistic", "a row for each", "columns"), rows)


def _line(columns: Columns) -> str:
    fields: list[str] = []
    for column in columns:
        if isinstance(column, Column):
            fields.append(column.type.label)
        elif column.weight is None:
            fields += [column.value.type.label] * 2 + ["..."]
        else:
            fields += [f"`{column.weight.type.label} {column.value.type.label}`"] * 2 + ["..."]
    return ", ".join(fields)


def _json(columns: Columns) -> str:
    if len(columns) == 1 and isinstance(columns[0], Column):
        return columns[0].type.json_type
    return _json_object(columns)


def _json_object(columns: Iterable[Column | Items]) -> str:
    members = []
    for column in columns:
        if isinstance(column, Column):
            members.append(f'"{column.name}": {column.type.json_type}')
        elif column.weight is None:
            members.append(f'"{column.name}": [{column.value.type.json_type}, ...]')
        else:
            members.append(f'"{column.name}": [{_json_object((column.value, column.weight))}, ...]')
    return "{" + ", ".join(members) + "}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|\n" for line in lines)
