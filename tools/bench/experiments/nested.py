"""Data whose matches depend on each other so deeply as is asked for, and the rounds that they then need.

As in the paper, strings of 16 bytes are repeated, each time with another beginning or, in turn, another end: a string
has more in common with its last occurrence than with any older one, so an encoder copies from that. 32 / `depth` of
them take turns: with one, each sequence of a row of 32 needs the one before; with 32, none does. Two bytes change where
the paper changes one, as one comes back too soon to tell old occurrences apart. A byte of noise behind each string
keeps matches from running on into the next one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

DEPTHS = (1, 2, 4, 8, 16, 32)
ROW = 32  # sequences that a warp decodes together
_STRING_SIZE = 16


def make_nested(depth: int, size: int, seed: int = 0) -> bytes:
    """`size` bytes in which rows of 32 sequences need `depth` rounds; `depth` is one of DEPTHS."""
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
    """Give a string another beginning or end; the two bytes beside its middle are the same pair once in a block."""
    count = number // 2
    if number % 2 == 0:
        string[:2] = (rng.randrange(256), count % 256)
    else:
        string[-2:] = ((count + count // 256 * 2) % 256, rng.randrange(256))


def resolve_row(row: Sequence[tuple[int, int, int]], start: int) -> list[int]:
    """Bytes that each round of multi-round resolution copies; `row` are up to 32 sequences, from output `start` on.

    A match is copied in the first round at whose beginning all matches before its source are done.
    """
    waiting = []
    for literal_length, match_length, match_offset in row:
        place = start + literal_length
        start = place + match_length
        if match_length:
            waiting.append((place, match_length, place - match_offset + min(match_length, match_offset)))
    rounds = []
    while waiting:
        high_water_mark = waiting[0][0]
        rounds.append(sum(length for _, length, source_end in waiting if source_end <= high_water_mark))
        waiting = [match for match in waiting if match[2] > high_water_mark]
    return rounds


def count_rounds(sequences: Sequence[tuple[int, int, int]]) -> list[list[int]]:
    """What resolve_row says of each row of a block."""
    counted = []
    start = 0
    for first in range(0, len(sequences), ROW):
        row = sequences[first : first + ROW]
        counted.append(resolve_row(row, start))
        start += sum(literal_length + match_length for literal_length, match_length, _ in row)
    return counted
