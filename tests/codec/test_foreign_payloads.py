"""Payloads that the encoder never writes: decoders follow the format, not the encoder."""

from __future__ import annotations

import random

import pytest
from oracle.constants import (
    BIT_MAX_LITERAL_LENGTH,
    BIT_MAX_MATCH_LENGTH,
    BIT_MIN_MATCH_LENGTH,
    BIT_PADDING,
    BYTE_MAX_LITERAL_LENGTH,
    BYTE_MAX_MATCH_LENGTH,
    BYTE_MIN_MATCH_LENGTH,
    MAX_GROUP_SIZE_LOG2,
    MIN_GROUP_SIZE_LOG2,
)
from oracle.payload import decode_payload, read_payload
from oracle.sequences import DecodedPayload, PayloadError, Sequence
from payload_builder import build_bit, build_byte
from payloads import CODECS, decode_natively

from gompfs.codec import Codec

NUM_PAYLOADS = 60
LENGTHS = {
    Codec.GOMPRESSO_BYTE: (BYTE_MAX_LITERAL_LENGTH, BYTE_MIN_MATCH_LENGTH, BYTE_MAX_MATCH_LENGTH),
    Codec.GOMPRESSO_BIT: (BIT_MAX_LITERAL_LENGTH, BIT_MIN_MATCH_LENGTH, BIT_MAX_MATCH_LENGTH),
}


def random_payload(codec: Codec, rng: random.Random, num_sequences: int) -> tuple[DecodedPayload, int]:
    """Returns random valid sequences of a block, and its size. Some are empty; lengths are often near the limits."""
    max_literal, min_match, max_match = LENGTHS[codec]
    sequences: list[Sequence] = []
    size = 0
    for _ in range(num_sequences):
        literal_length = rng.choice((0, 0, 1, 2, 5, 6, 7, 8, 15, 16, 17, rng.randint(0, max_literal), max_literal))
        size += literal_length
        offset = match_length = 0
        if size > 0 and rng.random() < 0.8:
            repeated = sequences[-1].match_offset if sequences and rng.random() < 0.3 else 0
            offset = repeated or rng.choice((1, min(size, 15), min(size, 16), rng.randint(1, size), size))
            offset = min(offset, 65535)
            match_length = rng.choice((min_match, min_match + 1, rng.randint(min_match, max_match), max_match))
        size += match_length
        sequences.append(Sequence(literal_length, match_length, offset))
    alphabet = rng.randbytes(rng.choice((1, 2, 20, 200)))
    literals = bytes(rng.choices(alphabet, k=sum(length for length, _, _ in sequences)))
    group_size_log2 = rng.randint(MIN_GROUP_SIZE_LOG2, MAX_GROUP_SIZE_LOG2)
    return DecodedPayload(False, group_size_log2, sequences, literals), size


def build(codec: Codec, decoded: DecodedPayload, rng: random.Random) -> bytes:
    return build_byte(decoded) if codec is Codec.GOMPRESSO_BYTE else build_bit(decoded, rng)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_every_valid_payload_is_decoded(codec: Codec) -> None:
    rng = random.Random(5)
    for number in range(NUM_PAYLOADS):
        decoded, size = random_payload(codec, rng, rng.choice((1, 2, 31, 32, 33, 64, rng.randint(1, 200))))
        if size == 0:
            continue
        payload = build(codec, decoded, rng)
        assert read_payload(codec, payload, size) == decoded, number
        content = decoded.expand(size)
        assert decode_natively(codec, payload, size) == content, number
        assert decode_payload(codec, payload, size) == content, number


def spoil(decoded: DecodedPayload, size: int, rng: random.Random) -> tuple[DecodedPayload, int]:
    """Mostly returns the same with one rule of the sequences broken."""
    sequences, literals = list(decoded.sequences), decoded.literals
    place = rng.randrange(len(sequences))
    kind = rng.randrange(5)
    if kind == 0 and sequences[place].match_length:
        position = sum(literal + match for literal, match, _ in sequences[:place]) + sequences[place].literal_length
        sequences[place] = sequences[place]._replace(match_offset=min(position + rng.choice((1, 2, 40)), 65535))
    elif kind == 1:
        size += rng.choice((-1, 1, 64))
    elif kind == 2:
        literals = literals[:-1] if rng.random() < 0.5 else literals + b"x"
    elif kind == 3:
        del sequences[place]
    else:
        sequences.insert(place, Sequence(3, 0, 0))
    return DecodedPayload(False, decoded.group_size_log2, sequences, literals), max(size, 1)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_invalid_sequences_are_refused(codec: Codec) -> None:
    rng = random.Random(6)
    num_refused = 0
    for number in range(NUM_PAYLOADS):
        decoded, size = spoil(*random_payload(codec, rng, rng.randint(1, 100)), rng)
        payload = build(codec, decoded, rng)
        try:
            verdict: bytes | None = decode_payload(codec, payload, size)
        except PayloadError:
            verdict = None
        assert decode_natively(codec, payload, size) == verdict, number
        num_refused += verdict is None
    assert num_refused > NUM_PAYLOADS / 2


@pytest.mark.parametrize("num_empty", [3, 4, 5])
def test_empty_sequences_are_limited(num_empty: int) -> None:
    """In gompresso-bit, a block of n bytes has at most n + 2 ** group_size_log2 sequences."""
    sequences = [Sequence(1, 0, 0)] * 20 + [Sequence(0, 0, 0)] * num_empty
    payload = build_bit(DecodedPayload(False, 2, sequences, bytes(range(20))), random.Random(7))
    expected = bytes(range(20)) if num_empty <= 4 else None
    assert decode_natively(Codec.GOMPRESSO_BIT, payload, 20) == expected
    if expected is None:
        with pytest.raises(PayloadError, match="more items"):
            decode_payload(Codec.GOMPRESSO_BIT, payload, 20)
    else:
        assert decode_payload(Codec.GOMPRESSO_BIT, payload, 20) == expected


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_unused_fields_are_ignored(codec: Codec) -> None:
    """Decoders ignore a flag that promises dependency elimination, and in gompresso-bit the bytes after the stream."""
    rng = random.Random(8)
    decoded, size = random_payload(codec, rng, 100)
    promised = DecodedPayload(True, decoded.group_size_log2, decoded.sequences, decoded.literals)
    payload = build(codec, promised, rng)
    if codec is Codec.GOMPRESSO_BIT:
        payload = payload[:-BIT_PADDING] + bytes([255] * BIT_PADDING)
    assert decode_natively(codec, payload, size) == decoded.expand(size)
    assert decode_payload(codec, payload, size) == decoded.expand(size)
