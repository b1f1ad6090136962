"""The commands that look at mounts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gompfs.cli.output import human_duration


@pytest.fixture
def mounted(tmp_path: Path, gompfs, archive: Path) -> Iterator[Path]:
    path = tmp_path / "mount [red]place"
    path.mkdir()
    assert gompfs("mount", archive, path).status == 0
    yield path
    gompfs("umount", "--lazy", path)


def test_ps(gompfs, mounted: Path, archive: Path) -> None:
    (mounted / "z.txt").read_bytes()
    result = gompfs("ps", "--json")
    assert (result.status, result.errors) == (0, "")
    (facts,) = [facts for facts in json.loads(result.output) if facts["mountpoint"] == str(mounted)]
    assert facts["archive"] == str(archive)
    assert facts["state"] == "serving"
    assert facts["engine"] == "cpu"
    assert facts["generation"] == 1
    assert os.readlink(f"/proc/{facts['pid']}/cwd") == "/"
    assert facts["cache_capacity_bytes"] == 256 << 20
    assert 0 < facts["cache_bytes"] < 1 << 20
    assert facts["cache_misses"] > 0
    assert facts["uptime_seconds"] < 60
    lines = gompfs("ps").lines
    assert lines[0].split() == ["archive", "mountpoint", "pid", "engine", "cache", "hits", "uptime", "state"]
    (line,) = [line for line in lines if str(mounted) in line]
    assert f" {facts['pid']} " in line
    assert " of 268 MB " in line
    assert line.endswith("serving")


def test_top(gompfs, mounted: Path) -> None:
    (mounted / "z.txt").read_bytes()
    result = gompfs("top", "--interval", "1", "--count", "2", mounted)
    assert (result.status, result.errors) == (0, "")
    first, second = (line.split() for line in result.lines if str(mounted) in line)
    assert len(result.lines) == 4
    assert result.lines[0].split()[0] == "mountpoint"
    assert first[2] == "cpu"
    assert second[2] == "cpu"
    assert "B" in first[-1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 us"), (1.024e-6, "1.0 us"), (262.144e-6, "262 us"), (0.0021, "2.1 ms"), (0.9999, "1.0 s"),
        (59.9, "59.9 s"), (59.96, "1:00"), (3599.7, "1:00:00"), (3661, "1:01:01"), (90061, "1d 1:01"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
