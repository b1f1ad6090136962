"""The cache of decoded blocks: its capacity, its order of eviction, and claims of blocks that several readers need."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from gompfs._native.blocks import BlockReader, FailureReason, ReadFailure

BLOCK_SIZE = 1 << 12


def content(number: int) -> bytes:
    return number.to_bytes(4, "little") * (BLOCK_SIZE // 4)


def fill(reader: BlockReader, *numbers: int) -> None:
    reader.insert(numbers, [content(number) for number in numbers])


def new_reader(capacity: int) -> BlockReader:
    """Returns a reader of a stream of 100 blocks, all of which are in one file."""
    reader = BlockReader(100, BLOCK_SIZE, capacity)
    reader.add_file(1, 100 * BLOCK_SIZE, [(0, 0, 100 * BLOCK_SIZE)])
    return reader


def read(reader: BlockReader, first: int, end: int) -> list[memoryview]:
    pieces = reader.read(1, first * BLOCK_SIZE, (end - first) * BLOCK_SIZE)
    assert isinstance(pieces, list)
    return pieces


def test_the_oldest_block_is_evicted_unless_it_was_read() -> None:
    reader = new_reader(4)
    fill(reader, 0, 1, 2, 3)
    fill(reader, 4)  # no block was read: the clock goes round once and evicts the oldest
    assert [number in reader for number in range(5)] == [False, True, True, True, True]
    assert len(reader) == 4
    assert read(reader, 1, 3)[0].tobytes() == content(1)
    fill(reader, 5)
    assert [number in reader for number in range(6)] == [False, True, True, False, True, True]


def test_asking_for_presence_does_not_count_as_use() -> None:
    reader = BlockReader(100, BLOCK_SIZE, 2)
    fill(reader, 0, 1, 2)
    assert 1 in reader
    fill(reader, 3)
    assert 1 not in reader


def test_a_block_inserted_twice_is_cached_once() -> None:
    reader = new_reader(2)
    fill(reader, 0, 0, 0, 1)
    assert len(reader) == 2
    assert [found.tobytes() for found in read(reader, 0, 2)] == [content(0), content(1)]


def test_blocks_held_by_a_reader_stay_valid() -> None:
    reader = new_reader(2)
    fill(reader, 0, 1)
    held = read(reader, 0, 2)
    for number in range(2, 100):
        fill(reader, number)
    reader.clear()
    del reader
    assert [found.tobytes() for found in held] == [content(0), content(1)]
    with pytest.raises(TypeError, match="read-only"):
        held[0][0] = 1


def test_a_missing_block_that_nothing_decodes() -> None:
    reader = new_reader(10)
    fill(reader, 3, 4, 6)
    assert [found.tobytes() for found in read(reader, 3, 5)] == [content(3), content(4)]
    missing = reader.read(1, 3 * BLOCK_SIZE, 4 * BLOCK_SIZE)
    assert isinstance(missing, ReadFailure)
    assert (missing.reason, missing.block) == (FailureReason.MISSING_BLOCK, 5)
    assert reader.num_hits == 2


def test_missing_blocks_are_decoded_in_one_call() -> None:
    """Those that a read needs, those that its reader will need next, and none that is cached."""
    reader = new_reader(100)
    fill(reader, 2, 30)
    asked: list[list[int]] = []

    def decode(numbers: list[int]) -> tuple[list[bytes], bytes]:
        asked.append(numbers)
        return [content(number) for number in numbers], bytes(number == 50 for number in numbers)

    reader.decode_with(decode, 2)
    assert [piece.tobytes() for piece in read(reader, 0, 5)] == [content(number) for number in range(5)]
    assert asked == [[0, 1], [3, 4]]
    asked.clear()
    reader.max_ahead = 8
    for number in range(5, 9):
        read(reader, number, number + 1)
    assert asked[-1] == [*range(asked[-1][0], asked[-1][-1] + 1)]
    assert len(asked[-1]) > 1
    damaged = reader.read(1, 50 * BLOCK_SIZE, 1)
    assert isinstance(damaged, ReadFailure)
    assert (damaged.reason, damaged.block, damaged.status) == (FailureReason.DAMAGED_BLOCK, 50, 1)
    asked.clear()
    reader.read(1, 50 * BLOCK_SIZE, 1)
    assert asked == [], "a damaged block is decoded once"


def test_errors_of_the_decoder_end_the_claims() -> None:
    reader = new_reader(100)

    def fail(numbers: list[int]) -> tuple[list[bytes], bytes]:
        raise OSError(f"cannot read {numbers}")

    reader.decode_with(fail, 1)
    with pytest.raises(OSError, match=r"cannot read \[7\]"):
        reader.read(1, 7 * BLOCK_SIZE, 1)
    reader.decode_with(lambda numbers: ([content(7)] * 2, b"\0"), 1)
    with pytest.raises(ValueError, match="too many"):
        reader.read(1, 7 * BLOCK_SIZE, 1)
    assert reader.claim(7)


def test_invalid_blocks_are_refused() -> None:
    reader = BlockReader(100, BLOCK_SIZE, 10)
    with pytest.raises(ValueError, match="larger than a block"):
        reader.insert([1], [bytes(BLOCK_SIZE + 1)])
    with pytest.raises(ValueError, match="number of block numbers differs"):
        reader.insert([1, 2], [b""])
    assert len(reader) == 0


@pytest.mark.parametrize("is_decoded", [True, False])
def test_readers_wait_for_a_claimed_block(is_decoded: bool) -> None:
    reader = BlockReader(100, BLOCK_SIZE, 10)
    assert [reader.claim(7), reader.claim(7), reader.claim(8)] == [True, False, True]
    assert 7 not in reader
    done = threading.Event()
    waiting = [threading.Thread(target=lambda: (reader.wait(7), done.set())) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert not done.wait(0.1)
    if is_decoded:
        fill(reader, 7)
        reader.give_up(7)  # has no effect after the insertion
    else:
        reader.give_up(7)
    for thread in waiting:
        thread.join(20)
        assert not thread.is_alive()
    assert (7 in reader) == is_decoded
    assert reader.claim(7) != is_decoded
    reader.wait(50)  # returns at once: no thread has claimed it


def test_memory_is_freed_when_the_cache_shrinks() -> None:
    """A separate process reports its resident memory with an empty, a full and a shrunk cache."""
    program = """
import os
from pathlib import Path
from gompfs._native.blocks import BlockReader

def print_resident():
    print(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))

reader = BlockReader(1 << 20, 1 << 16, 1024)
content = b"x" * (1 << 16)
print_resident()
for first in range(0, 4096, 64):
    reader.insert(range(first, first + 64), [content] * 64)
print_resident()
reader.set_capacity(64)
print_resident()
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True, timeout=60)
    before, full, shrunk = map(int, done.stdout.split())
    assert 60 << 20 < full - before < 80 << 20
    assert shrunk - before < 16 << 20
