"""What parsers promise at every level: the block alone decides the bytes, and higher levels are smaller."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from oracle.payload import read_payload
from payloads import CODECS, CORPUS, breaks_of_dependency_elimination, decode_natively, encode

from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.codec.codecs import MAX_LEVEL, MIN_LEVEL
from gompfs.engine import select_engine

LEVELS = range(MIN_LEVEL, MAX_LEVEL + 1)
TEXT = (CORPUS / "carroll" / "alice29.txt").read_bytes()
NARROW = 1 << 16  # the largest block whose positions have 16 bits
PIECE = 1 << 14

every_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
every_level = pytest.mark.parametrize("level", LEVELS)


@pytest.mark.parametrize("dependency_elimination", [True, False])
@every_level
@every_codec
def test_the_block_alone_decides_the_bytes(codec: Codec, level: int, dependency_elimination: bool) -> None:
    rng = random.Random(level)
    pieces = [TEXT[:PIECE], rng.randbytes(PIECE), bytes(PIECE), TEXT[PIECE : 2 * PIECE], b"abc" * (PIECE // 3 + 1)]
    pieces = [piece[:PIECE] for piece in pieces]
    options = CodecOptions(codec, level, dependency_elimination)

    def payloads(order: list[int], num_threads: int) -> dict[int, bytes]:
        stream = b"".join(pieces[index] for index in order)
        blocks = select_engine("cpu", num_threads).encode_blocks(stream, PIECE, options)
        return {index: block.data for index, block in zip(order, blocks, strict=True)}

    first = payloads([0, 1, 2, 3, 4], 1)
    assert payloads([4, 2, 0, 3, 1], 1) == first
    assert payloads([3, 1, 4, 0, 2], 4) == first


@pytest.mark.parametrize("dependency_elimination", [True, False])
@every_codec
def test_each_level_is_smaller_than_the_one_below(codec: Codec, dependency_elimination: bool) -> None:
    sizes = [len(encode(TEXT[:NARROW], codec, level, dependency_elimination)[1]) for level in LEVELS]
    assert all(smaller <= larger for larger, smaller in pairwise(sizes))
    assert sizes[-1] < (0.95 if dependency_elimination else 0.9) * sizes[0]


@pytest.mark.parametrize("dependency_elimination", [True, False])
@pytest.mark.parametrize("size", [NARROW - 1, NARROW, NARROW + 1, 3 * NARROW])
@pytest.mark.parametrize("level", [1, 3, 6, 8])
@every_codec
def test_narrow_and_wide_positions(codec: Codec, level: int, size: int, dependency_elimination: bool) -> None:
    content = (TEXT + TEXT[::-1] + TEXT[5000:])[: size - 40] + bytes(40)
    coded_as, payload = encode(content, codec, level, dependency_elimination)
    assert coded_as is codec
    assert decode_natively(codec, payload, size) == content
    if dependency_elimination:
        assert breaks_of_dependency_elimination(read_payload(codec, payload, size), size) == 0


@pytest.mark.parametrize("level", [2, 4, 6])
def test_records_of_a_few_bytes_are_found(level: int) -> None:
    content = b"".join(number.to_bytes(4, "little") for number in range(NARROW // 4))
    for dependency_elimination in (True, False):
        _, payload = encode(content, Codec.GOMPRESSO_BIT, level, dependency_elimination)
        assert len(payload) < NARROW // 2


@every_level
@every_codec
def test_noise_is_stored(codec: Codec, level: int) -> None:
    noise = random.Random(3).randbytes(PIECE)
    coded_as, payload = encode(noise, codec, level, dependency_elimination=False)
    assert coded_as is Codec.STORED
    assert payload == noise


def test_stored_blocks_are_32_bytes_larger() -> None:
    noise = random.Random(4).randbytes(PIECE)
    (block,) = select_engine("cpu", 1).encode_blocks(noise, PIECE, CodecOptions())
    assert len(block.data) == PIECE + BLOCK_HEADER_SIZE
