"""The word rules. `letters` needs a list of the characters of words, which depends on the version of Unicode."""

from __future__ import annotations

import functools
import sys

from gompfs._native.text import WordRule

WORD_RULE_KINDS = {rule.name.lower(): rule for rule in WordRule}
"""The word rules by name: WORD_RULES."""
_APOSTROPHES = "'\u2019"


def is_word_character(character: str) -> bool:
    """Returns whether a character belongs to a word: a Unicode letter or digit, or an apostrophe."""
    return character.isalnum() or character in _APOSTROPHES


def word_characters(word_rule: str) -> bytes:
    """Returns what the C++ core and the kernels need besides the rule: for `letters` a bitmap, else no bytes."""
    return word_character_bitmap() if word_rule == "letters" else b""


@functools.cache
def word_character_bitmap() -> bytes:
    """Returns a bitmap with one bit per code point, lowest bit first. The bits of word characters are set."""
    bitmap = bytearray(-(-(sys.maxunicode + 1) // 8))
    for code_point in range(sys.maxunicode + 1):
        if is_word_character(chr(code_point)):
            bitmap[code_point // 8] |= 1 << code_point % 8
    return bytes(bitmap)
