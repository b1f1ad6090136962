"""^C ends every command soon, at any moment: with one line, status 130, and no temporary file left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tree_helpers import pack

from gompfs.codec import Codec

SECONDS = 2.0
"""The maximum time from ^C to the end of a command, if each runnable process has a core; checked by the slow test."""

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
        env={**os.environ, "TMPDIR": str(place)},
        # a shell starts background processes with SIGINT ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while cpu_seconds(process.pid) < moment and not has_ended(process.pid):
            time.sleep(0.005)
        if has_ended(process.pid):
            _, errors = process.communicate()
            return process.returncode, errors, 0.0
        started = time.monotonic()
        process.send_signal(number)
        while not has_ended(process.pid):
            time.sleep(0.005)
        seconds = time.monotonic() - started
        _, errors = process.communicate()
        return process.returncode, errors, seconds


def has_ended(pid: int) -> bool:
    """Returns whether a child process is a zombie: it has ended, but its status was not fetched yet."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def check(arguments: Sequence[str | Path], moment: float, place: Path) -> float | None:
    """Interrupts a command, and checks that it ended as it should.

    Returns the seconds from ^C to its end, or None if it had ended before.
    """
    status, errors, seconds = interrupt(arguments, moment, place)
    assert os.listdir(place) == []
    if status == 0:  # it had ended before the signal, or was just ending
        assert errors == b""
        return None
    assert (status, errors) == (130, b"gompfs: interrupted\n"), moment
    return seconds


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


STATISTICS = [("sequence_count", "--n", "5"), ("ranked_inverted_index",), ("term_vector",), ("wordcount",)]


@pytest.mark.parametrize("arguments", STATISTICS, ids=" ".join)
def test_statistics(words: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    moments = (0.4, 0.2)  # the second one if the command ends before the first
    assert any(check(["stats", words, *arguments], moment, tmp_path / "tmp") is not None for moment in moments)


@pytest.mark.parametrize(("level", "moment"), [("1", 0.3), ("8", 0.8)])
def test_packing(words: Path, tmp_path: Path, level: str, moment: float) -> None:
    """Other threads encode blocks and build rules, and the command waits for them."""
    text = words.with_name("text")
    place = tmp_path / "tmp"
    command = ["pack", "-q", "--level", level, "--block-size", "1M", text, place / "new.gomp"]
    assert check(command, moment, place) is not None


def test_repacking(words: Path, tmp_path: Path) -> None:
    """Another thread decodes ahead; the error that ended it was printed with a traceback."""
    archive, new = tmp_path / "parts.gomp", tmp_path / "tmp/new.gomp"
    text = words.with_name("text").read_bytes()
    (tmp_path / "tree").mkdir()
    for number in range(32):
        (tmp_path / f"tree/{number}").write_bytes(text[number * 200_000 : (number + 1) * 200_000])
    pack(archive, tmp_path / "tree")
    for moment in (0.3, 0.45, 0.6):
        check(["repack", "-q", "--codec", "gompresso-bit", archive, new], moment, new.parent)
        new.unlink(missing_ok=True)


def test_sigterm(words: Path, tmp_path: Path) -> None:
    """SIGTERM ends the same commands as ^C."""
    command = ["stats", words, "sequence_count", "--n", "5"]
    status, _, _ = interrupt(command, 0.4, tmp_path / "tmp", signal.SIGTERM)
    assert status in (143, -signal.SIGTERM)
    assert os.listdir(tmp_path / "tmp") == []


CALLS = """
import os, signal, sys
from pathlib import Path

from gompfs._native import statistics as _statistics
from gompfs._native.text import PlainText, WordRule

text = Path(sys.argv[1]).read_bytes()
seen = 0


def look(number, frame):
    global seen
    seen += 1
    if seen == 3:
        raise KeyboardInterrupt


def interrupt(call):
    global seen
    seen = 0
    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return False



def plain_text():
    plain = PlainText(WordRule.WHITESPACE, b"", 1)
    plain.begin_file(1)
    plain.add_bytes(text)
    plain.end_file()
    return plain


assert interrupt(plain_text().take), "words are cut without a look at signals"
cut = plain_text().take()

corpus = _statistics.Corpus([cut], [(1, b"text")], 5)
for per_file in (False, True):
    postings = _statistics.Postings(os.environ["TMPDIR"], 64 << 20, 1 << 32)
    counting = lambda: postings.gather(corpus, per_file, _statistics.Direction.AUTO, 1)
    assert interrupt(counting), "sequences are counted without a look at signals"
postings.gather(corpus, True, _statistics.Direction.AUTO, 1)
"""


def test_calls_look_at_signals(words: Path, tmp_path: Path) -> None:
    """Python's main thread was in C++ code until all work was done, and handled signals only after that.

    A timer sends signals. Only the third one raises: a call that does not look at signals handles one at its end.
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-P", "-c", CALLS, words.with_name("text")], check=True, env=environment)


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
        seconds = check(["stats", archive, *arguments], rng.uniform(0.2, 30), tmp_path / "tmp")
        shared_by = max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
        assert seconds is None or seconds < SECONDS * shared_by
