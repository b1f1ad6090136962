"""Documents to compare with an archive: files, and the lines of JSON Lines files, also compressed with gzip."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, cast

from gompfs.errors import OptionError, display_path

_JSON_LINES = (".jsonl", ".ndjson")
_GZIP = ".gz"
DEFAULT_FIELD = "text"
"""The field of a line of a JSON Lines file that usually has the text."""


class Document(NamedTuple):
    """A text with a name: the path of a file, or `path:line` for a line of a JSON Lines file."""

    name: bytes
    text: bytes


def read_documents(paths: Iterable[str], fields: Sequence[str] = (DEFAULT_FIELD,)) -> Iterator[Document]:
    """Yields the documents of files. A line of a JSON Lines file is one, with the text of its `fields`.

    Files whose names end in .jsonl or .ndjson are JSON Lines; .gz may follow. Raises OptionError for a line that is not
    an object with these fields, and OSError.
    """
    for path in paths:
        name = os.fsencode(path)
        stem = path.removesuffix(_GZIP)
        with _opened(path) as file:
            if not stem.endswith(_JSON_LINES):
                yield Document(name, file.read())
                continue
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield Document(b"%s:%d" % (name, number), _text_of_line(line, fields, f"{path}:{number}"))


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if not path.endswith(_GZIP):
        with open(path, "rb") as file:
            yield file
        return
    import gzip
    import zlib

    try:
        with gzip.open(path) as file:
            yield cast("BinaryIO", file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise OptionError(f"{display_path(path)}: damaged gzip file: {error}") from None


def _text_of_line(line: bytes, fields: Sequence[str], place: str) -> bytes:
    import json

    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{display_path(place)}: not a line of JSON: {error}") from None
    texts = [_text_of_field(record, field, place) for field in fields]
    # A lone surrogate stands for no character.
    return "\n".join(texts).encode(errors="replace")


def _text_of_field(record: Any, field: str, place: str) -> str:
    """Returns the text of a field: a string, or an array of strings, one after another."""
    value = record.get(field) if isinstance(record, dict) else None
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise OptionError(f"{display_path(place)}: there is no text in the field {field!r}")
    return value
