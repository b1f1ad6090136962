"""Measures archives of millions of small files, which a tar stream supplies.

As a program, this module writes the stream to standard output: python -m tools.bench.many_files COUNT
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .programs import GOMPFS, environment, pipeline
from .report import Report
from .servers import unmount
from .timing import cpu_of_children, run_measured

_READY_SECONDS = 300
_POLL_SECONDS = 0.05
_HEADER_SIZE = 512
_STEMS = ("img", "report", "user", "event", "test_data", "README", "index", "module", "config", "log")
_ENDINGS = (".txt", ".json", ".py", ".log", ".md", ".html")
_COLUMNS = ["pack s", "pack CPU s", "pack peak MB", "archive MB", "mount s", "mounted MB", "mount peak MB", "find s",
            "MB after find"]  # fmt: skip


def measure_files(counts: Sequence[int]) -> Report:
    """Returns a table with a row for each number of files."""
    report = Report("many small files from a tar stream", _COLUMNS)
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
            archive, place = Path(scratch) / "files.gomp", Path(scratch) / "mount"
            place.mkdir()
            packed = _pack(count, archive)
            report.add(f"{count:,} files", *packed, archive.stat().st_size / 1e6, *_mount(archive, place))
    report.notes.append("pack CPU s includes the program that makes the stream. Memory is the resident set.")
    return report


def _pack(count: int, archive: Path) -> tuple[float, float, float]:
    """Returns seconds, seconds of CPU time, and the peak memory in MB."""
    generator: list[str | Path] = [*GOMPFS[:-1], "tools.bench.many_files", str(count)]
    before = cpu_of_children()
    seconds, peak = run_measured(pipeline(generator, [*GOMPFS, "pack", "-q", "-", archive]), environment())
    return seconds, cpu_of_children() - before, peak / 1e6


def _mount(archive: Path, place: Path) -> tuple[float, float, float, float, float]:
    """Returns the seconds until the mount is there, memory and its peak in MB, seconds of find, and memory after it."""
    started = time.perf_counter()
    command = [*GOMPFS, "mount", "--foreground", archive, place]
    with subprocess.Popen(command, env=environment()) as daemon:
        try:
            while not os.path.ismount(place):
                if daemon.poll() is not None or time.perf_counter() - started > _READY_SECONDS:
                    raise RuntimeError("the archive was not mounted")
                time.sleep(_POLL_SECONDS)
            ready = time.perf_counter() - started
            os.listdir(place)
            memory, peak = _memory(daemon.pid, "VmRSS"), _memory(daemon.pid, "VmHWM")
            started = time.perf_counter()
            subprocess.run(["find", place], stdout=subprocess.DEVNULL, check=True)
            return ready, memory, peak, time.perf_counter() - started, _memory(daemon.pid, "VmRSS")
        finally:
            unmount(place)


def _memory(process: int, field: str) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6


def tar_stream(count: int) -> Iterator[bytes]:
    """Yields the pieces of a tar of different small files, in directories of 100 to 1,000."""
    rng = random.Random(count)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(2, 10))) for _ in range(3000)]
    number = num_directories = 0
    while number < count:
        folder = f"data/{num_directories // 100:04d}/{rng.choice(words)}-{num_directories:06d}"
        num_directories += 1
        for index in range(min(rng.randrange(100, 1001), count - number)):
            name = f"{folder}/{rng.choice(_STEMS)}_{index:04d}{rng.choice(_ENDINGS)}"
            yield _member(name.encode(), f"{number:08d} {' '.join(rng.choices(words, k=6))}\n".encode(), number)
            number += 1
    yield bytes(2 * _HEADER_SIZE)


def _member(name: bytes, content: bytes, number: int) -> bytes:
    """Returns a header of ustar and a content: tarfile would take longer than gompfs."""
    mtime = 1_700_000_000 + number
    fields = b"%-0100s0000644\x000001750\x000001750\x00%011o\x00%011o\x00" % (name, len(content), mtime)
    header = fields.replace(b" ", b"\0") + b" " * 8 + b"0" + bytes(100) + b"ustar\x0000"
    header = header.ljust(_HEADER_SIZE, b"\0")
    return header[:148] + b"%06o\0 " % sum(header) + header[156:] + content + bytes(-len(content) % _HEADER_SIZE)


if __name__ == "__main__":
    for piece in tar_stream(int(sys.argv[1])):
        sys.stdout.buffer.write(piece)
