"""Whole blocks through all engines: each gives the same bytes and the same status, for intact and damaged blocks."""

from __future__ import annotations

import random

import pytest
from payloads import CODECS, contents

from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, CodecOptions, build_block
from gompfs.engine import Engine, select_engine

CONTENTS = contents()
BLOCK_SIZE = 1 << 14
ENGINES = ("cpu", "reference")


def make_blocks(codec: Codec) -> tuple[bytes, list[bytes]]:
    """Returns a stream and its blocks. The last block is short, and one block is stored."""
    stream = CONTENTS["text"][: 2 * BLOCK_SIZE] + random.Random(4).randbytes(BLOCK_SIZE) + CONTENTS["period 3"]
    blocks = select_engine("cpu", 2).encode_blocks(stream, BLOCK_SIZE, CodecOptions(codec))
    assert [block.codec for block in blocks] == [codec, codec, Codec.STORED, codec]
    return stream, [block.data for block in blocks]


def decode(name: str, blocks: list[bytes], size: int, *, verify: bool = False) -> tuple[bytes, list[BlockStatus]]:
    engine: Engine = select_engine(name, 2)
    out = bytearray(b"\xaa" * size)
    statuses = engine.decode_blocks(blocks, memoryview(out), verify=verify)
    return bytes(out), statuses


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_a_batch_is_decoded(codec: Codec, name: str, verify: bool) -> None:
    stream, blocks = make_blocks(codec)
    assert decode(name, blocks, len(stream), verify=verify) == (stream, [BlockStatus.OK] * len(blocks))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_damage_stays_in_its_block(codec: Codec, name: str) -> None:
    stream, blocks = make_blocks(codec)
    intact = blocks[1]
    wrong_payload = intact[BLOCK_HEADER_SIZE : BLOCK_HEADER_SIZE + 500]
    other_content = bytes([stream[BLOCK_SIZE] ^ 1]) + stream[BLOCK_SIZE + 1 : 2 * BLOCK_SIZE]
    cases = {
        BlockStatus.BAD_CHECKSUM: intact[:100] + bytes([intact[100] ^ 1]) + intact[101:],
        BlockStatus.BAD_HEADER: intact[:-1],
        BlockStatus.BAD_PAYLOAD: build_block(codec, wrong_payload, stream[BLOCK_SIZE : 2 * BLOCK_SIZE]).data,
        BlockStatus.BAD_CONTENT: build_block(codec, intact[BLOCK_HEADER_SIZE:], other_content).data,
    }
    expected = stream[:BLOCK_SIZE] + bytes(BLOCK_SIZE) + stream[2 * BLOCK_SIZE :]
    for status, damaged in cases.items():
        out, statuses = decode(name, [blocks[0], damaged, *blocks[2:]], len(stream), verify=True)
        assert statuses == [BlockStatus.OK, status, BlockStatus.OK, BlockStatus.OK]
        assert out == expected


@pytest.mark.parametrize("name", ENGINES)
def test_a_block_with_an_unreadable_header_has_no_output(name: str) -> None:
    stream, blocks = make_blocks(Codec.GOMPRESSO_BIT)
    out, statuses = decode(name, [blocks[0], b"GBLK", blocks[1]], 2 * BLOCK_SIZE)
    assert statuses == [BlockStatus.OK, BlockStatus.BAD_HEADER, BlockStatus.OK]
    assert out == stream[: 2 * BLOCK_SIZE]


@pytest.mark.parametrize("name", ENGINES)
def test_an_output_that_is_too_small_is_refused(name: str) -> None:
    stream, blocks = make_blocks(Codec.GOMPRESSO_BYTE)
    with pytest.raises(ValueError, match="the output only"):
        decode(name, blocks, len(stream) - 1)
