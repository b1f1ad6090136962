"""Small batches of a GPU, with a library that stands in for the CUDA driver and runs the kernels on the host."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import numpy as np
import pytest
from mutations import mutate
from native_builds import fake_driver
from payloads import CODECS, contents

from gompfs._native import codec as _codec
from gompfs._native import gpu as _gpu
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, CodecOptions, build_block, parse_block_header
from gompfs.codec.decode_work import DecodeWork
from gompfs.engine import select_engine
from gompfs.gpu.kernels import SHARED_BYTES

MAX_BLOCKS = 12
SIZE = MAX_BLOCKS * (1 << 16)
CONTEXT = 77


@pytest.fixture(scope="module")
def driver() -> Path:
    return fake_driver()


class Decoder:
    """SmallBatches with memory of the host in the place of pinned and device memory."""

    def __init__(self, driver: Path, functions: tuple[int, int] = (1, 2)) -> None:
        self.memory = [np.full(SIZE, 0xEE, np.uint8) for _ in range(4)]
        self.batches = _gpu.SmallBatches(
            library=str(driver),
            functions=functions,
            num_threads=128,
            shared_bytes=[SHARED_BYTES[f"codec/decode_{name}_wide"][0] for name in ("byte", "bit")],
            context_and_stream=(CONTEXT, 0),
            pinned=(self.memory[0].data, self.memory[1].data),
            on_device=(self.memory[2].ctypes.data, self.memory[3].ctypes.data),
            max_blocks=MAX_BLOCKS,
        )
        self.library = ctypes.CDLL(str(driver))
        self.work = DecodeWork()

    def decode(
        self, blocks: list[bytes], *, pinned: bool = False, sizes: list[int] | None = None, verify: bool = False
    ) -> bytes | None:
        """Returns the output followed by the statuses."""
        out = np.full(total(blocks), 0xAA, np.uint8)
        self.library.pin(ctypes.c_void_p(out.ctypes.data if pinned else 0), ctypes.c_size_t(out.size if pinned else 0))
        statuses = self.batches.decode(blocks, out.data, sizes, verify, 2, self.work)
        assert self.library.depth_of_contexts() == 0
        if statuses is None:
            assert (out == 0xAA).all()
        return None if statuses is None else bytes(out) + statuses


@pytest.fixture(scope="module")
def decoder(driver: Path) -> Decoder:
    return Decoder(driver)


def total(blocks: list[bytes]) -> int:
    return sum(parse_block_header(block).uncompressed_size for block in blocks)


def decode_on_cpu(blocks: list[bytes], *, verify: bool = False) -> bytes:
    """Returns the output followed by the statuses."""
    out = bytearray(total(blocks))
    statuses = _codec.decode_blocks(blocks, out, verify, 1)
    return bytes(out) + statuses


def some_blocks(rng: random.Random, count: int) -> list[bytes]:
    """Returns blocks of both codecs, in any order."""
    chosen = rng.choices([content for content in contents().values() if len(content) > 500], k=count)
    cpu = select_engine("cpu", 1)
    encoded = [cpu.encode_blocks(content, 1 << 16, CodecOptions(rng.choice(CODECS), 5))[0] for content in chosen]
    return [block.data for block in encoded if block.codec is not Codec.STORED]


@pytest.mark.parametrize("pinned", [False, True])
def test_batches_of_both_codecs(decoder: Decoder, pinned: bool) -> None:
    rng = random.Random(1)
    before = decoder.work.num_blocks
    num_blocks = 0
    for count in (1, 2, 3, MAX_BLOCKS):
        blocks = some_blocks(rng, count)
        num_blocks += len(blocks)
        assert decoder.decode(blocks, pinned=pinned, verify=True) == decode_on_cpu(blocks)
    assert decoder.work.num_blocks == before + num_blocks


def test_damaged_blocks(decoder: Decoder) -> None:
    """Damaged payloads with right checksums reach the kernel; a wrong checksum is found before."""
    rng = random.Random(2)
    seen = set()
    for _ in range(20):
        blocks = []
        for block in some_blocks(rng, 5):
            header = parse_block_header(block)
            payload = mutate(block[BLOCK_HEADER_SIZE:], rng)[: header.uncompressed_size]
            blocks.append(build_block(header.codec, payload, bytes(header.uncompressed_size)).data)
        if blocks:
            blocks[0] = blocks[0][:-1] + bytes([blocks[0][-1] ^ 1])
            decoded = decoder.decode(blocks)
            assert decoded == decode_on_cpu(blocks)
            seen |= set(decoded[-len(blocks) :])
    assert seen == {BlockStatus.OK, BlockStatus.BAD_CHECKSUM, BlockStatus.BAD_PAYLOAD}


def test_content_is_verified(decoder: Decoder) -> None:
    block = some_blocks(random.Random(3), 1)[0]
    header = parse_block_header(block)
    wrong = build_block(header.codec, block[BLOCK_HEADER_SIZE:], bytes(header.uncompressed_size)).data
    assert decoder.decode([wrong], verify=True) == bytes(header.uncompressed_size) + bytes([BlockStatus.BAD_CONTENT])
    assert decoder.decode([wrong]) == decode_on_cpu([block])


def test_batches_for_another_decoder(decoder: Decoder) -> None:
    rng = random.Random(4)
    cpu = select_engine("cpu", 1)
    good = some_blocks(rng, 4)
    stored = cpu.encode_blocks(rng.randbytes(1000), 1 << 16, CodecOptions())[0].data
    large = cpu.encode_blocks(bytes((1 << 16) + 1), 1 << 20, CodecOptions())[0].data
    before = decoder.work.num_blocks
    assert decoder.decode([*good, stored]) is None
    assert decoder.decode([large]) is None
    assert decoder.decode(good[:1] * (MAX_BLOCKS + 1)) is None
    assert decoder.decode(good, sizes=[1] * len(good)) is None
    assert decoder.decode([]) is None
    out = bytearray(total(good) - 1)
    assert decoder.batches.decode(good, out, None, False, 1, decoder.work) is None
    assert decoder.batches.decode([*good, b"x" * 40], out, None, False, 1, decoder.work) is None
    assert decoder.work.num_blocks == before


def test_failures_of_the_driver(driver: Path, tmp_path: Path) -> None:
    """They raise RuntimeError, and leave no context pushed."""
    broken = Decoder(driver, functions=(1, 9))
    block = select_engine("cpu", 1).encode_blocks(bytes(5000), 1 << 16, CodecOptions(Codec.GOMPRESSO_BIT))[0].data
    with pytest.raises(RuntimeError, match="cuLaunchKernel: CUDA error 400"):
        broken.decode([block])
    assert broken.library.depth_of_contexts() == 0
    assert broken.work.num_blocks == 0
    with pytest.raises(RuntimeError, match=r"libnone\.so"):
        Decoder(tmp_path / "libnone.so")
