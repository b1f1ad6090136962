"""The kernels that move pieces of blocks and check contents, on the host: compared with NumPy and with xxHash."""

from __future__ import annotations

import numpy as np
import pytest
from host_device import HostDevice
from native_builds import kernel_library
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

_PADDING = 16


@pytest.fixture(scope="module")
def device() -> HostDevice:
    return HostDevice(kernel_library())


def aligned(content: bytes) -> NDArray[np.uint8]:
    """Returns content at a multiple of 64, with bytes after it that no kernel may use."""
    memory = np.full(len(content) + 64 + _PADDING, 0xEE, np.uint8)
    start = -memory.ctypes.data % 64
    memory[start : start + len(content)] = np.frombuffer(content, np.uint8)
    return memory[start : start + len(content) + _PADDING]


@pytest.mark.parametrize("seed", range(6))
def test_pieces_go_to_their_places(device: HostDevice, seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [aligned(rng.bytes(int(size))) for size in rng.integers(1, 700, 9)]
    statuses = (rng.random(len(blocks)) < 0.3).astype(np.uint8)
    of_blocks, begins, sizes = [], [], []
    for _ in range(60):
        block = int(rng.integers(len(blocks)))
        begin, end = sorted(rng.integers(0, blocks[block].size - _PADDING + 1, 2).tolist())
        if begin < end:
            of_blocks.append(block), begins.append(begin), sizes.append(end - begin)
    order = rng.permutation(len(sizes))
    starts = np.cumsum(np.array(sizes)[order]) - np.array(sizes)[order]
    targets = np.empty(len(sizes), np.uint64)
    targets[order] = starts + 3
    output = np.full(sum(sizes) + 6, 0x55, np.uint8)
    expected = output.copy()
    for block, begin, size, target in zip(of_blocks, begins, sizes, targets.tolist(), strict=True):
        expected[target : target + size] = 0 if statuses[block] else blocks[block][begin : begin + size]
    device.launch(
        "reading/gather_pieces", "gather_pieces", len(sizes) * 64,
        np.array([block.ctypes.data for block in blocks], np.uint64), statuses, np.array(of_blocks, np.uint32),
        np.array(begins, np.uint32), np.array(sizes, np.uint32), targets, output, np.uint32(len(sizes)),
    )  # fmt: skip
    assert np.array_equal(output, expected)


SIZES = [*range(1, 18), 31, 32, 33, 64, 65, 96, 97, 127, 128, 129, 200, 239, 240, 241, 255, 256, 257, 320, 321, 1023,
         1024, 1025, 1088, 1089, 1090, 2047, 2048, 2049, 4095, 4096, 65535, 65536]  # fmt: skip


def test_checksums_are_those_of_xxhash(device: HostDevice) -> None:
    """A warp takes several blocks: sound ones, ones with another checksum, and ones that are damaged already."""
    contents = [np.random.default_rng(size).bytes(size) for size in SIZES]
    blocks = [aligned(content) for content in contents]
    checksums = np.array([xxh3_64_intdigest(content) for content in contents], np.uint64)
    sources = np.array([block.ctypes.data for block in blocks], np.uint64)
    for wrong in (0, 1, 2):
        stored = checksums.copy()
        stored[wrong::3] ^= np.uint64(1 << 63)
        statuses = np.zeros(len(SIZES), np.uint8)
        statuses[::5] = 3
        expected = statuses.copy()
        expected[wrong::3] = np.where(statuses[wrong::3] == 0, 4, 3)
        columns = sources, np.array(SIZES, np.uint32), stored, statuses, np.uint32(len(SIZES))
        device.launch("reading/check_contents", "check_contents", len(SIZES) * 32, *columns)
        assert statuses.tolist() == expected.tolist()
