"""Copies between pinned and other memory: the same bytes as NumPy's, on any number of threads."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from cupy_on_host import cupy_on_host

from gompfs._native.gpu import copy_runs
from gompfs.gpu.host_copy import copy_bytes


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
        from gompfs.gpu.batch import OUTPUT_ALIGNMENT, GpuBatch, lay_out

        rng = np.random.default_rng(8)
        for _ in range(50):
            sizes = rng.choice([32, 64, 1000, 4096, 0], 40).astype(np.uint64)
            batch = GpuBatch.__new__(GpuBatch)
            batch._sizes, batch._offsets = sizes, np.cumsum(sizes, dtype=np.uint64) - sizes
            indexes = np.sort(rng.choice(40, rng.integers(1, 41), replace=False))
            offsets, size = lay_out(sizes[indexes], OUTPUT_ALIGNMENT)
            output = rng.integers(1, 256, size, np.uint8)
            target, expected = np.zeros((2, int(sizes.sum())), np.uint8)
            for index, at in zip(indexes, offsets.tolist(), strict=True):
                start, length = int(batch._offsets[index]), int(sizes[index])
                expected[start : start + length] = output[at : at + length]
            runs = batch._runs(SimpleNamespace(indexes=indexes, output_offsets=offsets))  # type: ignore[arg-type]
            assert len(runs[0]) <= indexes.size
            copy_runs(output.data, target.data, *runs, 2)
            assert np.array_equal(target, expected)
