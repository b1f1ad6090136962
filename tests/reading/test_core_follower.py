"""A daemon thread that answers many requests of one requester moves to the requester's core."""

from __future__ import annotations

import os
import stat
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from fake_device import Device, request

from gompfs._native.blocks import BlockReader
from gompfs._native.fuse import Listing, ListingTable
from gompfs.model import Inode

LOOKUP, READ = 1, 15
IN_A_ROW = 32
ALL = os.sched_getaffinity(0)

pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="needs two cores")


class Requester:
    """A thread that stays on one core and does nothing else."""

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._wanted = self.core = max(ALL)

    def _run(self) -> None:
        while not self._is_over.wait(0.001):
            wanted = self._wanted
            os.sched_setaffinity(0, {wanted})
            self.core = wanted

    def start(self) -> int:
        """Starts the thread and returns its number."""
        self._thread.start()
        self.move(min(ALL))
        self.move(max(ALL))
        assert self._thread.native_id is not None
        return self._thread.native_id

    def move(self, core: int) -> None:
        """Moves the thread to another core."""
        self._wanted = core
        while self.core != core:
            time.sleep(0.001)

    def stop(self) -> None:
        """Ends the thread."""
        self._is_over.set()
        self._thread.join()


@pytest.fixture
def requester() -> Iterator[Requester]:
    made = Requester()
    yield made
    made.stop()


@pytest.fixture
def device() -> Iterator[Device]:
    listings = ListingTable(1 << 20)
    listings.insert(2, Listing(2, [(b"a", Inode(3, stat.S_IFREG, 0, 0, 0, 0, 1))], 60))
    reader = BlockReader(1, 1 << 12, 1)
    reader.insert([0], [bytes(1 << 12)])
    reader.add_file(3, 100, [(0, 0, 100)])
    made = Device(reader, listings)
    yield made
    made.close()


def walk(device: Device, thread: int, count: int = IN_A_ROW) -> None:
    for _ in range(count):
        assert device.ask(request(LOOKUP, 2, b"a\0", thread=thread)) != b"forwarded"
    # A request is noted after its answer, before the next request is taken. This last request has no requester and does
    # not count.
    device.ask(request(LOOKUP, 2, b"a\0"))


def test_many_requests_in_a_row_bind_the_thread(device: Device, requester: Requester) -> None:
    number = requester.start()
    walk(device, number, IN_A_ROW - 1)
    assert device.cores == ALL
    walk(device, number)
    assert device.cores == {requester.core}
    requester.move(min(ALL))
    walk(device, number)
    assert device.cores == {min(ALL)}
    walk(device, threading.get_native_id(), 1)
    assert device.cores == ALL
    walk(device, number, 2 * IN_A_ROW)
    assert device.cores == {min(ALL)}


def test_reads_are_answered_anywhere(device: Device, requester: Requester) -> None:
    """Copying takes longer than waking another thread, and the reader of a file may compute meanwhile."""
    number = requester.start()
    walk(device, number)
    assert device.cores == {requester.core}
    answer = device.ask(request(READ, 3, struct.pack("<QQIIQII", 0, 0, 4096, 0, 0, 0, 0), thread=number))
    assert answer[16:] == bytes(100)
    walk(device, number, 1)
    assert device.cores == ALL


def test_python_runs_on_all_cores(device: Device, requester: Requester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads started by Python inherit the cores of the thread that starts them."""
    number = requester.start()
    seen: list[set[int]] = []
    forward = device.forward

    def look(operation: str) -> None:
        seen.append(os.sched_getaffinity(0))
        forward(operation)

    monkeypatch.setattr(device, "forward", look)
    walk(device, number)
    assert device.cores == {requester.core}
    assert device.ask(request(LOOKUP, 99, b"a\0", thread=number)) == b"forwarded"
    assert seen == [ALL]


def test_unknown_requesters(device: Device) -> None:
    """The requester has no number, since it is in another PID namespace, or it has ended."""
    for number in (0, (1 << 32) - 1, (1 << 22) + 1):
        walk(device, number, 3 * IN_A_ROW)
        assert device.cores == ALL
