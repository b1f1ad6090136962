"""Blocks that the kernels of kernels/encode parse on some device, and the comparison with the CPU's parser."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from gompfs._native.codec import parse_sequences
from gompfs.codec import Codec, CodecOptions
from gompfs.codec.codecs import MAX_LEVEL, MIN_LEVEL
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.gpu.encode.parser import Parser, can_parse

_PADDING = 32


def all_options() -> Iterator[CodecOptions]:
    """Yields options of each codec and each level that a device can parse."""
    for codec in (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE):
        for level in range(MIN_LEVEL, MAX_LEVEL + 1):
            options = CodecOptions(codec, level)
            if can_parse(options):
                yield options


def make_content(seed: int, size: int) -> bytes:
    """Returns text, runs, records, noise, and copies of what came before."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randint(2, 9)) for _ in range(40)]
    content = bytearray()
    while len(content) < size:
        kind = rng.randrange(6)
        length = rng.choice((5, 30, 200, 700))
        if kind == 0:
            content += rng.randbytes(length)
        elif kind == 1:
            content += bytes([rng.randrange(256)]) * length
        elif kind == 2:
            step = rng.randint(1, 300)
            content += b"".join((number * step).to_bytes(4, "little") for number in range(length // 4))
        elif kind == 3 and content:
            start = rng.randrange(len(content))
            content += content[start : start + length]
        else:
            content += b"".join(rng.choice(words) for _ in range(length // 4))
    return bytes(content[:size])


few_bytes = st.lists(st.sampled_from(b"ab"), max_size=200).map(bytes)
pieces = st.tuples(st.sampled_from([b"a", b"ab", b"abc", b"hello ", b"\0\0\0\1", bytes(range(9))]), st.integers(1, 300))
runs = st.lists(pieces, min_size=1, max_size=8).map(lambda drawn: b"".join(piece * times for piece, times in drawn))
contents = st.one_of(few_bytes, runs, st.binary(max_size=300)).filter(len)


def compare(device: ArrayDevice, content: bytes, block_size: int, options: CodecOptions) -> None:
    """Fails unless the kernels give the sequences of `parse_sequences` for each block."""
    with device:
        on_device = device.upload(np.frombuffer(content + bytes(_PADDING), np.uint8))
        parsed = Parser(device).parse(on_device, len(content), block_size, options)
        sequences, counts = device.download(parsed.sequences), device.download(parsed.num_sequences)
    assert counts.size == -(-len(content) // block_size)
    for index, start in enumerate(range(0, len(content), block_size)):
        ours = sequences[index * parsed.max_sequences :][: counts[index]]
        expected = parse_sequences(
            content[start : start + block_size],
            *(options.codec, options.level, options.dependency_elimination),
        )
        assert ours.tobytes() == expected, (options, block_size, index)
