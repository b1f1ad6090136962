"""Reading needs no FUSE: everything but mounts works without /dev/fuse, mfusepy and the package that mounts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import sys

class NoFuse:
    def find_spec(self, name, path=None, target=None):
        if name == "mfusepy" or (name + ".").startswith(blocked):
            raise ImportError(f"{name} is not there")

def refuse(event, arguments):
    if event == "open" and arguments[0] == "/dev/fuse":
        raise FileNotFoundError(arguments[0])

blocked = ("gompfs.mount.",)
sys.meta_path.insert(0, NoFuse())
sys.addaudithook(refuse)
archive, target = sys.argv[1:]

import gompfs
from gompfs.cli.application import run

with gompfs.open(archive) as files:
    assert files.read("docs/a.txt") == b"alpha beta\\n" * 3000
    assert files.listdir("docs") == ["a.txt", "b.txt"]
    assert len(list(files.grep("alpha"))) == 3000
for command in ("ls", "info", "stats wordcount", "verify -q", "cat docs/a.txt", "extract -q -C " + target):
    name, *rest = command.split()
    assert run([name, archive, *rest]) == 0, command
assert run(["grep", "-c", "alpha", archive]) == 0

# The web server shows the tree of a mount. It needs the package, but no FUSE.
blocked = ("gompfs.mount.fuse.libfuse.", "gompfs.mount.fuse.session.", "gompfs.mount.service.")
import threading
from urllib.request import urlopen
from gompfs.serve.server import serving

with serving([archive], "127.0.0.1", 0, serves_all=False) as server:
    threading.Thread(target=server.serve_forever, args=(0.02,)).start()
    assert urlopen(server.url + "docs/a.txt").read().startswith(b"alpha")
    server.shutdown()
"""


def test_reading_without_fuse(words_archive: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", _SCRIPT, words_archive, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"docs/\n" in done.stdout
    assert b"docs/a.txt:3000\n" in done.stdout
    assert (tmp_path / "out/docs/a.txt").read_bytes() == b"alpha beta\n" * 3000
