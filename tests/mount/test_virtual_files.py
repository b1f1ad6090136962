"""Virtual files while they are computed: no thread waits for them, and all waiting readers are notified."""

from __future__ import annotations

import errno
import os
import queue
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tree_helpers import pack

from gompfs.errors import StatsUnavailableError
from gompfs.mount import spool, virtual_files
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.virtual_files import VirtualFile
from gompfs.statistics import temporary_files
from gompfs.statistics.report import Report

SECONDS = 20
MIB = 1 << 20


class SlowReport(Report):
    """A report whose pieces come from the test. None ends the report, and an exception is raised."""

    def __init__(self, size: int | None) -> None:
        self._size = size
        self.pieces: queue.Queue[bytes | Exception | None] = queue.Queue()

    @property
    def size(self) -> int | None:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self.pieces.get(timeout=SECONDS)) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def slow_file(*reports: SlowReport) -> VirtualFile:
    """Returns a virtual file whose computations return these reports, one after another."""
    waiting = iter(reports)
    return VirtualFile(lambda: next(waiting))


def wait(ask: Callable[[], Any]) -> Any:
    """Asks until there is an answer, as the mount does."""
    while True:
        try:
            return ask()
        except NotReadyError as error:
            told = threading.Event()
            error.call_later(told.set)
            assert told.wait(SECONDS)


def is_ready(ask: Callable[[], Any]) -> bool:
    try:
        ask()
    except NotReadyError:
        return False
    return True


def test_the_beginning_is_read_while_the_rest_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    report = SlowReport(10)
    file = slow_file(report)
    assert wait(file.size) == 10
    assert not is_ready(lambda: file.read(0, 1))
    report.pieces.put(b"01234")
    assert wait(lambda: file.read(1, 3)) == b"123"
    assert not is_ready(lambda: file.read(4, 2))
    report.pieces.put(b"56789")
    assert wait(lambda: file.read(4, 100)) == b"456789"
    report.pieces.put(None)
    assert file.read(10, 1) == b""


def test_a_size_that_is_known_only_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    report = SlowReport(None)
    file = slow_file(report)
    report.pieces.put(b"ab")
    assert not is_ready(file.size)
    assert not is_ready(lambda: file.read(0, 1))
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(wait(file.size))) for _ in range(5)]
    for thread in threads:
        thread.start()
    report.pieces.put(None)
    for thread in threads:
        thread.join(SECONDS)
    assert answers == [2] * 5


@pytest.mark.parametrize("error", [StatsUnavailableError("no"), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))])
def test_a_failed_computation_is_tried_again(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Every waiting reader gets the error. A later read starts a new computation."""
    failing, good = SlowReport(5), SlowReport(5)
    file = slow_file(failing, good)
    assert wait(file.size) == 5
    failing.pieces.put(error)
    for _ in range(2):
        with pytest.raises(type(error)):
            wait(lambda: file.read(0, 5))
    monkeypatch.setattr(virtual_files, "_VOLATILE_SECONDS", 0)
    good.pieces.put(b"12345")
    good.pieces.put(None)
    assert wait(lambda: file.read(0, 5)) == b"12345"


def test_a_long_text_goes_to_a_file(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text after the first MiB goes to an unnamed file in $TMPDIR."""
    directory = tmp_path_factory.mktemp("spool")
    monkeypatch.setenv("TMPDIR", os.fspath(directory))
    text = bytes(range(256)) * (3 * MIB // 256) + b"end"
    written = spool.Spool()
    for start in range(0, len(text), 700_001):
        written.append(text[start : start + 700_001])
        assert written.size == min(start + 700_001, len(text))
    for start, size in ((0, 10), (MIB - 5, 10), (MIB, MIB), (0, len(text)), (len(text) - 3, 10), (len(text), 1)):
        assert written.read(start, size) == text[start : start + size]
    assert list(directory.iterdir()) == []
    opened = [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if exists(number)]
    assert any(name.startswith(os.fspath(directory)) for name in opened)
    written.close()


def exists(descriptor: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{descriptor}")


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk gives an error, not a short text."""
    report = SlowReport(2 * MIB)
    file = slow_file(report)

    def full(*_arguments: Any, **_options: Any) -> Any:
        return open("/dev/full", "r+b", buffering=0)

    monkeypatch.setattr(temporary_files.tempfile, "TemporaryFile", full)
    report.pieces.put(bytes(2 * MIB))
    report.pieces.put(None)
    with pytest.raises(OSError, match="No space left"):
        wait(lambda: file.read(0, 2 * MIB))


@pytest.fixture(scope="module")
def many_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive whose sequences take more than a second to count, next to the text that was packed."""
    directory = tmp_path_factory.mktemp("words")
    rng = random.Random(1)
    words = [b"%d" % number for number in range(40_000)]
    (directory / "text").write_bytes(b" ".join(rng.choices(words, k=1_500_000)))
    pack(directory / "a.gomp", directory / "text")
    return directory / "a.gomp"


def test_a_reader_that_is_killed(mount: Callable[..., Any], many_words: Path) -> None:
    """A killed reader does not wait for the computation that it started, and other readers are not affected."""
    mounted = mount(many_words)
    readers = [subprocess.Popen(["cat", mounted / "stats/ranked_inverted_index"], stdout=subprocess.DEVNULL)]
    readers += [subprocess.Popen(["stat", mounted / f"stats/{name}"]) for name in ("sequence_count", "inverted_index")]
    assert (mounted / "text").read_bytes()[:10] == (many_words.parent / "text").read_bytes()[:10]
    time.sleep(0.2)
    for reader in readers:
        reader.terminate()
        assert reader.wait(SECONDS) in (-signal.SIGTERM, 0)
    with subprocess.Popen(["stat", mounted / "stats/ranked_inverted_index"], stdout=subprocess.DEVNULL) as late:
        assert late.wait(SECONDS) == 0
    assert (mounted / "stats/ranked_inverted_index").stat().st_size > 0


def test_a_mount_that_ends_meanwhile(mount: Callable[..., Any], many_words: Path) -> None:
    """Neither the end of the mount nor the reader waits for the computation."""
    mounted = mount(many_words)
    command = ["cat", mounted / "stats/ranked_inverted_index"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as reader:
        time.sleep(0.3)
        assert reader.poll() is None
        assert mounted.stop() == 0
        assert reader.wait(SECONDS) == 1
    assert not os.path.ismount(mounted.path)
