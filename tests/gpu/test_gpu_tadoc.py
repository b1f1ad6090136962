"""The GPU engine on a GPU gives the bytes and statuses of the CPU engine for blocks of gompresso-tadoc."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from payloads import CORPUS
from tadoc_blocks import TadocBlock, blocks_of_texts, crafted, damaged, highest_ranks, packed_blocks, random_blocks

from gompfs._native.text import SymbolTable
from gompfs.codec import BlockStatus, Codec, CodecOptions
from gompfs.engine import Engine, select_engine
from gompfs.gpu.decode.head_store import packed_size
from gompfs.options import GpuOptions

pytestmark = pytest.mark.gpu
NUM_MUTATIONS = 50_000


@pytest.fixture(scope="module")
def gpu() -> Engine:
    return select_engine("gpu")


@pytest.fixture(scope="module")
def cpu() -> Engine:
    return select_engine("cpu")


def decode(
    engine: Engine,
    blocks: Sequence[bytes],
    sizes: Sequence[int],
    symbols: Sequence[SymbolTable | None],
    *,
    pinned: bool = False,
    verify: bool = False,
) -> tuple[bytes, list[BlockStatus]]:
    size = sum(sizes)
    out = engine.allocate(size) if pinned else memoryview(bytearray(size))
    out[:] = b"\xaa" * size
    statuses = engine.decode_blocks(blocks, out, sizes=sizes, symbols=symbols, verify=verify)
    return bytes(out), statuses


def decode_all(
    engine: Engine, blocks: Sequence[TadocBlock], *, pinned: bool = False
) -> tuple[bytes, list[BlockStatus]]:
    columns = [block.block for block in blocks], [block.size for block in blocks], [block.symbols for block in blocks]
    return decode(engine, *columns, pinned=pinned)


@pytest.mark.parametrize("pinned", [False, True])
def test_texts_and_random_parts(gpu: Engine, cpu: Engine, pinned: bool) -> None:
    rng = random.Random(4)
    blocks = [*blocks_of_texts(), *random_blocks(300, rng)]
    expected = decode_all(cpu, blocks)
    assert set(expected[1]) == {BlockStatus.OK}
    assert decode_all(gpu, blocks, pinned=pinned) == expected
    rng.shuffle(blocks)
    assert decode_all(gpu, blocks, pinned=pinned) == decode_all(cpu, blocks)


def test_each_rule(gpu: Engine, cpu: Engine) -> None:
    cases = [*crafted().values(), *highest_ranks()]
    assert decode_all(gpu, cases) == decode_all(cpu, cases)
    for case in cases:
        assert decode_all(gpu, [case]) == decode_all(cpu, [case])


def test_damaged_payloads(gpu: Engine, cpu: Engine) -> None:
    rng = random.Random(9)
    intact = [*blocks_of_texts(), *random_blocks(100, rng)]
    blocks = list(damaged(intact, NUM_MUTATIONS, rng))
    ours, theirs = decode_all(gpu, blocks), decode_all(cpu, blocks)
    assert ours[1] == theirs[1]
    assert ours == theirs
    assert 0 < sum(status != BlockStatus.OK for status in ours[1]) < NUM_MUTATIONS


def test_mixed_codecs_and_blocks_without_symbols(gpu: Engine, cpu: Engine) -> None:
    in_parts = blocks_of_texts()[:20]
    text = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    blocks: list[bytes] = [block.block for block in in_parts]
    sizes = [block.size for block in in_parts]
    symbols: list[SymbolTable | None] = [block.symbols for block in in_parts]
    symbols[3] = None
    for codec in (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE, Codec.STORED):
        content = random.Random(1).randbytes(20_000) if codec is Codec.STORED else text[:80_000]
        options = CodecOptions(Codec.GOMPRESSO_BIT if codec is Codec.STORED else codec)
        encoded = cpu.encode_blocks(content, 1 << 14, options)
        blocks += [block.data for block in encoded]
        sizes += [block.uncompressed_size for block in encoded]
        symbols += [None] * len(encoded)
    symbols[-1] = symbols[-5] = symbols[0]  # blocks of other codecs may not have any
    blocks[5] = blocks[5][:-1]
    sizes[7] += 1
    order = list(range(len(blocks)))
    for seed in range(3):
        random.Random(seed).shuffle(order)
        columns = [blocks[i] for i in order], [sizes[i] for i in order], [symbols[i] for i in order]
        for verify in (False, True):  # the checksums of contents in parts are wrong
            assert decode(gpu, *columns, verify=verify) == decode(cpu, *columns, verify=verify)
    with pytest.raises(ValueError, match="each block needs the symbols of its part"):
        gpu.decode_blocks(blocks, memoryview(bytearray(sum(sizes))), symbols=symbols[:-1])


def engine_with_heads(capacity: int) -> Engine:
    """Returns a GPU engine that keeps at most `capacity` bytes of heads."""
    engine = select_engine("gpu")
    engine._devices[0].heads._capacity = capacity  # type: ignore[attr-defined]
    return engine


def test_more_heads_than_fit(cpu: Engine) -> None:
    """A batch is decoded in rounds. The CPU decodes the blocks of heads that do not fit even alone."""
    text = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    blocks = [
        block
        for number in range(6)
        for block in packed_blocks([b"%d " % number + text[:100_000]], 1 << 14, 1 << (20 if number % 4 else 15))
    ]
    random.Random(2).shuffle(blocks)
    sizes = sorted({block.symbols.number: packed_size(block.symbols) for block in blocks}.values())
    expected = decode_all(cpu, blocks)
    small = engine_with_heads(2 * sizes[-1])
    for _ in range(2):
        assert decode_all(small, blocks) == expected
    assert small.decode_work["gpu"].num_blocks == 2 * len(blocks)
    tiny = engine_with_heads(sizes[-1] - 1)
    assert decode_all(tiny, blocks) == expected
    num_large = sum(packed_size(block.symbols) == sizes[-1] for block in blocks)
    assert tiny.decode_work["cpu"].num_blocks == num_large
    assert tiny.decode_work["gpu"].num_blocks == len(blocks) - num_large


def test_heads_and_payloads_stay_on_the_device(cpu: Engine) -> None:
    keeping = select_engine("gpu", gpu=GpuOptions())
    blocks = blocks_of_texts()
    expected = decode_all(cpu, blocks)
    assert decode_all(keeping, blocks) == expected
    heads = keeping._devices[0].heads  # type: ignore[attr-defined]
    kept = heads.num_bytes
    assert kept > 0
    heads._device = None  # a second upload would fail
    assert decode_all(keeping, blocks) == expected
    assert heads.num_bytes == kept


def test_several_threads(gpu: Engine, cpu: Engine) -> None:
    blocks = blocks_of_texts()
    expected = decode_all(cpu, blocks)
    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(lambda _: decode_all(gpu, blocks), range(8))) == [expected] * 8
