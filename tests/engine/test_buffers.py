"""The buffers that engines lend for decoded blocks."""

from __future__ import annotations

import gc

import numpy as np

from gompfs._native.codec import BufferPool


def address(view: memoryview) -> int:
    return int(np.frombuffer(view, np.uint8).ctypes.data)


def test_a_buffer_is_reused_after_its_last_view_is_gone() -> None:
    pool = BufferPool()
    lent = pool.allocate(100_000)
    place, part = address(lent), lent[10:20].toreadonly()
    del lent
    assert address(pool.allocate(100_000)) != place
    del part
    gc.collect()
    again = pool.allocate(90_000)
    assert (len(again), address(again)) == (90_000, place)


def test_lent_buffers_do_not_overlap() -> None:
    pool = BufferPool()
    views = [pool.allocate(1 << 20) for _ in range(8)]
    for number, view in enumerate(views):
        view[:] = bytes([number]) * len(view)
    assert all(bytes(view) == bytes([number]) * len(view) for number, view in enumerate(views))


def test_a_small_buffer_does_not_use_a_large_one() -> None:
    pool = BufferPool()
    place = address(pool.allocate(32 << 20))
    small = pool.allocate(1 << 16)
    assert address(small) != place


def test_an_empty_buffer() -> None:
    assert len(BufferPool().allocate(0)) == 0


def test_free_memory_is_bounded() -> None:
    pool = BufferPool()
    views = [pool.allocate(40 << 20) for _ in range(4)]
    del views
    gc.collect()
    assert pool.num_free_bytes <= 64 << 20
