"""A grammar section as the numbers it consists of (docs/format.md, section 7), so that each number can be changed."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

_HEADER = struct.Struct("<4sHBBII16s")


@dataclass
class Part:
    """A part. `rules` contain symbols as stored: 2i + 1 for word i, 2k for a rule, 0 for a splitter."""

    continues: int
    num_words: int
    inos: list[int]
    words: list[int]
    rules: list[list[int]]

    def numbers(self) -> list[int]:
        """Returns all numbers of the part in stored order."""
        return [
            self.continues,
            self.num_words,
            len(self.inos),
            *_differences(self.inos),
            len(self.words),
            *_differences(self.words),
            len(self.rules),
            *map(len, self.rules),
            *(symbol for rule in self.rules for symbol in rule),
        ]

    def expanded_size(self) -> int:
        """Returns how many words the root stands for. Invalid rules count as empty."""
        sizes = [0] * len(self.rules)
        for number in range(len(self.rules) - 1, -1, -1):
            for symbol in self.rules[number]:
                rule = len(self.rules) - symbol // 2
                sizes[number] += symbol & 1 or (sizes[rule] if symbol and number < rule < len(sizes) else 0)
        return sizes[0]


@dataclass
class GrammarNumbers:
    """The fields of a section. `numbers` holds the numbers of all parts, or None if `parts` holds them."""

    version: int
    word_rule: int
    builder: int
    num_words: int
    num_parts: int
    reserved: bytes
    prefixes: bytearray
    lengths: list[int]
    rests: bytearray
    parts: list[Part]
    numbers: list[int] | None = None
    sizes: dict[int, int] = field(default_factory=dict)
    """The numbers, by index, that are stored in more bytes than needed, and their sizes in bytes."""

    def to_bytes(self) -> bytes:
        """Returns the section."""
        numbers = [number for part in self.parts for number in part.numbers()] if self.numbers is None else self.numbers
        counts = (self.num_words & 0xFFFFFFFF, self.num_parts & 0xFFFFFFFF)
        head = _HEADER.pack(b"GGRM", self.version & 0xFFFF, self.word_rule, self.builder, *counts, self.reserved)
        coded = b"".join(coded_number(number, self.sizes.get(index, 1)) for index, number in enumerate(numbers))
        return b"".join([head, self.prefixes, *map(coded_number, self.lengths), self.rests, coded])

    def words(self) -> list[bytes]:
        """Returns the words of the dictionary."""
        words, last, start = [], b"", 0
        for prefix, length in zip(self.prefixes, self.lengths, strict=True):
            last = last[:prefix] + bytes(self.rests[start : start + length])
            start += length
            words.append(last)
        return words

    def set_words(self, words: list[bytes]) -> None:
        """Replaces the words of the dictionary."""
        self.num_words, self.prefixes, self.lengths, self.rests = len(words), bytearray(), [], bytearray()
        last = b""
        for word in words:
            shared = 0
            while shared < min(len(word), len(last), 255) and word[shared] == last[shared]:
                shared += 1
            self.prefixes.append(shared)
            self.lengths.append(len(word) - shared)
            self.rests += word[shared:]
            last = word


def read_numbers(section: bytes) -> GrammarNumbers:
    """Returns the numbers of a valid section."""
    _, version, word_rule, builder, num_words, num_parts, reserved = _HEADER.unpack_from(section)
    numbers = _Numbers(section, _HEADER.size + num_words)
    prefixes = bytearray(section[_HEADER.size : numbers.position])
    lengths = numbers.take(num_words)
    end = numbers.position + sum(lengths)
    rests = bytearray(section[numbers.position : end])
    numbers.position = end
    parts = []
    for _ in range(num_parts):
        continues, size = numbers.take(2)
        inos = _sums(numbers.take(numbers.next()))
        words = _sums(numbers.take(numbers.next()))
        parts.append(Part(continues, size, inos, words, [numbers.take(n) for n in numbers.take(numbers.next())]))
    return GrammarNumbers(version, word_rule, builder, num_words, num_parts, reserved, prefixes, lengths, rests, parts)


class _Numbers:
    def __init__(self, section: bytes, position: int) -> None:
        self._section = section
        self.position = position

    def next(self) -> int:
        value = shift = 0
        while True:
            byte = self._section[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, count: int) -> list[int]:
        return [self.next() for _ in range(count)]


def coded_number(value: int, size: int = 1) -> bytes:
    """Returns a number as stored, in `size` bytes or more. A negative number becomes one that is too large."""
    groups = []
    value &= (1 << 77) - 1
    while value or len(groups) < size:
        groups.append(value & 0x7F)
        value >>= 7
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def _differences(values: list[int]) -> list[int]:
    steps = [after - before for before, after in zip([0, *values], values, strict=False)]
    return [2 * step if step >= 0 else -2 * step - 1 for step in steps]


def _sums(differences: list[int]) -> list[int]:
    values, last = [], 0
    for number in differences:
        last += -(number + 1) // 2 if number & 1 else number // 2
        values.append(last)
    return values
