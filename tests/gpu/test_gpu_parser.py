"""Blocks parsed by a GPU, compared with the CPU's parser."""

from __future__ import annotations

import pytest
from parse_cases import all_options, compare, make_content
from payloads import CORPUS

from gompfs.codec import Codec, CodecOptions
from gompfs.gpu.device.arrays import ArrayDevice

pytestmark = pytest.mark.gpu
BACKWARD = CodecOptions(level=8)


@pytest.fixture(scope="module")
def device() -> ArrayDevice:
    from gompfs.gpu.device.cupy_arrays import GpuArrays

    return GpuArrays()


@pytest.mark.parametrize("block_size", [1 << 14, 1 << 16, 1 << 17])
def test_all_options(device: ArrayDevice, block_size: int) -> None:
    for seed, options in enumerate(all_options()):
        compare(device, make_content(seed, 300_000), block_size, options)


def test_files(device: ArrayDevice) -> None:
    for path in sorted(CORPUS.rglob("*")):
        if path.is_file() and path.stat().st_size != 0:
            for options in (CodecOptions(), CodecOptions(Codec.GOMPRESSO_BYTE, 3), CodecOptions(level=1), BACKWARD):
                compare(device, path.read_bytes()[: 4 << 20], 1 << 16, options)
