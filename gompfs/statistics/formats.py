"""Statistics in other formats than text: JSON Lines, Apache Arrow and Apache Parquet.

Each is made from the text, piece by piece, so every task has all formats, and memory stays limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from gompfs._native.statistics import json_lines
from gompfs.errors import OptionError, pip_install
from gompfs.statistics.line_format import groups_of_pieces, line_format, unfit_for_columns
from gompfs.statistics.records import FACTS, Columns, records
from gompfs.statistics.report import FixedReport, Report
from gompfs.threads import default_threads

if TYPE_CHECKING:
    import pyarrow as pa


class Format(Enum):
    """The formats of statistics. Each value is also the suffix of the names of such files."""

    TEXT = "text"
    """Lines of fields, separated by tabs."""
    JSONL = "jsonl"
    """JSON Lines: the values of `gompfs stats --json`."""
    ARROW = "arrow"
    """A flat table as a file of Arrow IPC, compressed with LZ4."""
    PARQUET = "parquet"
    """A flat table as a file of Parquet, compressed with zstd."""


def check_format(form: Format) -> None:
    """Imports the library that the format needs, if any. Raises OptionError if it is not installed."""
    if form in (Format.ARROW, Format.PARQUET):
        _import_tables()


def _import_tables() -> None:
    try:
        import gompfs.statistics.tables  # noqa: F401
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pyarrow"):
            raise
        raise OptionError(f"tables need pyarrow: {pip_install('tables')}") from None


def formatted(report: Report, columns: Columns, form: Format) -> Report:
    """Returns the text of a task with these columns in another format. Raises what check_format raises.

    Making it raises StatsUnavailableError for lines that have not these columns: those of a hostile archive whose words
    contain tabs or line feeds.
    """
    check_format(form)
    if form is Format.TEXT:
        return report
    if form is Format.JSONL:
        return _JsonLines(report, columns) if columns else FixedReport(_json_facts(report))
    from gompfs.statistics.tables import TableFile

    return TableFile(report, columns or FACTS, is_parquet=form is Format.PARQUET)


def record_batches(report: Report, columns: Columns) -> pa.RecordBatchReader:
    """Returns a reader of the rows of a table, which are made when they are read. Raises what check_format raises."""
    _import_tables()
    from gompfs.statistics.tables import reader

    return reader(report, columns or FACTS)


class _JsonLines(Report):
    def __init__(self, report: Report, columns: Columns) -> None:
        self._report = report
        self._columns, self._format = columns, line_format(columns)

    @property
    def size(self) -> None:
        """See Report.size."""

    def __iter__(self) -> Iterator[bytes]:
        for texts in groups_of_pieces(self._report, self._columns):
            yield from self._converted(texts)

    def _converted(self, texts: Sequence[bytes]) -> list[bytes]:
        try:
            return json_lines(texts, self._format, default_threads())
        except ValueError as error:
            raise unfit_for_columns(error) from None


def _json_facts(report: Report) -> bytes:
    import json

    return json.dumps(next(records((), report))).encode() + b"\n"
