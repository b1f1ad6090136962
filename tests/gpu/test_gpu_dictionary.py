"""The GPU engine on a GPU gives the bytes and statuses of the CPU engine for blocks of gompresso-bit-dictionary."""

from __future__ import annotations

import random

import pytest
from both_decoders import frame
from payload_builder import build_bit
from payloads import CORPUS
from test_dictionary_payloads import random_dictionary_payload

from gompfs._native import codec as native
from gompfs._native.text import SymbolTable
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec
from gompfs.engine import Engine, select_engine

pytestmark = pytest.mark.gpu
CODEC = Codec.GOMPRESSO_BIT_DICTIONARY
TEXT = b"".join(path.read_bytes() for path in sorted(CORPUS.rglob("*.txt")))
NUM_MUTATIONS = 20_000

Blocks = list[tuple[bytes, int, SymbolTable | None]]
"""Blocks, with the sizes of their contents and their dictionaries."""


@pytest.fixture(scope="module")
def gpu() -> Engine:
    return select_engine("gpu")


@pytest.fixture(scope="module")
def cpu() -> Engine:
    return select_engine("cpu")


def decode_all(engine: Engine, blocks: Blocks, *, pinned: bool = False) -> tuple[bytes, list[BlockStatus]]:
    size = sum(block[1] for block in blocks)
    out = engine.allocate(size) if pinned else memoryview(bytearray(size))
    out[:] = b"\xaa" * size
    statuses = engine.decode_blocks(
        [block for block, _, _ in blocks],
        out,
        sizes=[block[1] for block in blocks],
        symbols=[block[2] for block in blocks],
    )
    return bytes(out), statuses


def blocks_of_text(block_size: int, dictionary: bytes | None) -> Blocks:
    made = None if dictionary is None else native.Dictionary(dictionary)
    encoded = native.encode_blocks(TEXT, block_size, Codec.GOMPRESSO_BIT, 6, True, 2, dictionary=made)
    return [(block, size, None if made is None else made.table) for block, _, size in encoded]


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("block_size", [1 << 14, 1 << 16, 1 << 20])
def test_texts(gpu: Engine, cpu: Engine, block_size: int, pinned: bool) -> None:
    blocks = blocks_of_text(block_size, native.choose_dictionary([TEXT], 1 << 18, 1))
    assert any(block[4] == CODEC for block, _, _ in blocks)
    expected = TEXT, [BlockStatus.OK] * len(blocks)
    assert decode_all(gpu, blocks, pinned=pinned) == expected
    assert decode_all(gpu, blocks[:1], pinned=pinned) == decode_all(cpu, blocks[:1])


def test_several_dictionaries_and_codecs(gpu: Engine, cpu: Engine) -> None:
    blocks = [
        *blocks_of_text(1 << 14, TEXT[:1]),
        *blocks_of_text(1 << 14, TEXT[-300_000:]),
        *blocks_of_text(1 << 14, TEXT[:5000]),
        *blocks_of_text(1 << 14, None),
    ]
    random.Random(1).shuffle(blocks)
    ours = decode_all(gpu, blocks)
    assert ours == decode_all(cpu, blocks)
    assert set(ours[1]) == {BlockStatus.OK}


def test_payloads_that_the_encoder_never_writes(gpu: Engine, cpu: Engine) -> None:
    rng = random.Random(2)
    blocks: Blocks = []
    for _ in range(100):
        decoded, size = random_dictionary_payload(rng)
        payload = build_bit(decoded, rng)
        for dictionary in (decoded.dictionary, decoded.dictionary[: len(decoded.dictionary) // 2]):
            blocks.append((frame(CODEC, payload, size), size, native.Dictionary(dictionary).table))
    ours = decode_all(gpu, blocks)
    assert ours == decode_all(cpu, blocks)
    assert {BlockStatus.OK, BlockStatus.BAD_PAYLOAD} <= set(ours[1])


def test_damaged_payloads(gpu: Engine, cpu: Engine) -> None:
    rng = random.Random(3)
    intact = blocks_of_text(1 << 14, TEXT[-100_000:])[:50]
    blocks: Blocks = []
    for _ in range(NUM_MUTATIONS):
        block, size, table = rng.choice(intact)
        payload = bytearray(block[BLOCK_HEADER_SIZE:])
        for _ in range(rng.choice((1, 1, 3))):
            payload[rng.randrange(rng.choice((200, len(payload))))] ^= 1 << rng.randrange(8)
        blocks.append((frame(CODEC, bytes(payload), size), size, table))
    ours = decode_all(gpu, blocks)
    assert ours == decode_all(cpu, blocks)
    assert ours[1].count(BlockStatus.BAD_PAYLOAD) > NUM_MUTATIONS / 10


def test_a_dictionary_that_does_not_belong_to_the_codec(gpu: Engine, cpu: Engine) -> None:
    table = native.Dictionary(TEXT[:1000]).table
    plain, with_dictionary = blocks_of_text(1 << 14, None)[0], blocks_of_text(1 << 14, TEXT[:1000])[0]
    blocks: Blocks = [(plain[0], plain[1], table), (with_dictionary[0], with_dictionary[1], None)]
    ours = decode_all(gpu, blocks)
    assert ours == decode_all(cpu, blocks)
    assert ours[1] == [BlockStatus.BAD_HEADER] * 2
