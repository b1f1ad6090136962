"""Output of the commands: readable sizes, names with arbitrary bytes, JSON, tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from gompfs.errors import display_path, display_text
from gompfs.light_types import TYPE_CHECKING
from gompfs.statistics.report import in_whole_lines

if TYPE_CHECKING:
    from typing import Any

    from rich.table import Table

_WIDEST = 10_000
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def human_size(size: float) -> str:
    """A number of bytes with three digits and a decimal unit: 1.36 GB."""
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    if unit == 0:
        return f"{size:.0f} B"
    return f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f} {_UNITS[unit]}"


def human_duration(seconds: float) -> str:
    """Seconds as 0 s, 3.2 us, 41.0 ms, 12.3 s, 5:09, 3:05:09, or 2d 3:05."""
    if seconds == 0:
        return "0 s"
    if seconds < 59.95:
        for unit, size in (("us", 1e-6), ("ms", 1e-3)):
            if seconds < 999.5 * size:
                return f"{seconds / size:.{1 if seconds < 99.95 * size else 0}f} {unit}"
        return f"{seconds:.1f} s"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour}:{minute:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def ratio(uncompressed_size: int, compressed_size: int) -> float:
    """Uncompressed size divided by compressed size; 1.0 if the compressed size is 0."""
    return uncompressed_size / compressed_size if compressed_size else 1.0


def print_json(value: Any) -> None:
    """Print one JSON document. Bytes of names that are not UTF-8 become lone surrogates, as os.fsdecode makes them."""
    import json

    sys.stdout.buffer.write(json.dumps(value, indent=2).encode() + b"\n")


def print_json_array(items: Iterable[Any]) -> None:
    """Print a JSON array, one item per line. Each item is written as soon as the iterator yields it."""
    import json

    separator = b"["
    for item in items:
        sys.stdout.buffer.write(separator + json.dumps(item).encode())
        separator = b",\n "
    sys.stdout.buffer.write(b"[]\n" if separator == b"[" else b"]\n")


def print_line(line: bytes, *, end: bytes = b"\n", raw: bool = False) -> None:
    """Print a line of bytes. On a terminal, control characters are escaped unless `raw` is set."""
    sys.stdout.buffer.write((line if raw or not sys.stdout.isatty() else _escaped(line)) + end)


def print_lines(text: Iterable[bytes], *, are_json: bool = False) -> None:
    """Print lines of fields, or of JSON, given in pieces. On a terminal, control characters are escaped."""
    if sys.stdout.isatty():
        escape = _escaped_json if are_json else _escaped
        text = (b"\n".join(map(escape, piece.split(b"\n"))) for piece in in_whole_lines(text))
    for piece in text:
        sys.stdout.buffer.write(piece)


def _escaped(line: bytes) -> bytes:
    """Escapes control characters, but not the tabs between fields."""
    return b"\t".join(display_path(field).encode() for field in line.split(b"\t"))


def _escaped_json(line: bytes) -> bytes:
    """Escapes control characters as JSON does."""
    import json

    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line.decode()).encode()


def write_bytes(content: bytes) -> None:
    """Write bytes to stdout unchanged."""
    sys.stdout.buffer.write(content)


def make_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, num_left: int = 1) -> Table:
    """A table without borders; the first `num_left` columns are aligned left, the others right.

    Control characters in cells are escaped.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < num_left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(display_text(cell)) for cell in row))
    return table


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, num_left: int = 1) -> None:
    """Print make_table(...), as wide as the terminal, or as wide as needed if stdout is not a terminal."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=_WIDEST)
    console.print(make_table(headings, rows, num_left=num_left))
