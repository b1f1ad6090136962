"""The first read of a file through a mount: C++ asks Python for the layout only, with few function calls."""

from __future__ import annotations

import random
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType

import pytest
from fake_device import Device, reply
from fake_device import request as any_request
from head_engine import HeadEngine
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.engine import select_engine

READ = 15
MAX_CALLS = 5


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("touch") / "tree"
    root.mkdir()
    rng = random.Random(3)
    for number in range(20):
        (root / f"{number:02d}").write_bytes(rng.randbytes(40_000))
    return root


@pytest.fixture(scope="module")
def archive_path(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("touch") / "a.gomp"
    pack(target, tree, block_size=16 << 10)
    return target


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """The names of the Python functions called by threads that are started from now on."""
    names: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_qualname)

    threading.setprofile(note)
    yield names
    threading.setprofile(None)


def read(node: int, size: int) -> bytes:
    return any_request(READ, node, struct.pack("<QQIIQII", 0, 0, size, 0, 0, 0, 0))


def test_the_first_read_of_a_file_calls_few_python_functions(archive_path: Path, tree: Path, calls: list[str]) -> None:
    with Archive(archive_path, engine=select_engine("cpu")) as archive:
        first, second = (archive.resolve(name).ino for name in ("07", "11"))
        with closing(Device(archive.blocks.reader)) as device:
            device.ask(read(1 << 62, 1))  # forwarded: the thread has started
            calls.clear()
            assert device.ask(read(first, 4096)) == reply((tree / "07").read_bytes()[:4096])
            assert 1 <= len(calls) <= MAX_CALLS, calls
            assert calls[0] == "LayoutQuery.__call__"
            calls.clear()
            assert device.ask(read(first, 100)) == reply((tree / "07").read_bytes()[:100])
            assert device.ask(read(second, 100)) == reply((tree / "11").read_bytes()[:100])
            assert calls == [], "one query returns the layouts of many files"
            assert device.forwarded == ["read"], "only the request before the first read"


def test_files_that_are_not_there_are_forwarded(archive_path: Path) -> None:
    """Also directories. Python answers with the error."""
    with Archive(archive_path) as archive, closing(Device(archive.blocks.reader)) as device:
        for node in (1, 999_999):
            assert device.ask(read(node, 10)) == b"forwarded"


def test_the_cpu_decodes_single_blocks_for_threads_of_the_mount(archive_path: Path, tree: Path) -> None:
    with Archive(archive_path, engine=HeadEngine()) as archive:
        ino = archive.resolve("07").ino
        with closing(Device(archive.blocks.reader)) as device:
            assert device.ask(read(ino, 4096)) == reply((tree / "07").read_bytes()[:4096])
            assert device.forwarded == []
            assert archive.engine.decode_work["cpu"].num_blocks > 0
