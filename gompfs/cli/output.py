"""How the commands print: sizes for people, names of any bytes, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from gompfs.errors import display_path

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


def ratio(uncompressed_size: int, compressed_size: int) -> float:
    """How many times smaller; 1.0 for nothing at all."""
    return uncompressed_size / compressed_size if compressed_size else 1.0


def print_json(value: Any) -> None:
    """One JSON document on stdout; names that are no UTF-8 have lone surrogates, as os.fsdecode gives."""
    sys.stdout.buffer.write(json.dumps(value, indent=2).encode() + b"\n")


def print_json_array(items: Iterable[Any]) -> None:
    """A JSON array with one item a line, written as the items come."""
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
