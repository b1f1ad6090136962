"""The tables of tools/bench, on tiny data: they run, and what they measure makes sense."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tree_helpers import PACKAGE_PARENT

ROOT = Path(__file__).parents[2]


def run(tmp_path: Path, *arguments: str | Path) -> dict[str, Any]:
    result = tmp_path / "result.json"
    command = [sys.executable, ROOT / "tools" / "bench", *arguments, "--json", result]
    environment = {**os.environ, "PYTHONPATH": PACKAGE_PARENT}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    report = json.loads(result.read_text())
    assert report["title"] in done.stdout
    assert report["origin"]["kernel"] in done.stdout.replace("\n", " ")
    return dict(report)


def test_ratio(tmp_path: Path) -> None:
    zeros = tmp_path / "zeros"
    zeros.write_bytes(bytes(200_000))
    rows = run(tmp_path, "ratio", zeros, ROOT / "examples" / "corpus")["rows"]
    for codec in ("gompresso-bit", "gompresso-byte", "zlib -6"):
        assert rows[codec]["zeros"] > 50
        assert 1.5 < rows[codec]["corpus"] < 4
    assert rows["gompresso-bit / zlib -6"]["corpus"] == rows["gompresso-bit"]["corpus"] / rows["zlib -6"]["corpus"]


def test_decode(tmp_path: Path) -> None:
    rows = run(tmp_path, "decode", "--rounds", "2", ROOT / "examples" / "corpus")["rows"]
    for codec in ("gompresso-bit", "gompresso-byte", "zlib -6"):
        assert all(speed > 0 for speed in rows[codec].values())


def test_pack(tmp_path: Path) -> None:
    rows = run(tmp_path, "pack", ROOT / "examples" / "corpus")["rows"]
    assert rows["gompfs"]["grammar MB"] > 0
    assert rows["gompfs, no stats"]["grammar MB"] == 0
    assert rows["gompfs, no stats"]["ratio"] > 1.5
    assert rows["tar | gzip -6"]["seconds"] > 0


def test_mount(tmp_path: Path) -> None:
    big = ROOT / "examples" / "corpus" / "carroll" / "alice29.txt"
    report = run(tmp_path, "mount", ROOT / "examples" / "corpus", "--pattern", "Alice", "--rounds", "1", "--big", big)
    assert all(seconds > 0 for seconds in report["rows"]["gompfs"].values())
    assert [note for note in report["notes"] if "GB/s" in note]
    assert not [note for note in report["notes"] if "disagree" in note]
