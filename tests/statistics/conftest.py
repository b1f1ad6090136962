"""Fixtures: mounts whose statistics are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from coreutils_oracle import run_gompfs


@pytest.fixture
def mounted_stats(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Mounts an archive and returns the directory of its statistics."""
    mountpoints: list[Path] = []

    def mount(archive: Path) -> Path:
        mountpoints.append(tmp_path / f"mount-{len(mountpoints)}")
        mountpoints[-1].mkdir()
        run_gompfs("mount", archive, mountpoints[-1])
        return mountpoints[-1] / "stats"

    yield mount
    for mountpoint in mountpoints:
        if os.path.ismount(mountpoint):
            run_gompfs("umount", "--lazy", mountpoint)
