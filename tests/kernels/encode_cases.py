"""Payloads of the kernels that encode, compared with those of the C++ core. As a program, runs them on the host.

Usage: encode_cases.py LIBRARY NUM_EXAMPLES, where LIBRARY was made by native_builds.kernel_library.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from payloads import CODECS, contents

from gompfs._native import codec as _codec
from gompfs.codec import Codec, CodecOptions
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.gpu.encode.encode_kernels import (
    READABLE,
    BlockBatch,
    check_payloads,
    encode_payloads,
    gather_payloads,
    payload_bytes,
)
from gompfs.gpu.encode.parser import ParsedBlocks, Parser, can_parse

_ENCODED, _FAILED = 0, 1
_LITERAL_LIMITS = {Codec.GOMPRESSO_BIT: 266, Codec.GOMPRESSO_BYTE: 262}


def blocks_of(content: bytes, block_size: int) -> list[bytes]:
    return [content[start : start + block_size] for start in range(0, len(content), block_size)]


def parse(block: bytes, options: CodecOptions) -> bytes:
    """Returns the sequences of the C++ core for a block."""
    return _codec.parse_sequences(
        block, options.codec, options.level, options.dependency_elimination, options.group_size_log2
    )


def expected_payload(block: bytes, sequences: bytes, options: CodecOptions) -> bytes:
    """Returns the payload of the C++ core, or nothing if it would not be smaller than the block."""
    payload = _codec.encode_sequences(
        block, sequences, options.codec, options.dependency_elimination, options.group_size_log2
    )
    return payload if len(payload) < len(block) else b""


def upload(
    device: ArrayDevice, blocks: Sequence[bytes], block_size: int, sequences: Sequence[bytes]
) -> tuple[BlockBatch, ParsedBlocks]:
    content = b"".join(blocks)
    array = np.frombuffer(content + bytes(READABLE), np.uint8)
    batch = BlockBatch(device.upload(array), len(content), block_size)
    most = max(len(packed) // 8 for packed in sequences)
    packed = np.zeros((len(blocks), most), np.uint64)
    for row, each in zip(packed, sequences, strict=True):
        row[: len(each) // 8] = np.frombuffer(each, np.uint64)
    counts = np.array([len(each) // 8 for each in sequences], np.uint32)
    return batch, ParsedBlocks(device.upload(packed.ravel()), device.upload(counts), most)


def encode(
    device: ArrayDevice, batch: BlockBatch, sequences: ParsedBlocks, options: CodecOptions, damaged: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint8]]:
    """Returns the gathered payloads, their sizes and the statuses. `damaged` payloads are changed."""
    scratch = device.xp.empty(batch.content_size + READABLE, np.uint8)
    data = device.xp.empty(payload_bytes(batch.block_size, batch.num_blocks), np.uint8)
    payloads = encode_payloads(device, batch, sequences, options, data, scratch)
    for index in range(damaged):
        data[index * payloads.stride + int(payloads.sizes[index]) // 2] ^= 0x10
    check_payloads(device, batch, payloads, options, scratch)
    gather_payloads(device, payloads, scratch)
    return device.download(scratch), device.download(payloads.sizes), device.download(payloads.statuses)


def split(packed: NDArray[np.uint8], sizes: NDArray[np.uint32]) -> list[bytes]:
    """Returns the gathered payloads one by one."""
    ends = np.cumsum(-(-sizes.astype(np.int64) // 16) * 16)
    starts = ends - -(-sizes.astype(np.int64) // 16) * 16
    return [packed[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True)]


def compare(device: ArrayDevice, content: bytes, block_size: int, options: CodecOptions) -> int:
    """Encodes the sequences of the C++ core; the payloads must be those of the core. Returns how many there are."""
    blocks = blocks_of(content, block_size)
    sequences = [parse(block, options) for block in blocks]
    expected = [expected_payload(block, each, options) for block, each in zip(blocks, sequences, strict=True)]
    packed, sizes, statuses = encode(device, *upload(device, blocks, block_size, sequences), options)
    assert statuses.tolist() == [_ENCODED] * len(blocks)
    assert sizes.tolist() == list(map(len, expected))
    assert split(packed, sizes) == expected
    return sum(map(bool, expected))


def check_parsed(device: ArrayDevice, num_examples: int) -> None:
    """Blocks of any bytes that the kernels parse and encode are those of the C++ core."""
    random_settings = settings(
        max_examples=num_examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    some_bytes = st.one_of(
        st.binary(min_size=1, max_size=300),
        st.tuples(st.integers(0, 255), st.integers(1, 3000)).map(lambda run: bytes(run[:1]) * run[1]),
        st.integers(1, 2000).map(lambda size: random.Random(size).randbytes(size)),
        st.sampled_from([contents()["text of an odd size"], contents()["matches with runs between"][:4000]]),
    )

    @random_settings
    @given(
        content=st.lists(some_bytes, min_size=1, max_size=6).map(b"".join),
        block_size=st.sampled_from((1024, 4096, 1 << 14)),
        options=st.sampled_from([options for options in all_options() if can_parse(options)]),
    )
    def compare_parsed(content: bytes, block_size: int, options: CodecOptions) -> None:
        array = np.frombuffer(content + bytes(READABLE), np.uint8)
        batch = BlockBatch(device.upload(array), len(content), block_size)
        parsed = Parser(device).parse(batch.content, len(content), block_size, options)
        packed, sizes, statuses = encode(device, batch, parsed, options)
        assert not statuses.any()
        how = (options.codec, options.level, options.dependency_elimination, 1)
        made = _codec.frame_payloads(
            content, block_size, *how, packed.data, sizes.data, statuses.data, options.group_size_log2
        )
        assert made == _codec.encode_blocks(content, block_size, *how, options.group_size_log2)

    compare_parsed()


def all_options() -> Iterator[CodecOptions]:
    for codec, level, elimination in itertools.product(CODECS, (1, 6, 8), (False, True)):
        yield CodecOptions(codec, level, elimination)
    for codec, group_size_log2 in itertools.product(CODECS, (3, 4, 5)):
        yield CodecOptions(codec, 6, group_size_log2=group_size_log2)


def check_contents(device: ArrayDevice) -> None:
    """All contents, cut into blocks with a short one at the end. Those too short for the block size are one block."""
    num_encoded = 0
    every_option = itertools.cycle(all_options())
    for content in contents().values():
        for block_size in (1024, 1 << 16)[: 1 + (len(content) > 1024)]:
            num_encoded += compare(device, content, block_size, next(every_option))
    text = contents()["text"] + contents()["random"]
    for options in all_options():
        num_encoded += compare(device, text[:20_000], 1 << 14, options)
    assert num_encoded > 200


def check_deep_codes(device: ArrayDevice) -> None:
    """Counts that double make trees deeper than codes may be; one code then needs package-merge, or all do."""
    rng = random.Random(4)
    for num_symbols in (11, 14, 18, 255):
        weights = [2.0 ** min(index, 17) for index in range(num_symbols)]
        content = bytes(rng.choices(range(num_symbols), weights, k=6000)) + bytes(range(num_symbols))
        for codec in CODECS:
            compare(device, content * 3, 1 << 14, CodecOptions(codec, 6))


def sequences_for(size: int, codec: Codec, rng: random.Random) -> tuple[bytes, bytes]:
    """Returns a block that random sequences produce, and the sequences; empty sequences are among them."""
    content = bytearray()
    packed = []
    shortest, longest, farthest = (3, 426, size) if codec is Codec.GOMPRESSO_BIT else (4, 289, 65535)
    while len(content) < size or not packed:
        literal_length = min(int(rng.paretovariate(0.5)) - 1, _LITERAL_LIMITS[codec], size - len(content))
        content += rng.randbytes(literal_length) if rng.random() < 0.5 else bytes(literal_length)
        match_length = min(rng.randint(shortest, longest) // rng.randint(1, 99), size - len(content))
        match_offset = rng.randint(1, min(max(len(content), 1), farthest))
        if match_length < shortest or not content:
            match_length = match_offset = 0
        for _ in range(match_length):
            content.append(content[-match_offset])
        packed.append(match_offset | match_length << 32 | literal_length << 44)
    return bytes(content), np.array(packed, np.uint64).tobytes()


def check_random_sequences(device: ArrayDevice, num_examples: int) -> None:
    """Sequences that no parser makes, of several blocks."""
    random_settings = settings(
        max_examples=num_examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )

    @random_settings
    @given(
        seed=st.integers(0, 1 << 30),
        num_blocks=st.integers(1, 3),
        last=st.integers(1, 1024),
        codec=st.sampled_from(CODECS),
    )
    def compare_random(seed: int, num_blocks: int, last: int, codec: Codec) -> None:
        rng = random.Random(seed)
        block_size = 1024 * rng.choice((1, 1, 4))
        made = [sequences_for(block_size, codec, rng) for _ in range(num_blocks)] + [sequences_for(last, codec, rng)]
        blocks, sequences = [block for block, _ in made], [packed for _, packed in made]
        options = CodecOptions(codec, dependency_elimination=False)
        expected = [expected_payload(*pair, options) for pair in made]
        packed, sizes, statuses = encode(device, *upload(device, blocks, block_size, sequences), options)
        assert not statuses.any()
        assert split(packed, sizes) == expected

    compare_random()


def check_failures(device: ArrayDevice) -> None:
    """A payload that decodes to other bytes is found, and so are sequences of another size than the content."""
    text = contents()["text"][:5000]
    for codec in CODECS:
        options = CodecOptions(codec, 6)
        blocks = blocks_of(text, 1024)
        sequences = [parse(block, options) for block in blocks]
        expected = [expected_payload(block, each, options) for block, each in zip(blocks, sequences, strict=True)]
        packed, sizes, statuses = encode(device, *upload(device, blocks, 1024, sequences), options, damaged=2)
        assert statuses.tolist() == [_FAILED, _FAILED] + [_ENCODED] * (len(blocks) - 2)
        assert split(packed, sizes) == [b"", b"", *expected[2:]]
        sequences[1] = sequences[1][:-8]
        packed, sizes, statuses = encode(device, *upload(device, blocks, 1024, sequences), options)
        assert statuses.tolist() == [_ENCODED, _FAILED] + [_ENCODED] * (len(blocks) - 2)
        assert split(packed, sizes) == [expected[0], b"", *expected[2:]]


def check_all(device: ArrayDevice, num_examples: int) -> None:
    check_failures(device)
    check_deep_codes(device)
    check_random_sequences(device, num_examples)
    check_parsed(device, num_examples)
    check_contents(device)


if __name__ == "__main__":
    from host_device import HostDevice

    check_all(HostDevice(Path(sys.argv[1])), int(sys.argv[2]))
