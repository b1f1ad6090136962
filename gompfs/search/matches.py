"""The lines that a search finds, as values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from gompfs.search.search import ArchiveSearch


class LineMatch(NamedTuple):
    """A line with matches; with `multi_line`, all lines that a match takes."""

    path: bytes
    line_number: int
    """From 1."""
    offset: int
    """Where the line begins in the file."""
    line: bytes
    """With its line feed, if it has one."""
    spans: list[tuple[int, int]]
    """Where the matches begin and end in `line`."""
    is_context: bool = False
    """It is a line of context, without a match."""


def line_matches(search: ArchiveSearch) -> Iterator[LineMatch]:
    """Yields the matches of a search with Output.JSON. At the end, raises the error of an unreadable file."""
    import json  # here: the command searches without it

    begun: list[bytes] = []  # of a message that goes on in the next piece
    for output in search:
        *ends, begin = output.split(b"\n")
        for end in ends:
            message = b"".join([*begun, end])
            begun.clear()
            if message.startswith((b'{"type":"match"', b'{"type":"context"')):
                yield _line_match(json.loads(message))
        begun.append(begin)
    if search.failures:
        raise search.failures[0]


def _line_match(message: dict[str, Any]) -> LineMatch:
    data = message["data"]
    spans = [(span["start"], span["end"]) for span in data["submatches"]]
    return LineMatch(
        _bytes_of(data["path"]),
        data["line_number"],
        data["absolute_offset"],
        _bytes_of(data["lines"]),
        spans,
        message["type"] == "context",
    )


def _bytes_of(value: dict[str, str]) -> bytes:
    from base64 import b64decode

    return value["text"].encode() if "text" in value else b64decode(value["bytes"])
