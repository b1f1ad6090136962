"""What the README shows works."""

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
    for path in ("tools/demo", "tools/test", "tools/setup", ".ci/run", "systemd/mount.gompfs"):
        assert (ROOT / path).stat().st_mode & stat.S_IXUSR, path


def test_mount_helper_keeps_only_what_is_for_gompfs(tmp_path):
    gompfs = tmp_path / "gompfs"
    gompfs.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    gompfs.chmod(0o755)
    helper = ROOT / "systemd" / "mount.gompfs"
    options = "rw,nosuid,relatime,allow_other,x-systemd.automount,cache_size=64M,nofail"
    done = subprocess.run(
        [helper, "/a b.gomp", "/mnt/x", "-o", options],
        capture_output=True,
        check=True,
        env={"PATH": f"{tmp_path}:/bin"},
    )
    assert done.stdout.decode().splitlines() == [
        "mount", "-o", "allow_other,cache_size=64M", "--", "/a b.gomp", "/mnt/x"
    ]  # fmt: skip
    faked = subprocess.run([helper, "/a.gomp", "/mnt/x", "-f", "-o", "rw"], capture_output=True, check=True)
    assert faked.stdout == b""
