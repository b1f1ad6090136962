"""Blocks framed from payloads that a device made are those of encode_blocks."""

from __future__ import annotations

import random
import struct

import pytest

from gompfs._native import codec as _codec
from gompfs.codec import Codec

BLOCK_SIZE = 1 << 14
STREAM = b"to be, or not to be: that is the question. " * 900 + random.Random(2).randbytes(20_000)
BLOCKS = [STREAM[start : start + BLOCK_SIZE] for start in range(0, len(STREAM), BLOCK_SIZE)]
OPTIONS = (Codec.GOMPRESSO_BIT, 6, False)


def payloads() -> list[bytes]:
    """Returns the payloads of the core; nothing where they are not smaller than the block."""
    encoded = []
    for block in BLOCKS:
        sequences = _codec.parse_sequences(block, *OPTIONS)
        encoded.append(_codec.encode_sequences(block, sequences, Codec.GOMPRESSO_BIT, False))
    return [payload if len(payload) < len(block) else b"" for payload, block in zip(encoded, BLOCKS, strict=True)]


def frame(made: list[bytes], failed: bytes) -> list[tuple[bytes, int, int]]:
    packed = b"".join(payload + bytes(-len(payload) % 16) for payload in made)
    sizes = struct.pack(f"{len(made)}I", *map(len, made))
    return _codec.frame_payloads(STREAM, BLOCK_SIZE, *OPTIONS, 2, packed, sizes, failed)


def test_blocks_are_those_of_the_encoder() -> None:
    made = payloads()
    assert b"" in made
    assert any(made)
    expected = _codec.encode_blocks(STREAM, BLOCK_SIZE, *OPTIONS, 2)
    assert frame(made, bytes(len(made))) == expected
    failed = bytes(index % 2 for index in range(len(made)))
    wrong = [b"?" if is_failed else payload for payload, is_failed in zip(made, failed, strict=True)]
    assert frame(wrong, failed) == expected


def test_impossible_payloads_are_refused() -> None:
    made = payloads()
    with pytest.raises(ValueError, match="each block needs a payload"):
        frame(made[1:], bytes(len(made)))
    with pytest.raises(ValueError, match="each block needs a payload"):
        frame(made, bytes(len(made) - 1))
    with pytest.raises(ValueError, match="impossible size"):
        frame([BLOCKS[0], *made[1:]], bytes(len(made)))
    packed = b"".join(payload + bytes(-len(payload) % 16) for payload in made)[:-20]
    sizes = struct.pack(f"{len(made)}I", *map(len, made))
    with pytest.raises(ValueError, match="impossible size"):
        _codec.frame_payloads(STREAM, BLOCK_SIZE, *OPTIONS, 2, packed, sizes, bytes(len(made)))
