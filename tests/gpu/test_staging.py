"""Copies of arrays to and from a device, through pinned memory. The stand-in copies when somebody waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gpus_on_host
import numpy as np
import pytest
from gpus_on_host import GpuArray, Gpus
from native_builds import kernel_library
from numpy.typing import NDArray

PIECE_BYTES = 1000


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpus]:
    """Devices that do copies on a stream when an event is waited for, so that forgetting to wait gives wrong bytes."""
    queued: list[Callable[[], object]] = []
    get, put, wait = GpuArray.get, GpuArray.set, gpus_on_host.Event.synchronize

    def get_later(self: GpuArray, stream: Any = None, out: Any = None, blocking: bool = True) -> Any:
        if stream is None or blocking:
            return get(self, stream, out)
        return queued.append(lambda: get(self, stream, out))

    def put_later(self: GpuArray, array: NDArray[Any], stream: Any = None) -> None:
        if stream is None:
            put(self, array)
        else:
            queued.append(lambda: put(self, array, stream))

    def wait_for_all(event: Any) -> None:
        while queued:
            queued.pop(0)()
        wait(event)

    monkeypatch.setattr(GpuArray, "get", get_later)
    monkeypatch.setattr(GpuArray, "set", put_later)
    monkeypatch.setattr(gpus_on_host.Event, "synchronize", wait_for_all)
    with gpus_on_host.gpus_on_host(2, kernel_library()) as found:
        from gompfs.gpu.device import cupy_arrays, pinned_copies

        monkeypatch.setattr(pinned_copies, "_PIECE_BYTES", PIECE_BYTES)
        monkeypatch.setattr(cupy_arrays, "_LEAST_STAGED", PIECE_BYTES // 2)
        yield found
        assert not queued


@pytest.mark.parametrize("size", [0, 1, 499, 500, 1000, 1001, 3000, 3001, 12_345])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_there_and_back(gpus: Gpus, size: int, dtype: type) -> None:
    from gompfs.gpu.device.cuda import pinned_array
    from gompfs.gpu.device.cupy_arrays import GpuArrays

    array = np.random.default_rng(size).integers(0, 256, size).astype(dtype)
    matrix = array[: size // 3 * 3].reshape(-1, 3)
    with GpuArrays(1) as device:
        for given in (array, matrix, matrix.T.copy()):
            on_device = device.upload(given)
            assert on_device.owner is gpus[1]
            assert np.array_equal(on_device.get_anywhere(), given)
            for pinned in (False, True):
                found = device.download(on_device, pinned=pinned)
                assert (found.dtype, found.shape) == (given.dtype, given.shape)
                assert np.array_equal(found, given)
        held = pinned_array(max(array.nbytes, 1))[: array.nbytes].view(dtype)
        held[:] = array
        before = gpus[1].pinned
        for _ in range(3):
            assert np.array_equal(device.download(device.upload(held)), array)
            assert np.array_equal(device.download(device.upload(array)), array)
        assert gpus[1].pinned == before, "pinned memory is used again"
    assert gpus[0].pinned == 0


def test_only_large_copies_of_pageable_memory_pass_through_pinned_memory(gpus: Gpus) -> None:
    from gompfs.gpu.device.cuda import pinned_array
    from gompfs.gpu.device.cupy_arrays import GpuArrays

    with GpuArrays(0) as device:
        held = pinned_array(5000)
        held[:] = 7
        before = gpus[0].pinned
        device.download(device.upload(np.zeros(499, np.uint8)))
        small = device.upload(held)
        assert gpus[0].pinned == before
        device.download(small)
        assert gpus[0].pinned > before


def test_a_device_that_is_entered_twice(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when an answer goes to a file while the next one is computed: afterwards memory comes from where it did."""
    from gompfs.gpu.device.cupy_arrays import GpuArrays, cupy

    used: list[object] = []

    @contextmanager
    def using_allocator(allocator: object) -> Iterator[None]:
        before = used.copy()
        used[:] = [allocator]
        yield
        used[:] = before

    monkeypatch.setattr(cupy.cuda, "using_allocator", using_allocator)
    with GpuArrays(0) as device:
        of_device = used.copy()
        with device:
            assert used == of_device
        assert used == of_device
    assert used == []
