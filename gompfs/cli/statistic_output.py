"""How a statistic is printed: as text, as an array of JSON, or in one of the formats of tables."""

from __future__ import annotations

import sys

from gompfs.cli.output import print_json, print_json_array, print_lines, write_bytes
from gompfs.errors import OptionError
from gompfs.light_types import TYPE_CHECKING
from gompfs.statistics.formats import Format, check_format, formatted
from gompfs.statistics.records import records

if TYPE_CHECKING:
    from gompfs.statistics.report import Report
    from gompfs.statistics.tasks import Task

OutputForm = Format | None
"""None stands for --json, an array."""


def output_form(name: str | None, *, as_json: bool, lists_names: bool) -> OutputForm:
    """Returns the form that the options --format and --json ask for. Raises OptionError if it cannot be used."""
    if name is not None and (as_json or lists_names):
        raise OptionError("--format is for statistics, and cannot be used with --json")
    if as_json:
        return None
    form = Format(name or Format.TEXT.value)
    check_format(form)
    if form in (Format.ARROW, Format.PARQUET) and sys.stdout.isatty():
        raise OptionError(f"--format {form.value} is not for a terminal; redirect it to a file")
    return form


def print_report(report: Report, task: Task, form: OutputForm) -> None:
    """Prints a statistic. Raises GompfsError."""
    if form is not None:
        text = formatted(report, task.columns, form)
        if form in (Format.TEXT, Format.JSONL):
            print_lines(text, are_json=form is Format.JSONL)
        else:
            for piece in text:
                write_bytes(piece)
    elif not task.columns:
        print_json(next(records(task.columns, report)))
    else:
        print_json_array(records(task.columns, report))
