r"""Paths as fields of the lines of statistics, in which a tab separates fields and a newline ends a line.

The lines of the program sha256sum have other escapes, and two spaces for the tab.
"""

from __future__ import annotations

from collections.abc import Mapping


def escape_path(path: bytes) -> bytes:
    r"""Returns a path as a field of a line: backslash, tab and newline become `\\`, `\t` and `\n`; other bytes stay."""
    return path.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n")


def unescape_path(field: bytes) -> bytes:
    """Returns the path that `escape_path` has written as this field."""
    parts = field.split(b"\\\\")
    return b"\\".join(part.replace(b"\\t", b"\t").replace(b"\\n", b"\n") for part in parts)


def sum_line(path: bytes, digits: bytes) -> bytes:
    r"""Returns the line of a file as sha256sum writes it: it begins with a backslash if the name has escapes.

    Backslash, newline and carriage return become `\\`, `\n` and `\r`.
    """
    escaped = path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return b"%s%s  %s\n" % (b"" if escaped == path else b"\\", digits, escaped)


def sums_as_fields(lines: bytes) -> bytes:
    """Returns lines of `sum_line` as lines of two fields, the digits and the path."""
    return b"".join(map(_sum_as_fields, lines.split(b"\n")[:-1]))


def _sum_as_fields(line: bytes) -> bytes:
    digits, _, name = line.partition(b"  ")
    if line.startswith(b"\\"):
        digits = digits[1:]
        parts = name.split(b"\\\\")
        name = b"\\".join(part.replace(b"\\n", b"\n").replace(b"\\r", b"\r") for part in parts)
    return b"%s\t%s\n" % (digits, escape_path(name))


def files_in_order(paths: Mapping[int, bytes]) -> list[tuple[int, bytes]]:
    """Returns the files as `_native.statistics.Corpus` takes them: sorted by path in byte order, with escaped paths."""
    return [(ino, escape_path(path)) for ino, path in sorted(paths.items(), key=lambda item: (item[1], item[0]))]
