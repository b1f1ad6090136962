"""A mount's daemon answers its first request before it imports slow packages, which would delay the mount."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tree_helpers import pack

# Makes the daemon write its loaded modules when it starts to load those of the statistics.
_MOUNT = """
import sys
from gompfs.cli import main
from gompfs.mount import service
target, load_later = sys.argv.pop(1), service._load_later
def write_modules(load):
    with open(target, "w") as file:
        file.write(" ".join(sys.modules) + " .")
    load_later(load)
service._load_later = write_modules
main()
"""
_NOT_NEEDED = {"numpy", "sqlite_utils", "mfusepy", "rich", "asyncio", "ctypes", "subprocess", "concurrent.futures"}
_NOT_NEEDED |= {
    "pathlib",
    "tempfile",
    "logging.handlers",
    "gompfs.text",
    "gompfs.gpu.device.arrays",
    "gompfs.index.writer",
}
_NOT_NEEDED |= {"gompfs.statistics.tasks", "gompfs.statistics.content", "gompfs.statistics.gpu.device_counter"}


def test_a_mount_answers_before_numpy_is_loaded(tmp_path: Path) -> None:
    archive, place, modules = tmp_path / "a.gomp", tmp_path / "mount", tmp_path / "modules"
    pack(archive, Path(__file__))
    place.mkdir()
    subprocess.run([sys.executable, "-P", "-c", _MOUNT, modules, "mount", archive, place], check=True)
    try:
        deadline = time.monotonic() + 20
        while not (modules.exists() and modules.read_text().endswith(".")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert list(place.iterdir())
    finally:
        subprocess.run(["umount", place], check=True)
    loaded = set(modules.read_text().split())
    assert "gompfs.archive.archive" in loaded
    assert not loaded & _NOT_NEEDED
