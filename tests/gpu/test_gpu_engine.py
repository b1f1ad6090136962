"""The GPU engine on a GPU gives the bytes and statuses of the CPU engine, for batches of any shape."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from mutations import mutate
from oracle.block import build_block
from payloads import CODECS, CORPUS, contents

from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, CodecOptions, parse_block_header
from gompfs.engine import Engine, select_engine
from gompfs.engine.auto import AutoEngine
from gompfs.errors import EngineUnavailableError
from gompfs.options import GpuOptions

pytestmark = pytest.mark.gpu
NUM_MUTATIONS = 50_000


@pytest.fixture(scope="module")
def gpu() -> Engine:
    return select_engine("gpu")


@pytest.fixture(scope="module")
def cpu() -> Engine:
    return select_engine("cpu")


def decode(engine: Engine, blocks: list[bytes], size: int, *, pinned: bool = False, verify: bool = False) -> bytes:
    """Returns the output followed by the statuses."""
    out = engine.allocate(size) if pinned else memoryview(bytearray(size))
    out[:] = b"\xaa" * size
    statuses = engine.decode_blocks(blocks, out, verify=verify)
    return bytes(out) + bytes(statuses)


def all_blocks(codec: Codec) -> list[bytes]:
    """Returns blocks of all contents, levels and block sizes, with and without dependency elimination."""
    cpu = select_engine("cpu")
    return [
        block.data
        for content in contents().values()
        for level, elimination in ((1, True), (6, True), (6, False), (8, True))
        for block_size in (1 << 14, 1 << 20)
        for block in cpu.encode_blocks(content, block_size, CodecOptions(codec, level, elimination))
    ]


def total(blocks: list[bytes]) -> int:
    return sum(parse_block_header(block).uncompressed_size for block in blocks)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_all_contents(gpu: Engine, cpu: Engine, codec: Codec, pinned: bool) -> None:
    blocks = all_blocks(codec)
    size = total(blocks)
    assert decode(gpu, blocks, size, pinned=pinned, verify=True) == decode(cpu, blocks, size)


def test_codecs_mixed_and_one_block_at_a_time(gpu: Engine, cpu: Engine) -> None:
    blocks = [block for codec in (*CODECS, Codec.STORED) for block in all_blocks(codec)[::7]]
    random.Random(3).shuffle(blocks)
    assert decode(gpu, blocks, total(blocks)) == decode(cpu, blocks, total(blocks))
    for block in blocks[:50]:
        assert decode(gpu, [block], total([block])) == decode(cpu, [block], total([block]))


def test_batches_larger_than_the_slots(gpu: Engine, cpu: Engine) -> None:
    text = b"".join(path.read_bytes() for path in sorted(CORPUS.glob("*/*.txt")))
    blocks = [block.data for block in cpu.encode_blocks(text, 1 << 16, CodecOptions())] * 1200
    size = total(blocks)
    assert size > 300 << 20
    expected = decode(cpu, blocks, size)
    assert decode(gpu, blocks, size) == expected
    assert decode(gpu, blocks, size, pinned=True) == expected


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_damaged_payloads(gpu: Engine, cpu: Engine, codec: Codec) -> None:
    """Damaged payloads with valid checksums reach the kernels."""
    rng = random.Random(5)
    intact = [block for block in all_blocks(codec) if block[4] == codec and len(block) < 3000]
    blocks = []
    for _ in range(NUM_MUTATIONS):
        block = rng.choice(intact)
        header = parse_block_header(block)
        payload = mutate(block[BLOCK_HEADER_SIZE:], rng)[: header.uncompressed_size]
        blocks.append(build_block(codec, payload, bytes(header.uncompressed_size)).data)
    size = total(blocks)
    ours, theirs = decode(gpu, blocks, size), decode(cpu, blocks, size)
    assert ours[size:] == theirs[size:]
    assert ours == theirs
    assert 0 < sum(status != BlockStatus.OK for status in ours[size:]) < NUM_MUTATIONS


def test_too_little_memory_makes_smaller_parts(gpu: Engine, cpu: Engine) -> None:
    cupy = pytest.importorskip("cupy")
    text = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    blocks = [block.data for block in cpu.encode_blocks(text, 1 << 16, CodecOptions())] * 400
    expected = decode(cpu, blocks, total(blocks))
    pool = cupy.get_default_memory_pool()
    fresh = select_engine("gpu")
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + (24 << 20))
    try:
        assert decode(fresh, blocks, total(blocks)) == expected
    finally:
        pool.set_limit(size=0)


def test_payloads_stay_on_the_device(cpu: Engine) -> None:
    """The second time, the host's bytes are not read, so that damage to them has no effect."""
    keeping = select_engine("gpu", gpu=GpuOptions())
    blocks = [block for block in all_blocks(Codec.GOMPRESSO_BIT) if len(block) > 100]
    expected = decode(cpu, blocks, total(blocks))
    assert decode(keeping, blocks, total(blocks)) == expected
    assert "payloads that stay" in keeping.reason
    damaged = [block[:-1] + bytes([block[-1] ^ 1]) for block in blocks]
    assert decode(keeping, damaged, total(blocks)) == expected
    forgetting = select_engine("gpu")
    decode(forgetting, blocks, total(blocks))
    assert BlockStatus.OK not in decode(forgetting, damaged, total(blocks))[-len(blocks) :]


def test_damaged_payloads_do_not_stay(gpu: Engine) -> None:
    keeping = select_engine("gpu", gpu=GpuOptions())
    blocks = [block for block in all_blocks(Codec.GOMPRESSO_BYTE) if block[4] != Codec.STORED][:50]
    damaged = [block[:-1] + bytes([block[-1] ^ 1]) for block in blocks]
    for _ in range(2):
        statuses = keeping.decode_blocks(damaged, keeping.allocate(total(blocks)))
        assert statuses == [BlockStatus.BAD_CHECKSUM] * len(blocks)
    assert decode(keeping, blocks, total(blocks)) == decode(gpu, blocks, total(blocks))


BOUNDED = """
import sys, cupy
from gompfs.codec import CodecOptions
from gompfs.engine import select_engine
from gompfs.options import GpuOptions
text = sys.stdin.buffer.read()
stream = b"".join(b"%d" % number + text for number in range(400))
cpu, gpu = select_engine("cpu"), select_engine("gpu", gpu=GpuOptions(memory=64 << 20))
blocks = [block.data for block in cpu.encode_blocks(stream, 1 << 16, CodecOptions(level=1))]
out = gpu.allocate(len(stream))
for _ in range(2):
    assert not any(gpu.decode_blocks(blocks, out)) and out == stream
print(sum(map(len, blocks)), cupy.get_default_memory_pool().total_bytes())
"""


def test_memory_is_bounded() -> None:
    text = b"".join(path.read_bytes() for path in sorted(CORPUS.glob("*/*.txt")))
    done = subprocess.run([sys.executable, "-P", "-c", BOUNDED], input=text, capture_output=True, check=True)
    compressed, taken = map(int, done.stdout.split())
    assert compressed > 40 << 20
    assert 32 << 20 < taken <= 64 << 20


def test_an_archive_that_must_be_resident_and_does_not_fit(gpu: Engine) -> None:
    with pytest.raises(EngineUnavailableError, match=r"gpu_resident=on: the archive needs 1048576 MiB, .* has [1-9]"):
        select_engine("gpu", gpu=GpuOptions(resident="on", archive_size=1 << 40))


def test_auto_tries_the_gpu_and_reports_its_choice(cpu: Engine) -> None:
    auto = AutoEngine(options=GpuOptions())
    assert "the CPU; a GPU is started" in auto.reason
    auto.start_gpu()
    assert "the CPU; batches of 8 MiB and more are tried on the GPU" in auto.reason
    for on_cpu in (True, *[False] * 4):
        auto.note_batch(16 << 20, 0.01 if on_cpu else 0.005, on_cpu=on_cpu)
    assert re.search(r"auto: the GPU for batches of 8 MiB .*CPU 1.7 GB/s, the GPU 3.4 GB/s", auto.reason)
    blocks = all_blocks(Codec.GOMPRESSO_BIT)
    assert decode(auto, blocks * 20, total(blocks) * 20) == decode(cpu, blocks * 20, total(blocks) * 20)


def test_decoded_blocks_are_counted_by_engine() -> None:
    engine = select_engine("gpu")
    blocks = all_blocks(Codec.GOMPRESSO_BIT)
    decode(engine, blocks, total(blocks))
    done = {name: (work.num_blocks, work.num_bytes) for name, work in engine.decode_work.items()}
    assert done == {"gpu": (len(blocks), total(blocks)), "cpu": (0, 0)}
    assert 0 < engine.decode_work["gpu"].seconds < 60


def test_all_devices_take_turns(cpu: Engine) -> None:
    cupy = pytest.importorskip("cupy")
    numbers = ",".join(map(str, range(cupy.cuda.runtime.getDeviceCount())))
    engine = select_engine(f"gpu:{numbers}", gpu=GpuOptions())
    blocks = all_blocks(Codec.GOMPRESSO_BIT)
    expected = decode(cpu, blocks, total(blocks))
    with ThreadPoolExecutor(4) as executor:
        results = list(executor.map(lambda _: decode(engine, blocks, total(blocks)), range(12)))
    assert results == [expected] * 12
