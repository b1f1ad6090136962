"""Runs the commands of the demo on the sample tree, and shows them with their output: `python tools/session.py`.

`--picture FILE` also writes the picture in README.md: an SVG of a terminal with a part of the same session.
gompfs is taken from the environment of the interpreter that runs this script.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sample import make_sample
from terminal_picture import terminal_picture

DEMO = (
    "gompfs pack sample sample.gomp",
    'gompfs grep -n -i "orange marmalade" sample.gomp',
    "gompfs mount sample.gomp mnt",
    "ls mnt",
    'grep -rnm2 "White Rabbit" mnt',
    "head -3 mnt/stats/wordcount",
    'cat "mnt/stats/phrase/the White Rabbit"',
    "head -3 mnt/stats/files/books/carroll/alice29.txt/wordcount",
    "sed -n 120,124p mnt/python/heapq.py",
    "gompfs stats sample.gomp tfidf --top 4 --file books/shakespeare/asyoulik.txt",
    "gompfs umount mnt",
)
_IN_PICTURE = (DEMO[2], *DEMO[4:8])


def environment() -> dict[str, str]:
    """Returns the environment of the session: the scripts of this interpreter first, and English messages."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}


def run_session(commands: Sequence[str], directory: Path) -> Iterator[tuple[str, str]]:
    """Runs commands in a shell, one after another, and yields each with its output. Raises CalledProcessError.

    `directory` must contain the sample tree as `sample`. A mount `mnt` in it is unmounted at the end.
    """
    mount_point = directory / "mnt"
    try:
        for command in commands:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=directory,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
                check=False,
            )
            if done.returncode:
                raise subprocess.CalledProcessError(done.returncode, command, done.stdout)
            if command.startswith("gompfs umount"):
                _wait_until_removed(mount_point)
            yield command, done.stdout
    finally:
        if os.path.ismount(mount_point):
            subprocess.run(["gompfs", "umount", "--lazy", mount_point], env=environment(), check=True)


def _wait_until_removed(mount_point: Path) -> None:
    """Waits for the daemon, which removes its mount point when it ends, a moment after `gompfs umount`."""
    deadline = time.monotonic() + 60
    while mount_point.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def main() -> int:
    """Show the session, and write the picture to the file named on the command line."""
    parser = argparse.ArgumentParser(description="Run the demo of gompfs.")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="also write an SVG of the session to FILE")
    picture: Path | None = parser.parse_args().picture
    steps = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_sample(directory / "sample")
        try:
            for command, output in run_session(DEMO, directory):
                print(f"$ {command}\n{output}", flush=True)
                steps.append((command, output))
        except subprocess.CalledProcessError as error:
            print(f"$ {error.cmd}\n{error.output}status {error.returncode}", file=sys.stderr)
            return 1
    if picture is not None:
        picture.write_text(terminal_picture(step for step in steps if step[0] in _IN_PICTURE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
