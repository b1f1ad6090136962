"""^C ends every command soon, at any moment: with one line, status 130, and no temporary file left."""

from __future__ import annotations

import functools
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tree_helpers import PACKAGE_PARENT, pack

from gompfs.codec import Codec

SECONDS = 2.0
"""The maximum time from ^C to the end of a command, if each runnable process has a core."""
CPU_SECONDS = 0.6
"""The maximum CPU time that a command may use after ^C."""


STORED = Codec.STORED


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupt(
    arguments: Sequence[str | Path], moment: float, place: Path, number: signal.Signals = signal.SIGINT
) -> tuple[int, bytes, float]:
    """Runs gompfs and sends the signal once it has used `moment` seconds of CPU time.

    CPU time is used since it does not depend on other processes. Returns the status, stderr, and how long the process
    lived after the signal (0 if it had ended before).
    """
    place.mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "gompfs", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, "TMPDIR": str(place)},
        # a shell starts background processes with SIGINT ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while (computed := cpu_seconds(process.pid)) < moment and not has_ended(process.pid):
            time.sleep(0.005)
        if has_ended(process.pid):
            _, errors = process.communicate()
            return process.returncode, errors, 0.0
        started = time.monotonic()
        process.send_signal(number)
        while not has_ended(process.pid):
            time.sleep(0.005)
        seconds = time.monotonic() - started
        computed = cpu_seconds(process.pid) - computed
        _, errors = process.communicate()
        assert computed < CPU_SECONDS, f"computes for {computed:.1f} s after the signal at {moment:.2f} s"
        return process.returncode, errors, seconds


def has_ended(pid: int) -> bool:
    """Returns whether a child process is a zombie: it has ended, but its status was not fetched yet."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def longest() -> float:
    """Returns SECONDS, or more if several processes share the cores."""
    return SECONDS * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


@functools.cache
def whole_seconds(*arguments: str | Path) -> float:
    """Returns the CPU time of a gompfs command that is not interrupted; it depends on the machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-P", "-m", "gompfs", *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": PACKAGE_PARENT},
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def check(arguments: Sequence[str | Path], moment: float, place: Path) -> bool:
    """Returns whether the command was interrupted, after checking that it ended as it should."""
    status, errors, seconds = interrupt(arguments, moment, place)
    assert os.listdir(place) == []
    if status == 0:  # it had ended before the signal, or was just ending
        assert errors == b""
        return False
    assert (status, errors) == (130, b"gompfs: interrupted\n"), moment
    assert seconds < longest(), f"{seconds:.1f} s from ^C after {moment:.2f} s to the end"
    return True


def write_words(path: Path, count: int) -> Path:
    """Writes a text of `count` words in which hardly any sequence occurs twice."""
    numbers = np.random.default_rng(1).integers(0, 300_000, count)
    text = np.full((count, 7), ord(" "), np.uint8)
    for digit in range(6):
        text[:, 5 - digit] = ord("0") + numbers // 10**digit % 10
    path.write_bytes(text.tobytes())
    return path


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive whose sequences take more than a second to count, next to the text that was packed."""
    place = tmp_path_factory.mktemp("words")
    text = write_words(place / "text", 2_000_000)
    pack(place / "words.gomp", text, codec=STORED)
    return place / "words.gomp"


STATISTICS = [
    ("sequence_count", "--n", "5"),
    ("ranked_inverted_index",),
    ("inverted_index",),
    ("term_vector",),
    ("tfidf",),
    ("wordcount",),
    # the first two words of the text
    ("phrase/{:06} {:06}".format(*np.random.default_rng(1).integers(0, 300_000, 2)),),
]


@pytest.mark.parametrize("arguments", STATISTICS, ids=" ".join)
def test_statistics(words: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Statistics continued for up to 80 s in C++ code that did not check for signals."""
    whole = whole_seconds("stats", words, *arguments)
    shares = (random.Random(arguments[0]).uniform(0.1, 0.8), 0.1)  # the second one if the command ends before the first
    assert any(check(["stats", words, *arguments], share * whole, tmp_path / "tmp") for share in shares)


@pytest.mark.parametrize("level", ["1", "8"])
def test_packing(words: Path, tmp_path: Path, level: str) -> None:
    """Other threads encode blocks and build rules, and the command waits for them."""
    text = words.with_name("text")
    place = tmp_path / "tmp"
    for moment in (0.2, 0.8):
        check(["pack", "-q", "--level", level, "--block-size", "1M", text, place / "new.gomp"], moment, place) or (
            place / "new.gomp"
        ).unlink(missing_ok=True)


def test_repacking(words: Path, tmp_path: Path) -> None:
    """Another thread decodes ahead; the error that ended it was printed with a traceback."""
    archive, new = tmp_path / "parts.gomp", tmp_path / "tmp/new.gomp"
    text = words.with_name("text").read_bytes()
    (tmp_path / "tree").mkdir()
    for number in range(64):
        (tmp_path / f"tree/{number}").write_bytes(text[number * 200_000 : (number + 1) * 200_000])
    pack(archive, tmp_path / "tree")
    repack = ["repack", "-q", "--codec", "gompresso-bit", archive, new]
    whole = whole_seconds(*repack[:-1], tmp_path / "whole.gomp")
    for share in (0.4, 0.5, 0.6, 0.7):
        check(repack, share * whole, new.parent) or new.unlink(missing_ok=True)


def test_sigterm(words: Path, tmp_path: Path) -> None:
    """SIGTERM ends the same commands as fast as ^C."""
    command = ["stats", words, "sequence_count", "--n", "5"]
    status, _, seconds = interrupt(command, whole_seconds(*command) / 2, tmp_path / "tmp", signal.SIGTERM)
    assert status in (143, -signal.SIGTERM)
    assert seconds < longest()
    assert os.listdir(tmp_path / "tmp") == []


def test_a_program_that_uses_the_package(words: Path, tmp_path: Path) -> None:
    """The call raises KeyboardInterrupt, and later calls work."""
    script = """
import sys, gompfs
with gompfs.open(sys.argv[1]) as archive:
    try:
        for line in archive.stats("sequence_count", ngram_length=5):
            pass
    except KeyboardInterrupt:
        print(next(archive.stats("wordcount"))["count"] > 0)
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script, words],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while cpu_seconds(process.pid) < 0.8:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == b"True\n"
        assert process.returncode == 0


CALLS = """
import os, signal, sys, threading, time
from pathlib import Path

from gompfs._native import statistics as _statistics
from gompfs._native.text import WordRule
from gompfs._native.text import PlainText

text = Path(sys.argv[1]).read_bytes()


def cut():
    plain = PlainText(WordRule.WHITESPACE, b"", 1)
    plain.begin_file(1)
    plain.add_bytes(text)
    plain.end_file()
    return plain.take()


def count(corpus, per_file):
    postings = _statistics.Postings(os.environ["TMPDIR"], 64 << 20, 1 << 32)
    postings.gather(corpus, per_file, _statistics.Direction.AUTO, 1)


def seconds(work, moment=None):
    begin = time.process_time()

    def interrupt():
        while time.process_time() - begin < moment:
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)

    if moment is not None:
        threading.Thread(target=interrupt).start()
    try:
        work()
        assert moment is None, "the call ended before the signal"
    except KeyboardInterrupt:
        assert moment is not None
    return time.process_time() - begin


corpus = _statistics.Corpus([cut()], [(1, b"text")], 5)
for name, work in {
    "counting": lambda: count(corpus, False),
    "counting by file": lambda: count(corpus, True),
    "cutting words": cut,
}.items():
    whole = seconds(work)
    print(name, whole, seconds(work, whole / 20), sep=",")
"""


def test_calls_end_before_their_work_is_done(words: Path, tmp_path: Path) -> None:
    """Python's main thread was in C++ code until all work was done, and handled signals only after that.

    All work on this text ends within the limits of the other tests, so this test compares with the time of the whole
    work.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", CALLS, words.with_name("text")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    rows = [line.split(",") for line in done.stdout.splitlines()]
    times = {name: (float(whole), float(part)) for name, whole, part in rows}
    assert len(times) == 3
    for name, (whole, part) in times.items():
        # The main thread checks for signals every 50 ms.
        assert part < whole / 2 + 0.1, f"{name} takes {whole:.2f} s, and {part:.2f} s if it is interrupted at once"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", STATISTICS, ids=" ".join)
def test_statistics_of_a_large_text(
    arguments: tuple[str, ...], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """500 MB of text, whose statistics are partly spilled to disk."""
    archive = tmp_path_factory.getbasetemp() / "large.gomp"
    if not archive.exists():
        pack(archive, write_words(tmp_path / "text", 75_000_000), codec=STORED)
    rng = random.Random(" ".join(arguments))
    for _ in range(10):
        check(["stats", archive, *arguments], rng.uniform(0.2, 30), tmp_path / "tmp")
