"""A mount's daemon imports slow packages only for statistics: others would make each mount start later and larger."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tree_helpers import pack

# Makes the daemon write the names of its loaded modules when it has unmounted.
_MOUNT = """
import sys
from gompfs.cli import main
from gompfs.mount import service
target, serve = sys.argv.pop(1), service._serve
def serve_and_write(*arguments):
    serve(*arguments)
    with open(target, "w") as file:
        file.write(" ".join(sys.modules) + " .")
service._serve = serve_and_write
main()
"""
_NOT_NEEDED = {"numpy", "mfusepy", "rich", "asyncio", "ctypes", "subprocess", "concurrent.futures"}
_NOT_NEEDED |= {"typing", "dataclasses", "inspect", "re", "logging"}
_NOT_NEEDED |= {"pathlib", "tempfile", "gompfs.text", "gompfs.gpu.device.arrays"}
_NOT_NEEDED |= {"gompfs.index.writer", "gompfs.statistics.tasks", "gompfs.statistics.content"}
_NOT_NEEDED |= {"gompfs.statistics.gpu.device_counter"}


def test_listing_and_reading_need_no_numpy(tmp_path: Path) -> None:
    archive, place, modules = tmp_path / "a.gomp", tmp_path / "mount", tmp_path / "modules"
    pack(archive, Path(__file__))
    place.mkdir()
    subprocess.run([sys.executable, "-P", "-c", _MOUNT, modules, "mount", archive, place], check=True)
    try:
        assert [entry.read_bytes() for entry in place.iterdir()] == [Path(__file__).read_bytes()]
    finally:
        subprocess.run(["umount", place], check=True)
    deadline = time.monotonic() + 60
    while not (modules.exists() and modules.read_text().endswith(".")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    loaded = set(modules.read_text().split())
    assert "gompfs.archive.archive" in loaded
    assert not loaded & _NOT_NEEDED
