"""Forks while threads read an archive: parent and children can both read it at once, and get the right bytes."""

from __future__ import annotations

import ctypes
import multiprocessing
import operator
import os
import random
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from range_server import serving

import gompfs
from gompfs.archive import Archive
from gompfs.engine import auto
from gompfs.engine.auto import AutoEngine
from gompfs.engine.cpu import CpuEngine
from gompfs.files import ArchiveFiles
from gompfs.filesystem import GompfsFileSystem
from gompfs.forks import ForkLock
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source

NUM_FORKS = 4
SECONDS = 15.0  # a child needs less than 1 s; the machine may be busy
CACHE_SIZE = 1 << 20  # too small for all blocks, so that readers have to decode


@pytest.fixture(scope="module")
def contents(tree: Path) -> dict[str, bytes]:
    """The content of all regular files by name."""
    paths = [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(tree)): path.read_bytes() for path in paths}


@pytest.fixture
def files(sound_archive: Path) -> Iterator[ArchiveFiles]:
    with gompfs.open(sound_archive, engine="cpu", cache_size=CACHE_SIZE) as files:
        yield files


def run_in_child(work: Callable[[], object], seconds: float = SECONDS) -> str:
    """Returns what `work` returns or raises in a forked child, as text, or `it hangs` if nothing comes in time."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(work())
        except BaseException:
            answer = traceback.format_exc()
        os.write(write_end, os.fsencode(answer)[:60_000])
        os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        answer = os.fsdecode(pipe.read()) if select.select([pipe], [], [], seconds)[0] else "it hangs"
    if answer == "it hangs":
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return answer


def wrong_files(files: ArchiveFiles, contents: dict[str, bytes], names: list[str]) -> list[str]:
    """Returns the files whose content, size or directory entry differ from what was packed."""
    return [
        name
        for name in names
        if files.read(name) != contents[name]
        or files.stat(name).st_size != len(contents[name])
        or os.path.basename(name) not in files.listdir(os.path.dirname(name))
    ]


@contextmanager
def readers(read: Callable[[random.Random], object], num_threads: int = 3) -> Iterator[None]:
    """Runs threads that call `read` repeatedly. At the end of the `with` body, raises what they raised."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def run(seed: int) -> None:
        rng = random.Random(seed)
        try:
            while not stop.is_set():
                read(rng)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(num_threads)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def reader_of(files: ArchiveFiles, contents: dict[str, bytes]) -> Callable[[random.Random], None]:
    """Returns a function that reads a random file whole, forwards or in part, and looks up names not in any cache."""

    def read(rng: random.Random) -> None:
        name = rng.choice([*contents, "big/noise", "big/text"])
        start = rng.randrange(len(contents[name]) + 1) if rng.random() < 0.5 else 0
        with files.open(name, "rb") as file:
            file.seek(start)
            assert file.read() == contents[name][start:]
        files.archive._inodes.clear()  # so that lookups reach the index
        assert files.listdir("small/deep") == ["deeper"]

    return read


def test_children_read(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    """19 of 20 children hung: on a lock held by a thread of the parent, or on a block that a thread was decoding."""
    with readers(reader_of(files, contents)):
        answers = [run_in_child(lambda: wrong_files(files, contents, [*contents])) for _ in range(NUM_FORKS)]
    assert answers == ["[]"] * NUM_FORKS


def test_children_of_children_read(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    def fork_again() -> list[str]:
        with readers(reader_of(files, contents), 2):
            return [run_in_child(lambda: wrong_files(files, contents, [*contents])) for _ in range(3)]

    with readers(reader_of(files, contents)):
        assert run_in_child(fork_again, 20) == str(["[]"] * 3)


def test_threads_of_a_child_read(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    """All threads notice at the same time that the archive must be reopened; exactly one reopens it."""

    def read_on_threads() -> int:
        with readers(reader_of(files, contents), 8):
            return len(wrong_files(files, contents, [*contents]))

    with readers(reader_of(files, contents)):
        assert [run_in_child(read_on_threads) for _ in range(3)] == ["0"] * 3


def test_open_files_are_read_in_children(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    """A child continues at the file position at the fork, as with files of the system.

    This also holds for a file that another thread is reading during the fork.
    """
    name = "big/text"
    binary, text, shared = files.open(name, "rb"), files.open(name), files.open(name, "rb")
    begin, words = binary.read(1000), text.read(1000)
    assert (begin, words.encode()) == (contents[name][:1000], contents[name][:1000])

    def read_shared(_: random.Random) -> None:
        shared.seek(0)
        shared.read()

    def read_on() -> bool:
        shared.seek(10)
        rests = [binary.read(), text.read().encode(), shared.read()]
        return rests == [contents[name][1000:], contents[name][1000:], contents[name][10:]]

    with readers(read_shared, 1), readers(reader_of(files, contents), 2):
        assert [run_in_child(read_on) for _ in range(NUM_FORKS)] == ["True"] * NUM_FORKS
    assert binary.read() == contents[name][1000:]


def test_children_drop_blocks_of_the_parent(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    """A child drops blocks of the parent, whose threads may have held the lock of that memory during the fork."""
    ino = files.stat("big/noise").st_ino
    held: list[memoryview | bytes] = []

    def let_go() -> bool:
        is_right = b"".join(held) == contents["big/noise"]
        held.clear()
        return is_right

    with readers(reader_of(files, contents)):
        for _ in range(NUM_FORKS):
            held = files.archive.read_pieces(ino, 0, len(contents["big/noise"]))
            assert run_in_child(let_go) == "True"


_SHARED: tuple[ArchiveFiles, dict[str, bytes]]


def _is_right(name: str) -> bool:
    files, contents = _SHARED
    return files.read(name) == contents[name]


def test_a_pool_reads(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    global _SHARED
    _SHARED = files, contents
    with readers(reader_of(files, contents), 4), multiprocessing.get_context("fork").Pool(4) as pool:
        assert all(pool.map_async(_is_right, [*contents] * 3, chunksize=1).get(40))


class _Opened:
    """Opens an archive in the process that calls it."""

    def __init__(self, archive: str, contents: dict[str, bytes]) -> None:
        self.archive = archive
        self.contents = contents

    def __call__(self, name: str) -> bool:
        with gompfs.open(self.archive, engine="cpu") as files:
            return files.read(name) == self.contents[name]


def test_spawned_processes_read(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    """Spawned processes inherit nothing and open the archive themselves."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert all(pool.map_async(_Opened(str(files.archive.path), contents), ["big/noise", "big/text"]).get(60))


_ENDING = """
    import os, random, sys, threading
    import gompfs

    files = gompfs.open(sys.argv[1], engine="cpu", cache_size=1 << 20)
    stop = threading.Event()

    def read():
        while not stop.is_set():
            files.read(random.choice(["big/noise", "big/text", "big/zeros"]))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(9):
        child = os.fork()
        if child == 0:
            stop.set()
            if number % 3 == 0:
                files.close()
                files.close()
            elif number % 3 == 1:
                assert len(files.read("big/noise")) == 700_000
                files.close()
            else:
                assert len(files.read("big/noise")) == 700_000
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
    stop.set()
    for thread in threads:
        thread.join()
    assert len(files.read("big/noise")) == 700_000
    files.close()
    print("done")
"""


def test_children_close_and_end(sound_archive: Path) -> None:
    """Children that read or do not read, close the archive or not, all exit normally through the interpreter."""
    # Children never close the SQLite connections of their parent: that is not safe.
    ignored = ("ignore::DeprecationWarning", "ignore:unclosed database:ResourceWarning")
    options = [argument for text in ignored for argument in ("-W", text)]
    command = [sys.executable, "-P", "-X", "dev", *options, "-c", textwrap.dedent(_ENDING)]
    ended = subprocess.run([*command, sound_archive], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_a_closed_archive_stays_closed_in_children(files: ArchiveFiles, contents: dict[str, bytes]) -> None:
    file = files.open("big/text", "rb")
    files.close()
    assert "ValueError: the archive is closed" in run_in_child(lambda: files.read("big/text"))
    assert "ValueError: the archive is closed" in run_in_child(file.read)


def test_children_see_the_generation_that_the_parent_opened(
    archive_copy: Path, contents: dict[str, bytes], tmp_path: Path
) -> None:
    with gompfs.open(archive_copy, engine="cpu") as files:
        names = files.listdir()
        (tmp_path / "more").write_text("more")
        add_to_archive(archive_copy, [open_source(tmp_path / "more")], PackOptions(), engine=CpuEngine())
        answer = run_in_child(lambda: (files.listdir() == names, wrong_files(files, contents, [*contents])))
        assert answer == "(True, [])"
    with gompfs.open(archive_copy, engine="cpu") as files:
        assert "more" in files.listdir()


@pytest.mark.parametrize("is_remote", [False, True])
def test_file_systems_of_fsspec(sound_archive: Path, contents: dict[str, bytes], is_remote: bool) -> None:
    """A store with a thread of its own, such as HTTP, is created again in the child."""
    with serving(sound_archive.parent) as server:
        url = f"{server.url}/{sound_archive.name}" if is_remote else str(sound_archive)
        system = GompfsFileSystem(url, engine="cpu", skip_instance_cache=True)
        try:
            names = ["big/text", "small/deep/deeper/leaf"]
            held = system.open("big/text", "rb")

            def read() -> list[bool]:
                return [system.cat_file(name) == contents[name] for name in names] + [held.read() == contents[names[0]]]

            with readers(reader_of(system.files, contents), 2):
                assert [run_in_child(read, 20) for _ in range(3)] == [str([True] * 3)] * 3
        finally:
            system.close()


class _Gpu(CpuEngine):
    """Stands for a GPU that the parent has started. It fails in a child, as CUDA does."""

    name = "gpu"

    def __init__(self, cpu: CpuEngine) -> None:
        super().__init__()
        self.decode_work |= cpu.decode_work

    def archive_decoder(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError("CUDA in a child")


def test_a_gpu_started_by_auto_is_not_used_in_children(
    sound_archive: Path, contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "_LEAST_GPU_BYTES", 0)
    engine = AutoEngine()
    engine._is_started = True
    engine._gpu = _Gpu(engine._cpu)
    with ArchiveFiles(Archive(sound_archive, engine=engine)) as files:
        with pytest.raises(AssertionError, match="CUDA in a child"):
            files.archive.stored.decode_stream([0])
        answer = run_in_child(
            lambda: (
                *(wrong_files(files, contents, [*contents]), engine.name, engine.reason),
                engine.accelerator.arrays(1 << 50),
            )
        )
    reason = "auto: the CPU, because this process was forked from one that had started the GPU"
    assert answer == f"([], 'cpu', '{reason}', None)"


@pytest.mark.gpu
def test_the_gpu_engine_refuses_to_work_in_a_child(sound_archive: Path, contents: dict[str, bytes]) -> None:
    with gompfs.open(sound_archive, engine="gpu") as files:
        assert wrong_files(files, contents, [*contents]) == []
        with readers(reader_of(files, contents)):
            for _ in range(NUM_FORKS):
                answer = run_in_child(lambda: files.archive.engine.allocate(1 << 30))
                assert answer.splitlines()[-1].endswith(
                    "EngineUnavailableError: the gpu engine cannot be used in a forked process, as CUDA "
                    "does not work there: start processes by spawn, or open the archive with engine='cpu'"
                )
                assert run_in_child(lambda: wrong_files(files, contents, [*contents])) == "[]", "single blocks"
                assert run_in_child(lambda: _Opened(str(sound_archive), contents)("big/text")) == "True"
    with gompfs.open(sound_archive, engine="auto") as files:
        engine = files.archive.engine
        assert isinstance(engine, AutoEngine)
        engine.start_gpu()
        engine._is_started = True
        with readers(reader_of(files, contents)):
            answers = [run_in_child(lambda: wrong_files(files, contents, [*contents])) for _ in range(NUM_FORKS)]
        assert answers == ["[]"] * NUM_FORKS


def test_a_fork_waits_for_a_lock() -> None:
    """The lock protects a library with locks of its own, which a child could not release.

    Another thread is inside that library when the process forks.
    """
    lock = ForkLock()
    entered, left = threading.Event(), []

    def work() -> None:
        with lock:
            entered.set()
            time.sleep(0.3)
            left.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()

    def take() -> list[bool]:
        with lock:
            return left

    assert run_in_child(take) == "[True]"
    thread.join()
    with lock:
        assert run_in_child(take) == "[True]", "the thread that forks may hold it"


def test_a_fork_does_not_wait_forever_for_a_busy_lock() -> None:
    """Several threads take turns, so that the lock is never free."""
    lock = ForkLock()

    def take_and_hold(_: random.Random) -> None:
        with lock:
            time.sleep(0.01)

    with readers(take_and_hold, 4):
        started = time.monotonic()
        for _ in range(10):
            assert run_in_child(lambda: lock.__enter__()) == "None"
        assert time.monotonic() - started < 60


def test_a_signal_is_not_lost_when_an_object_dies() -> None:
    """Its handler runs when Python code does, and an error that it raises in the callback of a weakref is ignored."""

    class HandlerError(Exception):
        pass

    def handler(_number: int, _frame: object) -> None:
        raise HandlerError

    before = signal.signal(signal.SIGUSR1, handler)
    locks = [ForkLock()]
    raise_signal = partial(ctypes.CDLL(None)["raise"], int(signal.SIGUSR1))
    try:
        with pytest.raises(HandlerError):
            deque(map(operator.call, (raise_signal, locks.clear)))  # no Python code runs between the two
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert locks == []
