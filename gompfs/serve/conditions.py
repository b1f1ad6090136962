"""The headers of HTTP requests that say which bytes are wanted, and under which conditions (RFC 9110)."""

from __future__ import annotations

import re
from email.utils import formatdate, parsedate_to_datetime

_RANGE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")
_END_OF_YEAR_9999 = 253402300799


class UnsatisfiableRangeError(Exception):
    """A range that begins after the end of the content."""


def wanted_range(header: str | None, size: int) -> range | None:
    """Returns the one range of bytes that a header asks for, or None for the whole content.

    None also stands for headers that are not understood and for several ranges: a server may ignore these. Raises
    UnsatisfiableRangeError.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match.groups()
    if first and last and int(first) > int(last):
        return None
    if first:
        wanted = range(int(first), min(int(last) + 1, size) if last else size)
    else:
        wanted = range(max(size - int(last), 0), size)
    if not wanted:
        raise UnsatisfiableRangeError
    return wanted


def http_date(seconds: int, now: float) -> str | None:
    """Returns a time as HTTP writes it, or None if it is in the future or HTTP cannot write it."""
    return formatdate(seconds, usegmt=True) if 0 <= seconds <= min(now, _END_OF_YEAR_9999) else None


def matches(header: str | None, etag: str | None) -> bool:
    """Returns whether the entity tags of If-Match or If-None-Match have `etag`, or stand for any content."""
    tags = [tag.strip() for tag in (header or "").split(",")]
    return "*" in tags or (etag is not None and (etag in tags or f"W/{etag}" in tags))


def is_unchanged_since(header: str | None, seconds: int) -> bool:
    """Returns whether content of this time is not newer than the date in If-Modified-Since."""
    try:
        return header is not None and seconds <= parsedate_to_datetime(header).timestamp()
    except (ValueError, OverflowError):
        return False


def has_version(header: str | None, etag: str | None, modified: str | None) -> bool:
    """Returns whether If-Range names this content, so that the range is wanted. Without the header, it is."""
    return header is None or header.strip() in (etag, modified)
