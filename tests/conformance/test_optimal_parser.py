"""The levels of gompresso-byte that search for the cheapest sequences: what they write is valid, legal and small."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from payloads import CORPUS, breaks_of_dependency_elimination, decode_natively, encode

from gompfs.codec import Codec
from gompfs.codec.constants import BYTE_MAX_LITERAL_LENGTH, BYTE_MAX_MATCH_LENGTH
from gompfs.codec.reference import decode_payload, read_payload

LEVELS = (6, 7, 8, 9)
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


def check(content: bytes, level: int, dependency_elimination: bool) -> int:
    """The size of the payload, once it proved to be right."""
    codec, payload = encode(content, Codec.GOMPRESSO_BYTE, level, dependency_elimination)
    assert decode_natively(codec, payload, len(content)) == content
    assert decode_payload(codec, payload, len(content)) == content
    if codec is Codec.GOMPRESSO_BYTE and dependency_elimination:
        assert breaks_of_dependency_elimination(read_payload(codec, payload, len(content)), len(content)) == 0
    return len(payload)


@pytest.mark.parametrize("dependency_elimination", [True, False])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CONTENTS)
def test_payloads_are_valid_and_legal(name: str, level: int, dependency_elimination: bool) -> None:
    content = CONTENTS[name]
    assert check(content, level, dependency_elimination) < len(content)


@pytest.mark.parametrize("level", LEVELS)
def test_small_contents(level: int) -> None:
    for size in (*range(1, 40), 262, 263, 289, 290, 551, 600):
        for content in (bytes(size), b"abc" * size, TEXT[:size], random.Random(size).randbytes(size)):
            check(content[:size], level, dependency_elimination=True)
            check(content[:size], level, dependency_elimination=False)


@pytest.mark.parametrize("size", [8191, 8192, 8193, 16385, 65535, 65536, 65537, 1 << 20])
def test_sizes_about_windows_offsets_and_blocks(size: int) -> None:
    rng = random.Random(size)
    pieces = [TEXT, bytes(5000), rng.randbytes(4000), TEXT[::-1], b"ab" * 3000]
    content = b"".join(rng.choices(pieces, k=size // 4000 + 1))
    check(content[-size:], 6, dependency_elimination=True)


def test_noise_takes_full_sequences_of_literals() -> None:
    content = CONTENTS["literals for many sequences"]
    _, payload = encode(content, Codec.GOMPRESSO_BYTE)
    sequences = read_payload(Codec.GOMPRESSO_BYTE, payload, len(content)).sequences
    assert sum(sequence == (BYTE_MAX_LITERAL_LENGTH, 0, 0) for sequence in sequences) >= 3000 // BYTE_MAX_LITERAL_LENGTH


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["zeros", "period 2"])
def test_runs_take_matches_of_full_length(name: str, level: int) -> None:
    content = CONTENTS[name]
    _, payload = encode(content, Codec.GOMPRESSO_BYTE, level)
    num_sequences = len(read_payload(Codec.GOMPRESSO_BYTE, payload, len(content)).sequences)
    assert num_sequences < 1.05 * BLOCK_SIZE / BYTE_MAX_MATCH_LENGTH


def test_each_level_is_smaller_than_the_one_before() -> None:
    sizes = [len(encode(TEXT[:BLOCK_SIZE], Codec.GOMPRESSO_BYTE, level)[1]) for level in (5, *LEVELS)]
    assert all(smaller <= larger for larger, smaller in pairwise(sizes))
    assert sizes[1] < 0.99 * sizes[0]


def test_dependency_elimination_costs_little() -> None:
    content = TEXT[:BLOCK_SIZE]
    free, bound = (len(encode(content, Codec.GOMPRESSO_BYTE, 6, rule)[1]) for rule in (False, True))
    assert bound < 1.01 * free
