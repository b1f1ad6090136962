"""Traversal on a GPU gives the same bytes as the CPU."""

from __future__ import annotations

import random

import pytest
from device_cases import cases, compare
from plain_grammars import plain_grammar_of
from round_cases import compare_in_rounds

from gompfs._native.statistics import Direction
from gompfs.engine import select_engine
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.options import GpuOptions

pytestmark = pytest.mark.gpu


def test_same_bytes_as_the_cpu(gpu: ArrayDevice) -> None:
    for name, grammars, paths in cases():
        compare(gpu, grammars, paths, name)


def test_wide_levels(gpu: ArrayDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gompfs.statistics.gpu.forest._MAX_NARROW", 4)
    for name, grammars, paths in cases():
        compare(gpu, grammars, paths, name, lengths=(3,))


def test_mask_rounds(gpu: ArrayDevice) -> None:
    """The kernels of the experiment."""
    for name, grammars, paths in cases():
        compare_in_rounds(gpu, grammars, paths, name)


@pytest.mark.usefixtures("empty_device_memory")
def test_memory_is_bounded() -> None:
    """Two million words, in ranges of files that fit in 64 MiB."""
    rng = random.Random(9)
    vocabulary = [b"%d" % int(rng.paretovariate(0.5)) for _ in range(50_000)]
    files = [(ino, b" ".join(rng.choices(vocabulary, k=20_000))) for ino in range(1, 101)]
    device = select_engine("gpu", gpu=GpuOptions(memory=64 << 20)).accelerator.arrays(0)
    assert device is not None
    paths = {ino: b"%d" % ino for ino, _ in files}
    times = compare(device, [plain_grammar_of(files)], paths, directions=[Direction.AUTO], lengths=(3,))
    assert times.directions.total() > 4
    assert 16 << 20 < device.peak_bytes <= 64 << 20  # type: ignore[attr-defined]


def test_auto_uses_the_gpu_for_large_grammars() -> None:
    engine = select_engine("auto")
    assert engine.accelerator.arrays(100_000) is None
    device = engine.accelerator.arrays(1 << 40)
    assert device is not None
    assert f"statistics of large grammars on {device.name}" in engine.reason
