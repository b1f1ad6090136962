"""Trees on slow storage: many readers wait for it at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("slow_calls.c")
NUM_FILES = 300

READ = """
import sys
from gompfs.pack import open_source
source = open_source(sys.argv[1])
print(source.total_size)
if sys.argv[2] == "content":
    print(sum(1 for entry in source.entries() if entry.has_content))
"""


def test_many_readers_wait_at_the_same_time(tmp_path: Path) -> None:
    """The first listing opens 61 directories; reading opens and reads 300 files, too."""
    shim, tree = tmp_path / "slow_calls.so", tmp_path / "tree"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", shim, SOURCE, "-ldl"], check=True)
    for number in range(NUM_FILES):
        path = tree / f"{number % 60}" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%09d" % number)
    for what, wanted in (("size", f"{9 * NUM_FILES}\n"), ("content", f"{9 * NUM_FILES}\n{NUM_FILES}\n")):
        done = subprocess.run(
            [sys.executable, "-P", "-c", READ, tree, what],
            env={**os.environ, "LD_PRELOAD": str(shim), "SLOW_PATH": str(tree)},
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stdout == wanted
        assert int(done.stderr) >= 4
