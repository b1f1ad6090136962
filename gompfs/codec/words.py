"""How many bytes the words of a section `words` may have (docs/format.md, section 11)."""

from __future__ import annotations

import struct

_MAX_EXPANSION = 128
_MIN_BYTES = 1 << 20
_COUNTS = struct.Struct("<II")


def max_word_bytes(num_stored: int) -> int:
    """Returns how many bytes all words may have if the payloads of the section's blocks have `num_stored`."""
    return _MAX_EXPANSION * num_stored + _MIN_BYTES


def num_word_bytes(section: bytes) -> int:
    """Returns an upper bound for the bytes of all words of a valid section. It is close to their number."""
    num_words, _ = _COUNTS.unpack_from(section)
    return sum(section[_COUNTS.size : _COUNTS.size + num_words]) + len(section)
