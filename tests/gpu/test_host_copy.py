"""Copies between pinned and other memory: the same bytes as NumPy's, on any number of threads."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from cupy_on_host import cupy_on_host

from gompfs._native.gpu import copy_runs
from gompfs.gpu.device.host_copy import copy_bytes


def columns(*rows: tuple[int, int, int]) -> list[np.ndarray]:
    return list(np.array(rows, np.uint64).reshape(-1, 3).T.copy())


@pytest.mark.parametrize("num_threads", [1, 4])
def test_runs_of_any_size(num_threads: int) -> None:
    rng = np.random.default_rng(3)
    source = rng.integers(0, 256, 5_000_000, np.uint8)
    sizes = np.concatenate([rng.integers(0, 3000, 300), [0, 1, 262_144, 262_145, 1_000_000]])
    ends = np.cumsum(sizes + 7)
    offsets, sources = ends - sizes, rng.integers(0, source.size - sizes)
    target, expected = np.full(ends[-1] + 9, 0xA5, np.uint8), np.full(ends[-1] + 9, 0xA5, np.uint8)
    for start, to, size in zip(sources, offsets, sizes, strict=True):
        expected[to : to + size] = source[start : start + size]
    copy_runs(source.data, target.data, *(each.astype(np.uint64) for each in (sources, offsets, sizes)), num_threads)
    assert np.array_equal(target, expected)


def test_all_bytes() -> None:
    for size in (0, 1, 3_000_001):
        source, target = np.random.default_rng(size).bytes(size), bytearray(size + 1)
        copy_bytes(source, target, 3)
        assert target == source + b"\0"


@pytest.mark.parametrize("run", [(1, 0, 100), (0, 1, 100), (101, 0, 0), (2**64 - 1, 0, 2), (0, 0, 2**64 - 1)])
def test_runs_outside_are_refused_before_anything_is_copied(run: tuple[int, int, int]) -> None:
    target = bytearray(100)
    with pytest.raises(ValueError, match="inside"):
        copy_runs(b"x" * 100, target, *columns((0, 0, 50), run), 2)
    with pytest.raises(ValueError, match="each run needs"):
        copy_runs(b"x" * 100, target, *columns((0, 0, 50))[:2], np.zeros(2, np.uint64), 2)
    assert target == bytes(100)


def test_runs_of_a_slice_put_its_blocks_where_the_caller_wants_them() -> None:
    """Blocks of any sizes and order: their content, aligned as on the device, arrives without gaps."""
    with cupy_on_host():
        from gompfs.gpu.decode import outputs
        from gompfs.gpu.decode.layout import OUTPUT_ALIGNMENT, lay_out
        from gompfs.gpu.decode.outputs import HostOutput
        from gompfs.gpu.decode.slots import DecodeSlot

        rng, slot = np.random.default_rng(8), DecodeSlot()
        for _ in range(50):
            all_sizes = rng.choice([32, 64, 1000, 4096, 0], 40).astype(np.uint32)
            all_offsets = np.cumsum(all_sizes, dtype=np.uint64) - all_sizes
            chosen = np.sort(rng.choice(40, rng.integers(1, 41), replace=False))
            sizes, offsets = all_sizes[chosen], all_offsets[chosen]
            targets, _ = lay_out(sizes, OUTPUT_ALIGNMENT)
            target, expected = np.zeros((2, int(all_sizes.sum())), np.uint8)
            with patch.object(outputs, "is_pinned", lambda _: False):
                output = HostOutput(target.data, offsets, sizes, targets, 2)
            for indexes in np.array_split(np.arange(chosen.size), 2):
                if not indexes.size:
                    continue
                memory, base = output.memory(slot, indexes)
                memory[:] = rng.integers(1, 256, memory.size, np.uint8)
                for index in indexes:
                    start, at, size = int(offsets[index]), int(targets[index]) - base, int(sizes[index])
                    expected[start : start + size] = memory[at : at + size]
                complete = output.fetch(slot, indexes)
                if complete is not None:
                    complete()
            assert np.array_equal(target, expected)
