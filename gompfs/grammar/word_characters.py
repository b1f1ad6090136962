"""The characters of words, for the word rule `letters`."""

from __future__ import annotations

import functools
import sys

_APOSTROPHES = "'\u2019"


def is_word_character(character: str) -> bool:
    """Returns whether a character belongs to a word: a Unicode letter or digit, or an apostrophe."""
    return character.isalnum() or character in _APOSTROPHES


@functools.cache
def word_character_bitmap() -> bytes:
    """Returns a bitmap with one bit per code point, lowest bit first. The bits of word characters are set."""
    bitmap = bytearray(-(-(sys.maxunicode + 1) // 8))
    for code_point in range(sys.maxunicode + 1):
        if is_word_character(chr(code_point)):
            bitmap[code_point // 8] |= 1 << code_point % 8
    return bytes(bitmap)
