"""Generates data whose matches depend on each other to a given depth, and computes the rounds that it needs.

As in the paper, strings of 16 bytes are repeated, alternately with a changed beginning and a changed end. A string has
more in common with its last occurrence than with any older one, so an encoder copies from the last occurrence.
32 / `depth` different strings take turns: with one string, each sequence of a row of 32 depends on the previous
sequence; with 32 strings, none does. Two bytes change where the paper changes one, because the values of one byte
repeat too soon to tell old occurrences apart. A random byte after each string keeps matches from extending into the
next string.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

DEPTHS = (1, 2, 4, 8, 16, 32)
ROW = 32  # sequences that a warp decodes at once
_STRING_SIZE = 16


def make_nested(depth: int, size: int, seed: int = 0) -> bytes:
    """Returns `size` bytes in which rows of 32 sequences need `depth` rounds; `depth` is one of DEPTHS."""
    rng = random.Random(f"{seed} {depth}")
    strings = [bytearray(rng.randbytes(_STRING_SIZE)) for _ in range(ROW // depth)]
    content = bytearray()
    number = 0
    while len(content) < size:
        for string in strings:
            _change(string, number, rng)
            content += string
            content.append(rng.randrange(256))
        number += 1
    return bytes(content[:size])


def _change(string: bytearray, number: int, rng: random.Random) -> None:
    """Changes the beginning or end of a string; the two bytes next to its middle form the same pair once in a block."""
    count = number // 2
    if number % 2 == 0:
        string[:2] = (rng.randrange(256), count % 256)
    else:
        string[-2:] = ((count + count // 256 * 2) % 256, rng.randrange(256))


def resolve_row(row: Sequence[tuple[int, int, int]], start: int) -> list[int]:
    """Returns the bytes that each round of multi-round resolution copies; `row` has up to 32 sequences.

    The output of the row begins at `start`. A round copies a match if all output up to the end of its source was final
    when the round began.
    """
    waiting = []
    for literal_length, match_length, match_offset in row:
        position = start + literal_length
        start = position + match_length
        if match_length:
            waiting.append((position, match_length, position - match_offset + min(match_length, match_offset)))
    rounds = []
    while waiting:
        high_water_mark = waiting[0][0]
        rounds.append(sum(length for _, length, source_end in waiting if source_end <= high_water_mark))
        waiting = [match for match in waiting if match[2] > high_water_mark]
    return rounds


def count_rounds(sequences: Sequence[tuple[int, int, int]]) -> list[list[int]]:
    """Returns the result of resolve_row for each row of a block."""
    counted = []
    start = 0
    for first in range(0, len(sequences), ROW):
        row = sequences[first : first + ROW]
        counted.append(resolve_row(row, start))
        start += sum(literal_length + match_length for literal_length, match_length, _ in row)
    return counted
