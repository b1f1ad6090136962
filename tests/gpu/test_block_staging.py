"""Threads that read compressed blocks while their caller goes on: the records that they return, and failures."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from oracle.block import build_block

from gompfs._native.blocks import BlockStaging
from gompfs.codec import BlockStatus, Codec
from gompfs.codec.headers import FACTS

NUM_BLOCKS = 200
ALIGNMENT = 16


@pytest.fixture
def blocks() -> list[bytes]:
    rng = random.Random(3)
    contents = [rng.randbytes(rng.randrange(1, 3000)) for _ in range(NUM_BLOCKS)]
    return [build_block(Codec.STORED, content, content).data for content in contents]


class Wanted:
    """Blocks in a file, with gaps after some of them, and the arguments that read them."""

    def __init__(self, path: Path, blocks: list[bytes]) -> None:
        rng = random.Random(4)
        self.path = path
        self.blocks = blocks
        self.offsets = []
        with open(path, "wb") as file:
            for block in blocks:
                file.write(bytes(rng.choice([0, 0, 0, 7])))
                self.offsets.append(file.tell())
                file.write(block)
        sizes = np.array([len(block) for block in blocks])
        self.sizes = sizes.astype(np.uint32)
        ends = np.cumsum(-(-sizes // ALIGNMENT) * ALIGNMENT)
        self.targets = (ends - (-(-sizes // ALIGNMENT) * ALIGNMENT)).astype(np.uint64)
        self.out = bytearray(int(ends[-1]))

    def begin(self, num_threads: int, *, source: int | list[memoryview] | None = None) -> BlockStaging:
        """Reads the file by default, or another one, by its descriptor, or memory."""
        source = os.open(self.path, os.O_RDONLY) if source is None else source
        return BlockStaging(
            source, np.array(self.offsets, np.uint64), self.sizes, np.array(self.content_sizes, np.uint32),
            np.zeros(len(self.blocks), np.uint8), self.targets, self.out, num_threads,
        )  # fmt: skip

    @property
    def content_sizes(self) -> list[int]:
        return [len(block) - len(build_block(Codec.STORED, b"", b"").data) for block in self.blocks]

    def at_target(self, number: int) -> bytes:
        start = int(self.targets[number])
        return bytes(self.out[start : start + len(self.blocks[number])])


def records(staging: BlockStaging) -> NDArray[np.void]:
    return np.frombuffer(staging.wait(), FACTS)


@pytest.mark.parametrize("num_threads", [1, 2, 7])
def test_blocks(num_threads: int, blocks: list[bytes], tmp_path: Path) -> None:
    """Several at once, which are waited for in another order; one is damaged, and the last ones are cut off."""
    damaged, cut = 17, 195
    wanted = [Wanted(tmp_path / str(number), blocks) for number in range(4)]
    with open(wanted[0].path, "r+b") as file:
        file.seek(wanted[0].offsets[damaged] + len(blocks[damaged]) - 1)
        file.write(bytes([blocks[damaged][-1] ^ 1]))
        file.truncate(wanted[0].offsets[cut] + 5)
    begun = [each.begin(num_threads) for each in wanted]
    for number in (2, 0, 3, 1):
        found = records(begun[number])
        assert records(begun[number]).tolist() == found.tolist()  # again
        expected = [BlockStatus.OK] * NUM_BLOCKS
        if number == 0:
            expected[damaged] = BlockStatus.BAD_CHECKSUM
            expected[cut:] = [BlockStatus.BAD_HEADER] * (NUM_BLOCKS - cut)
        assert found["status"].tolist() == expected
        sound = [index for index, status in enumerate(expected) if status is BlockStatus.OK]
        assert found["uncompressed_size"][sound].tolist() == [wanted[number].content_sizes[index] for index in sound]
        assert [wanted[number].at_target(index) for index in sound] == [blocks[index] for index in sound]


def test_blocks_in_memory(blocks: list[bytes], tmp_path: Path) -> None:
    """They are copied to their targets, and checked there."""
    wanted = Wanted(tmp_path / "file", blocks)
    given = [memoryview(block) for block in blocks]
    given[9] = memoryview(blocks[9][:-1] + bytes([blocks[9][-1] ^ 1]))
    found = records(wanted.begin(3, source=given))
    assert np.flatnonzero(found["status"]).tolist() == [9]
    assert [wanted.at_target(index) for index in range(NUM_BLOCKS) if index != 9] == blocks[:9] + blocks[10:]
    for mistake in (given[1:], [given[0][1:], *given[1:]]):
        with pytest.raises(ValueError, match="another size"):
            wanted.begin(3, source=mistake)


def test_failures(blocks: list[bytes], tmp_path: Path) -> None:
    """A file that cannot be read, and memory that is too small. The descriptor is closed in any case."""
    wanted = Wanted(tmp_path / "file", blocks)
    num_open = len(os.listdir("/proc/self/fd"))
    for num_threads in (1, 4):
        staging = wanted.begin(num_threads, source=os.open(wanted.path, os.O_WRONLY))
        with pytest.raises(OSError, match="Bad file descriptor"):
            staging.wait()
        wanted.begin(num_threads)  # nobody waits
    wanted.out = bytearray(len(wanted.out) - ALIGNMENT)
    with pytest.raises(ValueError, match="does not fit"):
        wanted.begin(2)
    del staging
    assert len(os.listdir("/proc/self/fd")) == num_open


def test_the_child_of_a_fork_does_not_wait_for_threads(blocks: list[bytes], tmp_path: Path) -> None:
    """They read for the parent, which goes on."""
    wanted = Wanted(tmp_path / "file", blocks * 5)
    for _ in range(20):
        staging = wanted.begin(4)
        if (child := os.fork()) == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)
            del staging
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert not records(staging)["status"].any()
