"""The examples in the README work."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

from gompfs.cli.application import COMMAND_MODULES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs(gompfs, tmp_path):
    (tmp_path / "corpus" / "docs").mkdir(parents=True)
    (tmp_path / "corpus" / "docs" / "readme.txt").write_bytes(b"hello\n")
    assert gompfs("pack", "-q", "corpus", "corpus.gomp").status == 0
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.splitlines() == [b"hello", b"docs ['readme.txt'] 2", b"hello 1"]


def test_every_command_that_it_shows_exists():
    blocks = "".join(re.findall(r"^```\n(.*?)^```", README, re.DOTALL | re.MULTILINE))
    shown = set(re.findall(r"\bgompfs ([a-z]+) ", blocks))
    assert shown <= set(COMMAND_MODULES)
    assert {"pack", "mount", "umount", "stats"} <= shown


def test_every_file_that_it_names_exists():
    for path in re.findall(r"\]\(([\w/.]+)\)", README):
        assert (ROOT / path).is_file(), path
    for path in ("tools/demo", "tools/test", "tools/setup", ".ci/run"):
        assert (ROOT / path).stat().st_mode & stat.S_IXUSR, path
