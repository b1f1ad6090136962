"""Readable decoder of the section `words` of a segment: the global words and separators, which several parts use.

The words are front-coded in groups of WORD_RESTART. They are checked when the section is read, and decoded one group at
a time, because the decoded words may be 128 times larger than the section.
"""

from __future__ import annotations

import struct

from oracle.constants import WORD_RESTART
from oracle.sequences import PayloadError

_COUNTS = struct.Struct("<II")
SPACE = b" "


class GlobalWords:
    """The words and separators of the section `words`. Heads of parts refer to them by number."""

    def __init__(self, prefix_lengths: bytes, suffixes: list[bytes], separators: list[bytes]) -> None:
        """Raises PayloadError if a word is empty, or shares more than the word before has."""
        self._prefix_lengths = prefix_lengths
        self._suffixes = suffixes
        self.separators = separators
        self._group_number = -1
        self._group: list[bytes] = []
        self.num_bytes = 0  # of all words, without spaces
        size = 0
        for number, (prefix_length, suffix) in enumerate(zip(prefix_lengths, suffixes, strict=True)):
            if prefix_length > (size if number % WORD_RESTART else 0):
                raise PayloadError("a word shares more bytes than the word before it has")
            size = prefix_length + len(suffix)
            if not size:
                raise PayloadError("a word is empty")
            self.num_bytes += size

    @property
    def num_words(self) -> int:
        """The number of words."""
        return len(self._suffixes)

    def word(self, number: int) -> bytes:
        """Returns a word. Raises PayloadError if there is no word of that number."""
        if number >= self.num_words:
            raise PayloadError("there is no global word of that number")
        group_number, index = divmod(number, WORD_RESTART)
        if group_number != self._group_number:
            self._group_number, self._group = group_number, self._decode_group(group_number * WORD_RESTART)
        return self._group[index]

    def separator(self, number: int) -> bytes:
        """Returns a separator. Raises PayloadError if there is no separator of that number."""
        if number >= len(self.separators):
            raise PayloadError("there is no global separator of that number")
        return self.separators[number]

    def _decode_group(self, start: int) -> list[bytes]:
        group: list[bytes] = []
        for number in range(start, min(start + WORD_RESTART, self.num_words)):
            prefix = group[-1][: self._prefix_lengths[number]] if group else b""
            group.append(prefix + self._suffixes[number])
        return group


def read_words(section: bytes) -> GlobalWords:
    """Returns the words and separators of a section `words`. Raises PayloadError if it is invalid."""
    if len(section) < _COUNTS.size:
        raise PayloadError("the section of words ends inside its header")
    num_words, num_separators = _COUNTS.unpack_from(section)
    position = _COUNTS.size + num_words
    if position > len(section):
        raise PayloadError("the section of words ends inside its lengths of prefixes")
    prefix_lengths = section[_COUNTS.size : position]
    suffixes, position = split_words(section, position, num_words)
    lengths_end = position + 2 * num_separators
    if lengths_end > len(section):
        raise PayloadError("the section of words ends inside its lengths of separators")
    lengths = struct.unpack_from(f"<{num_separators}H", section, position)
    separators = cut_separators(section[lengths_end:], lengths)
    return GlobalWords(prefix_lengths, suffixes, separators)


def split_words(text: bytes, position: int, num_words: int) -> tuple[list[bytes], int]:
    """Returns the next `num_words` runs of bytes that end with a space, without that space, and their end in `text`."""
    words = []
    for _ in range(num_words):
        end = text.find(SPACE, position)
        if end < 0:
            raise PayloadError("the text of the words ends inside a word")
        words.append(text[position:end])
        position = end + len(SPACE)
    return words, position


def cut_separators(text: bytes, lengths: tuple[int, ...] | list[int]) -> list[bytes]:
    """Returns separators of these lengths. Raises PayloadError unless they fill `text`, or if one is empty."""
    if sum(lengths) != len(text) or 0 in lengths:
        raise PayloadError("the separators do not fill their text")
    separators = []
    position = 0
    for length in lengths:
        separators.append(text[position : position + length])
        position += length
    return separators
