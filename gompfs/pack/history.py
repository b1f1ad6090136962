"""What an archive notes of each generation: its time and command, and a comment of the user."""

from __future__ import annotations

import os
import time

import gompfs
from gompfs.errors import OptionError
from gompfs.model import MAX_COMMENT_SIZE, Generation

_MAX_TIME = 253_402_300_799  # the last second of the year 9999


def note_of(command: str, comment: str) -> Generation:
    """Returns the note of a generation that begins now. The caller replaces its numbers.

    Its time is $SOURCE_DATE_EPOCH, if that is set. Raises OptionError if that is not a number of seconds, or if the
    comment cannot be stored.
    """
    try:
        size = len(comment.encode())
    except UnicodeEncodeError:
        raise OptionError("the comment is not UTF-8") from None
    if size > MAX_COMMENT_SIZE or "\0" in comment:
        raise OptionError(f"a comment has at most {MAX_COMMENT_SIZE} bytes, and no NUL; this one has {size} bytes")
    return Generation(1, _now(), 0, 0, f"gompfs {gompfs.__version__} {command}", comment)


def _now() -> int:
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return int(time.time())
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= _MAX_TIME):
        raise OptionError(f"SOURCE_DATE_EPOCH must be a number of seconds since 1970, not {text!r}")
    return int(text)
