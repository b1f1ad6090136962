"""Sections that are counted while their bytes still come: nothing is looked at before it is there."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest
from grammars import build, make_text

from gompfs.errors import ArchiveFormatError
from gompfs.grammar import Arrival, CountedWords

GARBAGE = 0xFF


def arriving(section: bytes, arrival: Arrival, rng: random.Random, until: int) -> bytearray:
    """Memory that a thread fills with the section up to a place, bit by bit."""
    content = bytearray([GARBAGE]) * len(section)

    def fill() -> None:
        size = 0
        while size < until:
            more = min(until, size + rng.choice([1, 7, 64, 1000, len(section) // 3 + 1]))
            content[size:more] = section[size:more]
            size = more
            arrival.advance(size)
            time.sleep(rng.choice([0, 0, 0.001]))
        if until < len(section):
            arrival.give_up()

    threading.Thread(target=fill, daemon=True).start()
    return content


@pytest.mark.parametrize("builder", ["repair", "sequitur"])
@pytest.mark.parametrize("seed", range(8))
def test_the_counts_are_the_same(builder: str, seed: int) -> None:
    rng = random.Random(seed)
    files = [(ino, make_text(seed + ino, rng.randrange(1, 40_000))) for ino in range(1, rng.randrange(2, 6))]
    section = build(files, builder)
    expected = CountedWords.from_section(section, {1, 3})
    arrival = Arrival()
    counted = CountedWords.from_section(arriving(section, arrival, rng, len(section)), {1, 3}, arrival)
    assert np.array_equal(counted.counts, expected.counts)
    words = range(expected.grammar.num_words)
    assert [counted.grammar.word(word) for word in words] == [expected.grammar.word(word) for word in words]


@pytest.mark.parametrize("seed", range(8))
def test_the_rest_does_not_come(seed: int) -> None:
    rng = random.Random(seed)
    section = build([(1, make_text(seed, 30_000))])
    arrival = Arrival()
    content = arriving(section, arrival, rng, rng.randrange(len(section)))
    with pytest.raises(ArchiveFormatError, match="the rest of it could not be read"):
        CountedWords.from_section(content, None, arrival)
