"""Tells text from binary files, which have no words."""

from __future__ import annotations

PROBE_SIZE = 8192


def is_text(head: bytes | memoryview) -> bool:
    """Returns whether a file that begins with `head` is text: no NUL in its first 8 KiB."""
    return b"\0" not in bytes(head[:PROBE_SIZE])
