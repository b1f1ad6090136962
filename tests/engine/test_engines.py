"""Whole blocks through all engines: each gives the same bytes and the same status, for intact and damaged blocks."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from oracle.block import build_block
from payloads import CODECS, contents

from gompfs._native import codec as _codec
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, CodecOptions
from gompfs.codec.headers import read_headers
from gompfs.engine import Engine, select_engine

CONTENTS = contents()
BLOCK_SIZE = 1 << 14


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def engine(request: pytest.FixtureRequest) -> Engine:
    return select_engine(request.param, 2)


def make_blocks(codec: Codec) -> tuple[bytes, list[bytes]]:
    """Returns a stream and its blocks. The last block is short, and one block is stored."""
    stream = CONTENTS["text"][: 2 * BLOCK_SIZE] + random.Random(4).randbytes(BLOCK_SIZE) + CONTENTS["period 3"]
    blocks = select_engine("cpu", 2).encode_blocks(stream, BLOCK_SIZE, CodecOptions(codec))
    assert [block.codec for block in blocks] == [codec, codec, Codec.STORED, codec]
    return stream, [block.data for block in blocks]


def decode(
    engine: Engine, blocks: list[bytes], size: int, *, sizes: list[int] | None = None, verify: bool = False
) -> tuple[bytes, list[BlockStatus]]:
    out = bytearray(b"\xaa" * size)
    statuses = engine.decode_blocks(blocks, memoryview(out), sizes=sizes, verify=verify)
    return bytes(out), statuses


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_a_batch_is_decoded(codec: Codec, engine: Engine, verify: bool) -> None:
    stream, blocks = make_blocks(codec)
    assert decode(engine, blocks, len(stream), verify=verify) == (stream, [BlockStatus.OK] * len(blocks))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_damage_stays_in_its_block(codec: Codec, engine: Engine) -> None:
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
        out, statuses = decode(engine, [blocks[0], damaged, *blocks[2:]], len(stream), verify=True)
        assert statuses == [BlockStatus.OK, status, BlockStatus.OK, BlockStatus.OK]
        assert out == expected


def test_a_block_with_an_unreadable_header_has_no_output(engine: Engine) -> None:
    stream, blocks = make_blocks(Codec.GOMPRESSO_BIT)
    out, statuses = decode(engine, [blocks[0], b"GBLK", blocks[1]], 2 * BLOCK_SIZE)
    assert statuses == [BlockStatus.OK, BlockStatus.BAD_HEADER, BlockStatus.OK]
    assert out == stream[: 2 * BLOCK_SIZE]


def test_an_output_that_is_too_small_is_refused(engine: Engine) -> None:
    stream, blocks = make_blocks(Codec.GOMPRESSO_BYTE)
    with pytest.raises(ValueError, match="the output only"):
        decode(engine, blocks, len(stream) - 1)


def test_sizes_that_the_headers_must_have(engine: Engine) -> None:
    """A block with another size, or without a header, is damaged, and has zeros of the size that it should have."""
    stream, blocks = make_blocks(Codec.GOMPRESSO_BIT)
    sizes = [BLOCK_SIZE, BLOCK_SIZE, BLOCK_SIZE, len(stream) - 3 * BLOCK_SIZE]
    assert decode(engine, blocks, len(stream), sizes=sizes, verify=True) == (stream, [BlockStatus.OK] * 4)
    wrong = [BLOCK_SIZE, 100, BLOCK_SIZE + 1, 7]
    out, statuses = decode(engine, [*blocks[:3], b"GBLK"], sum(wrong), sizes=wrong, verify=True)
    assert statuses == [BlockStatus.OK, *[BlockStatus.BAD_HEADER] * 3]
    assert out == stream[:BLOCK_SIZE] + bytes(sum(wrong[1:]))
    with pytest.raises(ValueError, match="each block needs a size"):
        decode(engine, blocks, len(stream), sizes=sizes[:3])
    with pytest.raises(ValueError, match="the output only"):
        decode(engine, blocks, len(stream) - 1, sizes=sizes)


def test_an_empty_batch(engine: Engine) -> None:
    assert engine.decode_blocks([], memoryview(bytearray())) == []


def test_several_threads(engine: Engine) -> None:
    stream, blocks = make_blocks(Codec.GOMPRESSO_BYTE)
    with ThreadPoolExecutor(4) as executor:
        results = list(executor.map(lambda _: decode(engine, blocks, len(stream)), range(16)))
    assert results == [(stream, [BlockStatus.OK] * 4)] * 16


def test_payloads_for_a_gpu() -> None:
    """The host checks blocks before it copies their payloads to the memory that a GPU reads."""
    _, blocks = make_blocks(Codec.GOMPRESSO_BIT)
    damaged = blocks[1][:100] + bytes([blocks[1][100] ^ 1]) + blocks[1][101:]
    batch = [blocks[0], damaged, b"GBLK", blocks[3], blocks[3][:-1]]
    headers = read_headers(batch)
    offsets = np.array([0, 30_000, 60_000, 70_000, 90_000], np.uint64)
    out = np.zeros(100_000, np.uint8)
    statuses = _codec.gather_payloads(batch, headers.data, offsets.data, out.data, 2)
    bad = BlockStatus.BAD_HEADER
    expected = [BlockStatus.OK, BlockStatus.BAD_CHECKSUM, bad, BlockStatus.OK, bad]
    assert [*statuses] == expected
    for block, offset in ((blocks[0], 0), (blocks[3], 70_000)):
        payload = block[BLOCK_HEADER_SIZE:]
        assert out[offset : offset + len(payload)].tobytes() == payload
        out[offset : offset + len(payload)] = 0
    assert not out.any()
    assert [*_codec.gather_payloads(batch, headers.data, offsets.data, out[:70_000].data, 2)] == [
        *expected[:3],
        bad,
        bad,
    ]
    with pytest.raises(ValueError, match="each block needs the facts"):
        _codec.gather_payloads(batch, headers[1:].data, offsets.data, out.data, 2)
