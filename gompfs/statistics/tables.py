"""Statistics as flat tables of Apache Arrow. The only module that imports pyarrow.

A line of a statistic becomes a row, or a row for each of its items: the first columns are then repeated. A column of
words, n-grams or paths is a string, and has a second column `NAME_bytes`, which is null unless the text is not UTF-8:
then it has the exact bytes, and in the string each invalid byte is written as `\\xHH`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gompfs._native.statistics import TableBatch, TableColumn, table_batches
from gompfs.statistics.line_format import groups_of_pieces, line_format, table_columns, unfit_for_columns
from gompfs.statistics.records import Column, Columns, ColumnType
from gompfs.statistics.report import Report
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH_BYTES = 32 << 20  # of text that is repeated
_GROUP_ROWS, _GROUP_BYTES = 1 << 20, 64 << 20  # about those of a row group of Parquet
_NUMBERS = {ColumnType.COUNT: pa.uint64(), ColumnType.SCORE: pa.float64()}


class _Layout(NamedTuple):
    """The columns of a table: those of the fields of a line, then those of its items."""

    fields: list[Column]
    items: list[Column]

    def schema(self) -> pa.Schema:
        columns = [*self.fields, *self.items]
        exact = [pa.field(f"{column.name}_bytes", pa.binary()) for column in columns if column.type not in _NUMBERS]
        return pa.schema([*(pa.field(column.name, _type_of(column)) for column in columns), *exact])


def _type_of(column: Column) -> pa.DataType:
    return _NUMBERS.get(column.type, pa.string())


def schema_of(columns: Columns) -> pa.Schema:
    """Returns the columns of a table, with their types."""
    return _Layout(*table_columns(columns)).schema()


def reader(report: Report, columns: Columns) -> pa.RecordBatchReader:
    """Returns a reader of the rows of a report. Rows are made when they are read."""
    return pa.RecordBatchReader.from_batches(schema_of(columns), _batches(report, columns))


def _batches(report: Report, columns: Columns) -> Iterator[pa.RecordBatch]:
    layout, lines = _Layout(*table_columns(columns)), line_format(columns)
    schema = layout.schema()
    for texts in groups_of_pieces(report, columns):
        try:
            parsed = table_batches(texts, lines, default_threads())
        except ValueError as error:
            raise unfit_for_columns(error) from None
        for batch in parsed:
            for arrays in _arrays(batch, layout):
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _arrays(batch: TableBatch, layout: _Layout) -> Iterator[list[pa.Array]]:
    """Yields the columns of a batch, cut so that the text that is repeated in its rows stays small."""
    fields = [_values(batch.field(index), column, batch.num_lines) for index, column in enumerate(layout.fields)]
    if not layout.items:
        yield _ordered(fields)
        return
    lines = batch.line_of_row
    items = [
        _values(batch.item(index), column, len(lines), batch.no_items) for index, column in enumerate(layout.items)
    ]
    sizes = np.zeros(batch.num_lines, np.int64)
    for index, column in enumerate(layout.fields):
        if column.type not in _NUMBERS:
            sizes += np.diff(batch.field(index).offsets)
    for begin, end in _cuts(sizes[lines]):
        buffer = pa.py_buffer(lines[begin:end])
        repeated = pa.Array.from_buffers(pa.int32(), end - begin, [None, buffer])  # pa.array would import pandas
        of_lines = [[values.take(repeated) for values in field] for field in fields]
        of_items = [[values.slice(begin, end - begin) for values in item] for item in items]
        yield _ordered(of_lines + of_items)


def _cuts(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yields ranges of rows, of which all but single rows have up to _BATCH_BYTES bytes of text."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _BATCH_BYTES, "right")))
        yield begin, end
        begin = end


def _ordered(columns: list[list[pa.Array]]) -> list[pa.Array]:
    """Returns the arrays in the order of the schema: the exact bytes of all texts come last."""
    return [column[0] for column in columns] + [exact for column in columns for exact in column[1:]]


def _values(
    values: TableColumn, column: Column, length: int, missing: NDArray[np.int32] | None = None
) -> list[pa.Array]:
    """Returns the array of a column, and for texts a second one with the bytes of those that are not UTF-8."""
    num_missing = 0 if missing is None else len(missing)
    validity = None
    if missing is not None and num_missing:
        is_valid = np.ones(length, bool)
        is_valid[missing] = False
        validity = _bitmap(is_valid)
    if column.type in _NUMBERS:
        numbers = values.counts if column.type is ColumnType.COUNT else values.scores
        return [pa.Array.from_buffers(_type_of(column), length, [validity, pa.py_buffer(numbers)], num_missing)]
    buffers = [validity, pa.py_buffer(values.offsets), pa.py_buffer(values.texts)]
    return [pa.Array.from_buffers(pa.string(), length, buffers, num_missing), _exact(values, length)]


def _exact(values: TableColumn, length: int) -> pa.Array:
    """Returns the bytes of the texts that are not UTF-8; null for all others."""
    odd = values.odd_values
    if not len(odd):
        return pa.nulls(length, pa.binary())
    sizes = np.zeros(length + 1, np.int32)
    sizes[odd + 1] = np.diff(values.odd_offsets)
    is_odd = np.zeros(length, bool)
    is_odd[odd] = True
    buffers = [_bitmap(is_odd), pa.py_buffer(np.cumsum(sizes, dtype=np.int32)), pa.py_buffer(values.odd_bytes)]
    return pa.Array.from_buffers(pa.binary(), length, buffers, length - len(odd))


def _bitmap(is_valid: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(is_valid, bitorder="little"))


class _Output:
    """A file for pyarrow to write to, whose bytes are taken away as soon as they are written."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, content: bytes) -> int:
        self._pieces.append(bytes(content))
        return len(content)

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing: the bytes that were written can still be taken."""

    def take(self) -> bytes:
        """Returns the bytes that were written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


class TableFile(Report):
    """A table as a file: of Parquet, or of Arrow IPC."""

    def __init__(self, report: Report, columns: Columns, *, is_parquet: bool) -> None:
        """Takes the rows from the lines of `report`."""
        self._report = report
        self._columns = columns
        self._is_parquet = is_parquet

    @property
    def size(self) -> None:
        """See Report.size."""

    def __iter__(self) -> Iterator[bytes]:
        schema = schema_of(self._columns)
        output = _Output()
        with pa.PythonFile(output, "w") as file, self._writer(file, schema) as writer:
            for group in _row_groups(_batches(self._report, self._columns)):
                writer.write_table(pa.Table.from_batches(group, schema))
                yield output.take()
        yield output.take()

    def _writer(self, file: pa.PythonFile, schema: pa.Schema) -> pq.ParquetWriter | pa.RecordBatchFileWriter:
        if self._is_parquet:
            return pq.ParquetWriter(file, schema, compression="zstd")
        return pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yields the batches in groups that are limited in rows and bytes. No batch is cut."""
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if rows:
        yield group
