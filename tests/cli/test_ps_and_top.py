"""The commands ps and top, which show mounts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gompfs.cli.output import human_duration, print_table
from gompfs.cli.ps import _row as ps_row
from gompfs.cli.ps import mount_facts
from gompfs.cli.top import _HEADINGS, _row
from gompfs.mount.metric_set import samples_of
from gompfs.mount.system.mount_table import MountEntry
from gompfs.mount.system.observe import MountState


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
    assert facts["cache_capacity_bytes"] == 64 << 20
    assert 0 < facts["cache_bytes"] < 1 << 20
    assert facts["cache_misses"] > 0
    assert facts["uptime_seconds"] < 60
    lines = gompfs("ps").lines
    assert lines[0].split() == ["archive", "mountpoint", "pid", "engine", "cache", "hits", "uptime", "state"]
    (line,) = [line for line in lines if str(mounted) in line]
    assert f" {facts['pid']} " in line
    assert " of 67.1 MB " in line
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


def test_top_distinguishes_gpu_and_cpu() -> None:
    def state(sizes: dict[str, float], seconds: dict[str, float]) -> MountState:
        samples = {
            f"gompfs_{name}_total": [({"engine": engine}, value) for engine, value in values.items()]
            for name, values in (("decoded_bytes", sizes), ("decode_seconds", seconds))
        }
        samples["gompfs_uptime_seconds"] = [({}, 10 * seconds["cpu"])]
        return MountState(MountEntry("0:1", "/m", "fuse.gompfs", "a"), "serving", samples)

    before = state({"cpu": 1e9}, {"cpu": 1})
    now = state({"cpu": 2e9, "gpu": 9e9}, {"cpu": 1.5, "gpu": 0.1})
    columns = dict(zip(_HEADINGS, _row(now, before), strict=True))
    assert columns["decoded/s"] == "2.00 GB"  # 10 GB in 5 s
    assert columns["on gpu"] == "90.0%"
    assert columns["cpu/s"] == "2.00 GB"
    assert columns["gpu/s"] == "90.0 GB"
    idle = dict(zip(_HEADINGS, _row(now, now), strict=True))
    assert {idle[name] for name in ("decoded/s", "on gpu", "cpu/s", "gpu/s")} == {"-"}


def test_the_metrics_of_a_hostile_daemon_do_not_control_the_terminal(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Another user's mount may have any labels, and large numbers."""
    labels = {"archive": "a\x1b]0;owned\a", "engine": "\x1b[2J\nroot", "pid": "9" * 5000, "generation": "1"}
    samples = {"gompfs_info": [[labels, 1]]} | {
        name: [[{"request": "read", "le": "1"}, 9e29]] * 20
        for name in ("gompfs_uptime_seconds", "gompfs_cache_bytes", "gompfs_request_seconds_bucket")
    }
    state = MountState(
        MountEntry("0:1", "/m\x1b[1m", "fuse.gompfs", "a"), "serving", samples_of(json.dumps(samples).encode())
    )
    facts = mount_facts(state)
    assert facts["pid"] is None
    print_table(("archive",) * 8, [ps_row(facts)])
    print_table(_HEADINGS, [_row(state, None)])
    output = capfdbinary.readouterr().out.decode()
    assert len(output.splitlines()) == 4
    assert all(line.isprintable() for line in output.splitlines())
    assert "a\\x1b]0;owned\\x07" in output
    assert "\\x1b[2J\\nroot" in output


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (1.024e-6, "1.0 us"), (262.144e-6, "262 us"), (0.0021, "2.1 ms"), (0.9999, "1.0 s"),
        (59.9, "59.9 s"), (59.96, "1:00"), (3599.7, "1:00:00"), (3661, "1:01:01"), (90061, "1d 1:01"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
