"""The levels that search for the cheapest sequences: their output is valid, keeps its guarantees, and is small."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from payloads import CORPUS, breaks_of_dependency_elimination, decode_natively, encode

from gompfs.codec import Codec
from gompfs.codec.constants import (
    BIT_MAX_LITERAL_LENGTH,
    BIT_MAX_MATCH_LENGTH,
    BYTE_MAX_LITERAL_LENGTH,
    BYTE_MAX_MATCH_LENGTH,
)
from gompfs.codec.reference import read_payload

LEVELS = [*((Codec.GOMPRESSO_BYTE, level) for level in (6, 7, 8, 9)), (Codec.GOMPRESSO_BIT, 9)]
MAX_LITERAL_LENGTH = {Codec.GOMPRESSO_BYTE: BYTE_MAX_LITERAL_LENGTH, Codec.GOMPRESSO_BIT: BIT_MAX_LITERAL_LENGTH}
MAX_MATCH_LENGTH = {Codec.GOMPRESSO_BYTE: BYTE_MAX_MATCH_LENGTH, Codec.GOMPRESSO_BIT: BIT_MAX_MATCH_LENGTH}
BLOCK_SIZE = 1 << 16
TEXT = (CORPUS / "carroll" / "alice29.txt").read_bytes()


def contents() -> dict[str, bytes]:
    rng = random.Random(11)
    noise = rng.randbytes(3000)
    return {
        "zeros": bytes(BLOCK_SIZE),
        "period 2": b"ab" * (BLOCK_SIZE // 2),
        "period 33": rng.randbytes(33) * 600,
        "runs and noise": b"".join(rng.randbytes(rng.randint(1, 300)) + bytes(rng.randint(1, 600)) for _ in range(90)),
        "short runs": b"".join(bytes([rng.randint(97, 99)]) * rng.randint(1, 40) for _ in range(2000)),
        "text, several windows long": TEXT[:BLOCK_SIZE],
        "literals for many sequences": noise + noise[:2000] + TEXT[:500] + noise,
        "half noise": TEXT[:8000] + rng.randbytes(9000) + TEXT[4000:12000],
        "two letters": bytes(rng.choices(b"ab", k=20000)),
        "records": b"".join(b"%06d;%d;%s\n" % (n, rng.randint(0, 1), TEXT[n : n + n % 7]) for n in range(1500)),
    }


CONTENTS = contents()


def check(content: bytes, codec: Codec, level: int, dependency_elimination: bool) -> int:
    """Returns the size of the payload after checking that it is correct."""
    coded_as, payload = encode(content, codec, level, dependency_elimination)
    assert decode_natively(coded_as, payload, len(content)) == content
    if coded_as is Codec.STORED:
        assert payload == content
        return len(payload)
    read = read_payload(coded_as, payload, len(content))
    assert read.expand(len(content)) == content
    if dependency_elimination:
        assert breaks_of_dependency_elimination(read, len(content)) == 0
    return len(payload)


@pytest.mark.parametrize("dependency_elimination", [True, False])
@pytest.mark.parametrize(("codec", "level"), LEVELS)
@pytest.mark.parametrize("name", CONTENTS)
def test_payloads_are_valid_and_legal(name: str, codec: Codec, level: int, dependency_elimination: bool) -> None:
    content = CONTENTS[name]
    assert check(content, codec, level, dependency_elimination) < len(content)


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_small_contents(codec: Codec, level: int) -> None:
    for size in (*range(1, 40), 262, 263, 266, 267, 289, 290, 426, 427, 533, 551, 600):
        for content in (bytes(size), b"abc" * size, TEXT[:size], random.Random(size).randbytes(size)):
            check(content[:size], codec, level, dependency_elimination=True)
            check(content[:size], codec, level, dependency_elimination=False)


@pytest.mark.parametrize(("codec", "level"), [(Codec.GOMPRESSO_BYTE, 6), (Codec.GOMPRESSO_BIT, 9)])
@pytest.mark.parametrize(
    "size",
    [8191, 8192, 8193, 16384, 16385, 65535, 65536, 65537, 1 << 18, pytest.param(1 << 20, marks=pytest.mark.slow)],
)
def test_sizes_near_windows_offsets_and_blocks(size: int, codec: Codec, level: int) -> None:
    rng = random.Random(size)
    pieces = [TEXT, bytes(5000), rng.randbytes(4000), TEXT[::-1], b"ab" * 3000]
    content = b"".join(rng.choices(pieces, k=size // 4000 + 1))
    check(content[-size:], codec, level, dependency_elimination=True)


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_noise_is_coded_as_full_sequences_of_literals(codec: Codec, level: int) -> None:
    content = CONTENTS["literals for many sequences"]
    _, payload = encode(content, codec, level)
    sequences = read_payload(codec, payload, len(content)).sequences
    full = MAX_LITERAL_LENGTH[codec]
    assert sum(sequence == (full, 0, 0) for sequence in sequences) >= 3000 // full


@pytest.mark.parametrize(("codec", "level"), LEVELS)
@pytest.mark.parametrize("name", ["zeros", "period 2"])
def test_runs_are_coded_as_long_matches(name: str, codec: Codec, level: int) -> None:
    content = CONTENTS[name]
    _, payload = encode(content, codec, level)
    num_sequences = len(read_payload(codec, payload, len(content)).sequences)
    # gompresso-bit minimises bits, not sequences: some sequences end early so that the next match is permitted.
    most = 1.05 if codec is Codec.GOMPRESSO_BYTE else 1.4
    assert num_sequences < most * BLOCK_SIZE / MAX_MATCH_LENGTH[codec]


@pytest.mark.parametrize(
    ("codec", "levels", "gain"), [(Codec.GOMPRESSO_BYTE, (5, 6, 7, 8, 9), 0.01), (Codec.GOMPRESSO_BIT, (8, 9), 0.025)]
)
def test_each_level_is_smaller_than_the_one_before(codec: Codec, levels: tuple[int, ...], gain: float) -> None:
    sizes = [len(encode(TEXT[:BLOCK_SIZE], codec, level)[1]) for level in levels]
    assert all(smaller <= larger for larger, smaller in pairwise(sizes))
    assert sizes[1] < (1 - gain) * sizes[0]


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_dependency_elimination_costs_little(codec: Codec, level: int) -> None:
    content = TEXT[:BLOCK_SIZE]
    free, bound = (len(encode(content, codec, level, rule)[1]) for rule in (False, True))
    assert bound < 1.01 * free
