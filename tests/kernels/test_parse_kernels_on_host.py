"""Runs the CUDA kernels that parse blocks on the CPU, once under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import random

import pytest
from host_device import HostDevice
from native_builds import kernel_library, run_cases_sanitized
from parse_cases import all_options, compare, make_content

from gompfs.codec import Codec, CodecOptions
from gompfs.gpu.encode.parser import can_parse

NARROW = 1 << 16
BACKWARD = CodecOptions(Codec.GOMPRESSO_BIT, 8)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("num_examples", "size"), [(10, 1000), pytest.param(3000, 9000, marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_kernels_make_the_sequences_of_the_core(num_examples: int, size: int) -> None:
    run_cases_sanitized("check_parse_kernels", str(num_examples), str(size))


@pytest.fixture(scope="module")
def device() -> HostDevice:
    return HostDevice(kernel_library())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 31, 32, 33, 2047, 2048, 2049])
@pytest.mark.parametrize("codec", [Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE], ids=lambda codec: codec.label)
def test_small_blocks(device: HostDevice, codec: Codec, size: int) -> None:
    for content in (make_content(size, size), bytes(size)):
        compare(device, content, -(-size // 16) * 16, CodecOptions(codec, 4))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 31, 32, 33, 2047, 2048, 2049])
def test_small_blocks_parsed_backwards(device: HostDevice, size: int) -> None:
    for content in (make_content(size, size), bytes(size)):
        compare(device, content, -(-size // 16) * 16, BACKWARD)


def test_level_8_is_parsed_backwards(device: HostDevice) -> None:
    device.launched.clear()
    compare(device, make_content(6, 5000), 2048, BACKWARD)
    assert "find_ways" in device.launched


def test_records_and_long_matches_parsed_backwards(device: HostDevice) -> None:
    rng = random.Random(1)
    records = b"".join(number.to_bytes(3, "little") + rng.randbytes(2) + b"record" for number in range(800))
    lines = b"".join(b"%d %s\n" % (number, b"the same text again and again " * 9) for number in range(50))
    repeats = b"".join(rng.randbytes(1) + bytes(range(100, 100 + rng.randint(3, 40))) for _ in range(300))
    literals = rng.randbytes(700) + bytes(range(200)) + rng.randbytes(266) + bytes(range(200))
    for content in (records, lines, repeats, literals):
        compare(device, content, 8192, BACKWARD)


@pytest.mark.parametrize("size", [NARROW - 1, NARROW])
def test_the_largest_narrow_block(device: HostDevice, size: int) -> None:
    compare(device, make_content(7, size), NARROW, CodecOptions(Codec.GOMPRESSO_BIT, 3))


def test_a_wide_block_and_a_narrow_last_one(device: HostDevice) -> None:
    compare(device, make_content(8, NARROW + 4096), NARROW + 2048, CodecOptions(Codec.GOMPRESSO_BIT, 3))


@pytest.mark.parametrize("level", [1, 6])
def test_walks_that_hardly_ever_meet(device: HostDevice, level: int) -> None:
    """Some find more matches than they can store."""
    lines = b"".join(b"%d,%d\n" % (number % 7, number) for number in range(2200))
    for content in (lines, b"abc" * 5000, random.Random(level).randbytes(8000)):
        for codec in (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE):
            options = CodecOptions(codec, level if codec is Codec.GOMPRESSO_BIT else 3)
            compare(device, content, 1 << 14, options)


@pytest.mark.parametrize("seed", [0, 1, 9])
def test_later_matches_that_end_later(device: HostDevice, seed: int) -> None:
    """Level 6 of gompresso-bit asks for this."""
    compare(device, make_content(seed, 20_000), 1 << 14, CodecOptions(Codec.GOMPRESSO_BIT, 6))


@pytest.mark.parametrize("level", [1, 8])
def test_a_rule_for_sources_is_left_to_the_cpu(level: int) -> None:
    for has_rule, is_strict in ((True, False), (True, True), (False, True)):
        assert not can_parse(CodecOptions(Codec.GOMPRESSO_BIT, level, has_rule, strict_sources=is_strict))


def test_a_wide_block_parsed_backwards(device: HostDevice) -> None:
    compare(device, make_content(8, NARROW + 4096), NARROW + 2048, BACKWARD)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_largest_block(device: HostDevice) -> None:
    for options in (CodecOptions(Codec.GOMPRESSO_BIT, 6), CodecOptions(Codec.GOMPRESSO_BYTE, 3), BACKWARD):
        compare(device, make_content(9, 1 << 20), 1 << 20, options)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_options(device: HostDevice) -> None:
    for seed, options in enumerate(all_options()):
        compare(device, make_content(seed, 40_000), 16384, options)
