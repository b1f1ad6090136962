"""Damaged payloads: all decoders agree on each of them, and never read or write out of bounds."""

from __future__ import annotations

import random

import pytest
from mutations import mutate
from oracle.constants import BIT_HEADER_SIZE, BYTE_HEADER_SIZE
from oracle.payload import PayloadError, decode_payload
from payloads import CODECS, CORPUS, decode_natively, encode

from gompfs.codec import Codec

NUM_MUTATIONS = 200
HEADER_SIZES = {Codec.GOMPRESSO_BYTE: BYTE_HEADER_SIZE, Codec.GOMPRESSO_BIT: BIT_HEADER_SIZE}
UNUSED_BY_DECODERS = (0, 1)
"""Offsets of the flags and the group size, which a decoder that copies in order does not need."""


def small_contents() -> list[bytes]:
    rng = random.Random(2)
    text = (CORPUS / "shakespeare" / "asyoulik.txt").read_bytes()
    words = [rng.randbytes(rng.randint(2, 9)) for _ in range(12)]
    return [text[:1500], b"".join(rng.choices(words, k=200)), bytes(600) + text[:300], text[:40] * 12]


def reference_verdict(codec: Codec, payload: bytes, size: int) -> bytes | None:
    try:
        return decode_payload(codec, payload, size)
    except PayloadError:
        return None


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_decoders_agree_on_damage(codec: Codec) -> None:
    rng = random.Random(3)
    num_refused = 0
    for content in small_contents():
        coded_as, payload = encode(content, codec)
        assert coded_as is codec
        for _ in range(NUM_MUTATIONS // 4):
            damaged = mutate(payload, rng)
            verdict = decode_natively(codec, damaged, len(content))
            assert verdict == reference_verdict(codec, damaged, len(content)), damaged.hex()
            num_refused += verdict is None
    assert num_refused > NUM_MUTATIONS / 4


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_every_truncation_is_refused(codec: Codec) -> None:
    content = small_contents()[0]
    _, payload = encode(content, codec)
    for size in range(len(payload)):
        assert decode_natively(codec, payload[:size], len(content)) is None
        assert reference_verdict(codec, payload[:size], len(content)) is None


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_decoders_agree_on_every_header_field(codec: Codec) -> None:
    content = small_contents()[0]
    _, payload = encode(content, codec)
    fields = [(place, 1) for place in range(4)] + [(place, 4) for place in range(4, HEADER_SIZES[codec], 4)]
    for place, size in fields:
        value = int.from_bytes(payload[place : place + size], "little")
        largest = (1 << 8 * size) - 1
        for other in {0, 1, 2, 3, 5, 6, 24, 25, value - 1, value + 1, largest // 2, largest} - {value, -1}:
            damaged = payload[:place] + other.to_bytes(size, "little") + payload[place + size :]
            verdict = decode_natively(codec, damaged, len(content))
            assert verdict == reference_verdict(codec, damaged, len(content)), (place, other)
            if place not in UNUSED_BY_DECODERS:
                assert verdict is None, (place, other)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_a_wrong_size_is_refused(codec: Codec) -> None:
    content = small_contents()[0]
    _, payload = encode(content, codec)
    for size in (1, len(content) - 1, len(content) + 1, 65536):
        assert decode_natively(codec, payload, size) is None
        assert reference_verdict(codec, payload, size) is None


def test_missing_code_lengths_are_not_those_of_the_block_before() -> None:
    content = small_contents()[0]
    _, intact = encode(content, Codec.GOMPRESSO_BIT)
    size = int.from_bytes(intact[20:24], "little")
    without_codes = intact[:20] + bytes(4) + intact[24 + size :]
    # Refused after its code lengths were read, so that they stay in the decoder's memory.
    refused = intact[:12] + b"\xff" * 4 + intact[16:]
    assert decode_natively(Codec.GOMPRESSO_BIT, refused, len(content)) is None
    assert decode_natively(Codec.GOMPRESSO_BIT, without_codes, len(content)) is None
