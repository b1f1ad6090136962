"""Counting of decoded blocks by engine."""

from __future__ import annotations

import threading
import time

import pytest

from gompfs.codec import Codec, CodecOptions
from gompfs.codec.decode_work import DecodeWork
from gompfs.engine import Engine, select_engine


def test_concurrent_batches_count_their_time_once() -> None:
    work = DecodeWork()
    all_at_work = threading.Barrier(4)

    def decode() -> None:
        with work.batch(2, 100):
            all_at_work.wait()
            time.sleep(0.2)

    threads = [threading.Thread(target=decode) for _ in range(3)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    all_at_work.wait()
    assert 0 < work.seconds <= time.perf_counter() - started  # the time of unfinished batches is included
    for thread in threads:
        thread.join()
    assert (work.num_blocks, work.num_bytes) == (6, 300)
    assert 0.2 <= work.seconds <= time.perf_counter() - started
    seconds = work.seconds
    time.sleep(0.01)
    assert work.seconds == seconds


def test_a_failed_batch_counts_time_only() -> None:
    work = DecodeWork()
    with pytest.raises(ValueError, match="the output"), work.batch(1, 1):
        raise ValueError("the output is too small")
    assert (work.num_blocks, work.num_bytes) == (0, 0)
    seconds = work.seconds
    assert seconds > 0
    assert work.seconds == seconds


def test_engines_count_what_they_decode() -> None:
    engine: Engine = select_engine("cpu")
    stream = bytes(range(200)) * 1000
    encoded = engine.encode_blocks(stream, 1 << 14, CodecOptions(Codec.GOMPRESSO_BIT))
    blocks = [block.data for block in encoded]
    for _ in range(2):
        engine.decode_blocks(blocks, memoryview(bytearray(200_000)))
    ((decoder, work),) = engine.decode_work.items()
    assert decoder == "cpu"
    assert (work.num_blocks, work.num_bytes) == (2 * len(blocks), 400_000)
    assert work.seconds > 0
