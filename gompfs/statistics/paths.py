r"""Paths as fields of the lines of statistics, in which a tab separates fields and a newline ends a line."""

from __future__ import annotations

from collections.abc import Mapping


def escape_path(path: bytes) -> bytes:
    r"""Returns a path as a field of a line: backslash, tab and newline become `\\`, `\t` and `\n`; other bytes stay."""
    return path.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n")


def unescape_path(field: bytes) -> bytes:
    """Returns the path that `escape_path` has written as this field."""
    parts = field.split(b"\\\\")
    return b"\\".join(part.replace(b"\\t", b"\t").replace(b"\\n", b"\n") for part in parts)


def files_in_order(paths: Mapping[int, bytes]) -> list[tuple[int, bytes]]:
    """Returns the files as `_native.statistics.Corpus` takes them: sorted by path in byte order, with escaped paths."""
    return [(ino, escape_path(path)) for ino, path in sorted(paths.items(), key=lambda item: (item[1], item[0]))]
