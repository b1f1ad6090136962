"""Converts the lines of the statistics to Python values, as `gompfs stats --json` prints them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gompfs.statistics.traversal import unescape_path

_REPEATED_FACT = "binary_file"


def records(kind: str, text: Iterable[bytes]) -> Iterator[Any]:
    """Yields one value per line of `text`, which is an iterable of pieces of whole lines.

    `kind` is a task, `info`, `word`, `phrase` or `words`. The values are dicts. For `words` they are strings, and for
    `info` there is a single dict.
    """
    if kind == "info":
        yield _facts(b"".join(text))
        return
    parse = _PARSERS[kind]
    for piece in text:
        yield from map(parse, piece.split(b"\n")[:-1])


def _facts(content: bytes) -> dict[str, Any]:
    """Returns the content of the file `info` as a dict: numbers become int, and the binary files a list."""
    facts: dict[str, Any] = {f"{_REPEATED_FACT}s": []}
    for line in content.decode().splitlines():
        name, _, value = line.partition("\t")
        if name == _REPEATED_FACT:
            facts[f"{_REPEATED_FACT}s"].append(value)
        else:
            facts[name] = int(value) if value.isdecimal() else value
    return facts


def _word_count(line: bytes) -> dict[str, Any]:
    word, _, count = line.rpartition(b"\t")
    return {"word": os.fsdecode(word), "count": int(count)}


def _inverted_index(line: bytes) -> dict[str, Any]:
    word, *paths = line.split(b"\t")
    return {"word": os.fsdecode(word), "files": [_path(path) for path in paths]}


def _term_vector(line: bytes) -> dict[str, Any]:
    path, *fields = line.split(b"\t")
    counted = (field.split(b" ", 1) for field in fields)
    return {
        "file": _path(path),
        "words": [{"word": os.fsdecode(word), "count": int(count)} for count, word in counted],
    }


def _sequence_count(line: bytes) -> dict[str, Any]:
    words, _, count = line.rpartition(b"\t")
    return {"words": os.fsdecode(words).split(" "), "count": int(count)}


def _ranked_inverted_index(line: bytes) -> dict[str, Any]:
    words, *fields = line.split(b"\t")
    counted = (field.split(b" ", 1) for field in fields)
    return {
        "words": os.fsdecode(words).split(" "),
        "files": [{"file": _path(path), "count": int(count)} for count, path in counted],
    }


def _tfidf(line: bytes) -> dict[str, Any]:
    path, *fields = line.split(b"\t")
    scored = (field.split(b" ", 1) for field in fields)
    words = [{"word": os.fsdecode(word), "score": float(score)} for score, word in scored]
    return {"file": _path(path), "words": words}


def _found(line: bytes) -> dict[str, Any]:
    path, _, count = line.rpartition(b"\t")
    return {"file": _path(path), "count": int(count)}


def _path(field: bytes) -> str:
    return os.fsdecode(unescape_path(field))


_PARSERS: dict[str, Callable[[bytes], Any]] = {
    "inverted_index": _inverted_index,
    "phrase": _found,
    "ranked_inverted_index": _ranked_inverted_index,
    "sequence_count": _sequence_count,
    "sort": _word_count,
    "term_vector": _term_vector,
    "tfidf": _tfidf,
    "word": _found,
    "wordcount": _word_count,
    "words": os.fsdecode,
}
