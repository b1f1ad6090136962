"""Which characters words are made of, for the word rule `letters`."""

from __future__ import annotations

import functools
import sys

_APOSTROPHES = "'\u2019"


def is_word_character(character: str) -> bool:
    """Whether a character belongs to a word: a Unicode letter or digit, or an apostrophe."""
    return character.isalnum() or character in _APOSTROPHES


@functools.cache
def word_character_bitmap() -> bytes:
    """A bit per code point, lowest bit first, set for the characters of words."""
    bitmap = bytearray(-(-(sys.maxunicode + 1) // 8))
    for code_point in range(sys.maxunicode + 1):
        if is_word_character(chr(code_point)):
            bitmap[code_point // 8] |= 1 << code_point % 8
    return bytes(bitmap)
