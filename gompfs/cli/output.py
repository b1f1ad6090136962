"""How the commands print: sizes for people, names of any bytes, JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gompfs.errors import display_path

if TYPE_CHECKING:
    from rich.table import Table

_WIDEST = 10_000
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def human_size(size: float) -> str:
    """A number of bytes in three digits and a decimal unit: 1.36 GB."""
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    if unit == 0:
        return f"{size:.0f} B"
    return f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f} {_UNITS[unit]}"


def human_duration(seconds: float) -> str:
    """Seconds as 3.2 us, 41.0 ms, 12.3 s, 5:09, 3:05:09, or 2d 3:05."""
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
    """How many times smaller; 1.0 for nothing at all."""
    return uncompressed_size / compressed_size if compressed_size else 1.0


def print_json(value: Any) -> None:
    """One JSON document on stdout; names that are no UTF-8 have lone surrogates, as os.fsdecode gives."""
    import json

    sys.stdout.buffer.write(json.dumps(value, indent=2).encode() + b"\n")


def print_json_array(items: Iterable[Any]) -> None:
    """A JSON array with one item a line, written as the items come."""
    import json

    separator = b"["
    for item in items:
        sys.stdout.buffer.write(separator + json.dumps(item).encode())
        separator = b",\n "
    sys.stdout.buffer.write(b"[]\n" if separator == b"[" else b"]\n")


def print_line(line: bytes, *, end: bytes = b"\n", raw: bool = False) -> None:
    """A line of bytes on stdout; on a terminal, those that could steer it are escaped unless `raw`."""
    if not raw and sys.stdout.isatty():
        line = b"\t".join(display_path(part).encode() for part in line.split(b"\t"))
    sys.stdout.buffer.write(line + end)


def write_bytes(content: bytes) -> None:
    """Bytes on stdout as they are."""
    sys.stdout.buffer.write(content)


def make_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, num_left: int = 1) -> Table:
    """A table without lines; the first `num_left` columns are text, the others are numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < num_left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, num_left: int = 1) -> None:
    """The same on stdout: as wide as the terminal, or as it needs to be where that is none."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=_WIDEST)
    console.print(make_table(headings, rows, num_left=num_left))
