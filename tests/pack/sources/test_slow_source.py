"""Trees on slow storage: many readers wait for it at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("slow_calls.c")
NUM_FILES = 300

# Prints how many seconds it takes to read a tree with a number of threads, after its size.
READ = """
import sys, time
from gompfs.pack import open_source
from gompfs.pack.sources import directory
directory._MAX_THREADS = int(sys.argv[2])
source = open_source(sys.argv[1])
for read in (lambda: source.total_size, lambda: sum(1 for entry in source.entries() if entry.has_content)):
    started = time.monotonic()
    print(read(), time.monotonic() - started)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "slow_calls.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def read_tree(tree: Path, shim: Path, num_threads: int) -> list[tuple[int, float]]:
    """Returns size and number of the files, and the seconds that each took."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", READ, tree, str(num_threads)],
        env={**os.environ, "LD_PRELOAD": str(shim), "SLOW_PATH": str(tree)},
        capture_output=True,
        check=True,
        text=True,
    )
    return [(int(count), float(seconds)) for count, seconds in map(str.split, done.stdout.splitlines())]


def test_64_readers_are_at_least_three_times_as_fast_as_one(tmp_path: Path, shim: Path) -> None:
    for number in range(NUM_FILES):
        path = tmp_path / f"{number % 60}" / str(number)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"%09d" % number)
    alone, together = (read_tree(tmp_path, shim, num_threads) for num_threads in (1, 64))
    assert [count for count, _ in alone] == [count for count, _ in together] == [9 * NUM_FILES, NUM_FILES]
    # The first listing opens 61 directories; reading opens them again, and opens and reads each file.
    for (_, one), (_, many), num_waits in zip(alone, together, (61, 61 + 2 * NUM_FILES), strict=True):
        assert one >= num_waits * 0.005 / 2  # the caller may read too
        assert many <= one / 3
