"""Fixtures: mounts whose statistics are read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def gompfs(*arguments: str | Path) -> None:
    """Runs a gompfs command as a process."""
    subprocess.run([sys.executable, "-P", "-m", "gompfs", *arguments], check=True, timeout=60)


@pytest.fixture
def mounted_stats(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Mounts an archive and returns the directory of its statistics."""
    mountpoints: list[Path] = []

    def mount(archive: Path) -> Path:
        mountpoints.append(tmp_path / f"mount-{len(mountpoints)}")
        mountpoints[-1].mkdir()
        gompfs("mount", archive, mountpoints[-1])
        return mountpoints[-1] / "stats"

    yield mount
    for mountpoint in mountpoints:
        if os.path.ismount(mountpoint):
            gompfs("umount", "--lazy", mountpoint)
