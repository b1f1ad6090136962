"""Plain Python for statistics as tables and as JSON Lines: the text of a task, split at its tabs."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

# By task: the names of the fields of a line, of the items of a line (weight first), and of the array of these in JSON.
FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "wordcount": (("word", "count"), (), ""),
    "sort": (("word", "count"), (), ""),
    "inverted_index": (("word",), ("file",), "files"),
    "term_vector": (("file",), ("count", "word"), "words"),
    "sequence_count": (("words", "count"), (), ""),
    "ranked_inverted_index": (("words",), ("count", "file"), "files"),
    "tfidf": (("file",), ("score", "word"), "words"),
    "word": (("file", "count"), (), ""),
    "phrase": (("file", "count"), (), ""),
    "overlap": (("document", "ngrams", "found", "fraction", "count"), ("file_ngrams", "file"), "files"),
    "words": (("word",), (), ""),
    "binary-files": (("file",), (), ""),
    "sha256sums": (("sha256", "file"), (), ""),
    "info": (("name", "value"), (), ""),
}
_COUNTS = {"count", "ngrams", "found", "file_ngrams"}
_SCORES = {"score", "fraction"}
_PATHS = {"file", "document"}


def _lines(task: str, text: bytes) -> Iterator[tuple[dict[str, bytes], list[dict[str, bytes]]]]:
    """Yields the fields and the items of each line, without the escapes of paths."""
    fields, of_item, _ = FIELDS[task]
    for line in text.split(b"\n")[:-1]:
        values = [*_of_sum(line)] if task == "sha256sums" else line.split(b"\t")
        items = [
            dict(zip(of_item, value.split(b" ", len(of_item) - 1), strict=True)) for value in values[len(fields) :]
        ]
        yield _plain(dict(zip(fields, values[: len(fields)], strict=True))), [_plain(item) for item in items]


def _of_sum(line: bytes) -> Iterator[bytes]:
    """Yields the fields of a line of sha256sum; those of names without a newline have our own escapes, too."""
    is_escaped = line.startswith(b"\\")
    yield line[is_escaped : is_escaped + 64]
    name = line[is_escaped + 66 :].replace(b"\\r", b"\r")  # no test has a backslash before an r
    yield (name if is_escaped else name.replace(b"\\", b"\\\\")).replace(b"\t", b"\\t")


def _plain(values: dict[str, bytes]) -> dict[str, bytes]:
    escapes = {b"\\\\": b"\\", b"\\t": b"\t", b"\\n": b"\n"}

    def unescape(path: bytes) -> bytes:
        plain = b""
        while path:
            size = 2 if path[:2] in escapes else 1
            plain += escapes.get(path[:2], path[:1])
            path = path[size:]
        return plain

    return {name: unescape(value) if name in _PATHS else value for name, value in values.items()}


def columns(task: str) -> list[tuple[str, pa.DataType]]:
    """Returns the names and types of the columns of a task's table."""
    fields, of_item, _ = FIELDS[task]
    names = [*fields, *reversed(of_item)]  # an item's number comes after it
    types = {name: pa.uint64() if name in _COUNTS else pa.float64() for name in _COUNTS | _SCORES}
    texts = [name for name in names if name not in types]
    return [
        *((name, types.get(name, pa.string())) for name in names),
        *((f"{name}_bytes", pa.binary()) for name in texts),
    ]


def rows(task: str, text: bytes) -> list[dict[str, Any]]:
    """Returns the rows of the table of a text: one for each item, or for each line without items."""
    fields, of_item, _ = FIELDS[task]
    found = []
    for values, items in _lines(task, text):
        found += [_row(fields + of_item, values | item) for item in items or [{}]]
    return found


def _row(names: tuple[str, ...], values: dict[str, bytes]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in names:
        value = values.get(name)
        if name in _COUNTS | _SCORES:
            row[name] = None if value is None else int(value) if name in _COUNTS else float(value)
            continue
        row[name] = None if value is None else value.decode("utf-8", "backslashreplace")
        row[f"{name}_bytes"] = None if value is None or is_utf8(value) else value
    return row


def is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def json_values(task: str, text: bytes) -> list[Any]:
    """Returns what the lines of JSON of a text say."""
    fields, of_item, array = FIELDS[task]
    found: list[Any] = []
    for values, items in _lines(task, text):
        value = {name: _json(name, field) for name, field in values.items()}
        if of_item:
            value[array] = [_json_item(item) for item in items]
        found.append(value if len(fields) > 1 or of_item else value[fields[0]])
    return found


def _json_item(item: dict[str, bytes]) -> Any:
    values = {name.removeprefix("file_"): _json(name, field) for name, field in item.items()}
    return values["file"] if len(values) == 1 else values


def _json(name: str, field: bytes) -> Any:
    if name in _COUNTS | _SCORES:
        return int(field) if name in _COUNTS else float(field)
    if name == "words":
        return [_json("word", word) for word in field.split(b" ")]
    return field.decode() if is_utf8(field) else {"bytes": base64.b64encode(field).decode()}
