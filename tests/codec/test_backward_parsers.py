"""The levels that are parsed backwards, unless a rule limits sources: their output is valid and small."""

from __future__ import annotations

import random

import pytest
from oracle.constants import (
    BIT_MAX_LITERAL_LENGTH,
    BIT_MAX_MATCH_LENGTH,
    BYTE_MAX_LITERAL_LENGTH,
    BYTE_MAX_MATCH_LENGTH,
)
from oracle.payload import read_payload
from payloads import CORPUS, breaks_of_dependency_elimination, decode_natively, encode

from gompfs.codec import Codec

LEVELS = [*((Codec.GOMPRESSO_BYTE, level) for level in (6, 7, 8)), (Codec.GOMPRESSO_BIT, 8)]
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
        "text": TEXT[:BLOCK_SIZE],
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


@pytest.mark.parametrize(("codec", "level"), [(Codec.GOMPRESSO_BYTE, 6), (Codec.GOMPRESSO_BIT, 8)])
@pytest.mark.parametrize(
    "size",
    [8191, 8192, 8193, 16384, 16385, 65535, 65536, 65537, 1 << 18, pytest.param(1 << 20, marks=pytest.mark.slow)],
)
def test_sizes_near_offsets_and_blocks(size: int, codec: Codec, level: int) -> None:
    rng = random.Random(size)
    pieces = [TEXT, bytes(5000), rng.randbytes(4000), TEXT[::-1], b"ab" * 3000]
    content = b"".join(rng.choices(pieces, k=size // 4000 + 1))
    for dependency_elimination in (True, False):
        check(content[-size:], codec, level, dependency_elimination)


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_noise_is_coded_as_full_sequences_of_literals(codec: Codec, level: int) -> None:
    content = CONTENTS["literals for many sequences"]
    _, payload = encode(content, codec, level, dependency_elimination=False)
    sequences = read_payload(codec, payload, len(content)).sequences
    full = MAX_LITERAL_LENGTH[codec]
    assert sum(sequence == (full, 0, 0) for sequence in sequences) >= 3000 // full


@pytest.mark.parametrize(("codec", "level"), LEVELS)
@pytest.mark.parametrize("name", ["zeros", "period 2"])
def test_runs_are_coded_as_long_matches(name: str, codec: Codec, level: int) -> None:
    content = CONTENTS[name]
    _, payload = encode(content, codec, level, dependency_elimination=False)
    num_sequences = len(read_payload(codec, payload, len(content)).sequences)
    assert num_sequences < 1.05 * BLOCK_SIZE / MAX_MATCH_LENGTH[codec]
