"""^C ends every command soon, at any moment: one line, status 130, and no file left behind."""

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
from tree_helpers import PACKAGE_PARENT, pack

from gompfs.codec import Codec, CodecOptions

SECONDS = 2.0
"""So long may a command take from ^C to its end, where each runnable process has a core."""
CPU_SECONDS = 0.6
"""So much may it compute until then."""


STORED = CodecOptions(codec=Codec.STORED)


def cpu_seconds(pid: int) -> float:
    """How long all threads of a process have computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupt(
    arguments: Sequence[str | Path], moment: float, place: Path, number: signal.Signals = signal.SIGINT
) -> tuple[int, bytes, float]:
    """Run gompfs, send the signal when it has computed for `moment` seconds, which do not depend on other processes.

    Returns the status, what is on stderr, and how long it lived on: 0 where it had ended before.
    """
    place.mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "gompfs", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, "TMPDIR": str(place)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
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
    """Whether a child of this process waits for nothing but to be asked for its status."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def longest() -> float:
    """SECONDS, or more where processes share the cores."""
    return SECONDS * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def check(arguments: Sequence[str | Path], moment: float, place: Path) -> bool:
    """Whether it came to an interrupt, which must be as it should."""
    status, errors, seconds = interrupt(arguments, moment, place)
    assert os.listdir(place) == []
    if status == 0:  # it had ended, or was just about to
        assert errors == b""
        return False
    assert (status, errors) == (130, b"gompfs: interrupted\n"), moment
    assert seconds < longest(), f"{seconds:.1f} s from ^C after {moment:.2f} s to the end"
    return True


def write_words(path: Path, count: int) -> Path:
    """A text of many words, in which hardly any sequence comes twice."""
    numbers = np.random.default_rng(1).integers(0, 300_000, count)
    text = np.full((count, 7), ord(" "), np.uint8)
    for digit in range(6):
        text[:, 5 - digit] = ord("0") + numbers // 10**digit % 10
    path.write_bytes(text.tobytes())
    return path


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive whose sequences take a few seconds to count, beside the text."""
    place = tmp_path_factory.mktemp("words")
    text = write_words(place / "text", 8_000_000)
    pack(place / "words.gomp", text, codec=STORED)
    return place / "words.gomp"


STATISTICS = [
    ("sequence_count", "--n", "5"),
    ("ranked_inverted_index",),
    ("inverted_index",),
    ("term_vector",),
    ("tfidf",),
    ("wordcount",),
    ("phrase/000001 000002",),
]


@pytest.mark.parametrize("arguments", STATISTICS, ids=" ".join)
def test_statistics(words: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """They ran on for up to 80 s, in C++ and deaf to signals."""
    rng = random.Random(" ".join(arguments))
    results = [check(["stats", words, *arguments], rng.uniform(0.2, 2), tmp_path / "tmp") for _ in range(3)]
    assert any(results) or arguments[0] not in ("sequence_count", "ranked_inverted_index")


@pytest.mark.parametrize("level", ["1", "9"])
def test_packing(words: Path, tmp_path: Path, level: str) -> None:
    """Blocks are encoded, and rules built, in other threads, whose end is waited for."""
    text = words.with_name("text")
    place = tmp_path / "tmp"
    for moment in (0.2, 0.6, 1.5):
        check(["pack", "-q", "--level", level, "--block-size", "1M", text, place / "new.gomp"], moment, place) or (
            place / "new.gomp"
        ).unlink(missing_ok=True)


def test_building_grammars(words: Path, tmp_path: Path) -> None:
    content = words.read_bytes()
    for moment in (0.5, 1.5, 2.5):
        assert check(["stats", words, "--build"], moment, tmp_path / "tmp")
        assert words.read_bytes() == content


def test_sigterm(words: Path, tmp_path: Path) -> None:
    """It ends the same work, as fast."""
    for arguments in (["sequence_count"], ["--build"]):
        status, _, seconds = interrupt(["stats", words, *arguments], 1.5, tmp_path / "tmp", signal.SIGTERM)
        assert status in (143, -signal.SIGTERM)
        assert seconds < longest()
        assert os.listdir(tmp_path / "tmp") == []


def test_a_program_that_uses_the_package(words: Path, tmp_path: Path) -> None:
    """KeyboardInterrupt comes out of the call, and the next one works."""
    script = """
import sys, gompfs
with gompfs.open(sys.argv[1]) as archive:
    try:
        for line in archive.stats("sequence_count", num_words=5):
            pass
    except KeyboardInterrupt:
        print(next(archive.stats("wordcount"))["count"] > 0)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, words],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while cpu_seconds(process.pid) < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == b"True\n"
        assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("arguments", STATISTICS, ids=" ".join)
def test_statistics_of_a_large_text(
    arguments: tuple[str, ...], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """500 MB of text, of which a part of the statistics is put aside on disk."""
    archive = tmp_path_factory.getbasetemp() / "large.gomp"
    if not archive.exists():
        pack(archive, write_words(tmp_path / "text", 75_000_000), codec=STORED)
    rng = random.Random(" ".join(arguments))
    for _ in range(10):
        check(["stats", archive, *arguments], rng.uniform(0.2, 30), tmp_path / "tmp")
