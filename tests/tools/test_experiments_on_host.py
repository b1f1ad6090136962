"""Each experiment runs from its entry point to its tables, on tiny data, with its kernels on the host.

The stand-in for a GPU (gpus_on_host.py) runs the same code as a GPU does: only speeds and energy mean nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpus_on_host import gpus_on_host
from native_builds import ROOT, kernel_library
from tool_modules import tool_module

from gompfs.engine import selection
from gompfs.gpu.decode import shares

BLOCK_SIZE = 1 << 14
EXPERIMENTS = tool_module("experiments").EXPERIMENTS
TEXT = (ROOT / "examples" / "corpus" / "carroll" / "alice29.txt").read_bytes()[: 2 * BLOCK_SIZE]

Table = dict[str, dict[str, Any]]
Run = Callable[[str], list[Table]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Returns a function that runs an experiment by name, and returns the rows of its tables."""
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    monkeypatch.setattr(selection, "has_cupy", lambda: True)
    monkeypatch.setattr(shares, "LEAST_SHARE", BLOCK_SIZE)
    monkeypatch.setattr(tool_module("experiments.meters"), "_SECONDS_TO_WARM_UP", 0.0)
    monkeypatch.setattr(tool_module("experiments.nested"), "DEPTHS", (1, 4))
    with gpus_on_host(1, kernel_library()):
        experiments = tool_module("experiments.run")
        strategies = tool_module("experiments.strategies")
        payloads = {name: strategies._PAYLOADS[name] for name in ("without DE", "groups of 4", "strict groups of 32")}
        monkeypatch.setattr(strategies, "_PAYLOADS", payloads)
        monkeypatch.setattr(tool_module("experiments.nesting"), "_DIFFERENT_BLOCKS", 1)
        measure = tool_module("experiments.wesley.measure")
        for name, value in {"_GRID_SIDE": 16, "_NODES_LOG2": 6, "_PICTURE_SIDE": 16, "_GENOME_SIZE": 3000}.items():
            monkeypatch.setattr(measure, name, value)
        settings = experiments.Settings(BLOCK_SIZE, every=1, output_bytes=len(TEXT), rounds=1, seconds=0.06)

        def tables(name: str) -> list[Table]:
            return [table.as_json()["rows"] for table in experiments.run_experiments([name], [path], settings)]

        yield tables


def test_strategies(run: Run) -> None:
    bit, byte, rounds = run("strategies")
    for table in (bit, byte):
        for payload, row in table.items():
            assert row["pieces"] > 0
            assert row["SC"] > 0
            assert 0.9 < row["rounds of MRR"] < 32
            assert (row["DE"] is None) == (payload == "without DE")
        assert table["without DE"]["ratio"] > table["strict groups of 32"]["ratio"] > 1
    assert sum(row["gompresso-bit, without DE"] for row in rounds.values()) == pytest.approx(100)


def test_nesting(run: Run) -> None:
    for table in run("nesting"):
        assert {depth: row["rounds of MRR"] for depth, row in table.items()} == {
            "1": pytest.approx(1, rel=0.05),
            "4": pytest.approx(4, rel=0.05),
        }


def test_sizes(run: Run) -> None:
    for table in run("sizes"):
        assert list(table) == ["16 KiB", "32 KiB"]
        assert all(
            row[column] > 0 for row in table.values() for column in ("GB/s", "GB/s with input", "GB/s with both")
        )


def test_transfers(run: Run) -> None:
    (table,) = run("transfers")
    for codec in ("gompresso-bit", "gompresso-byte"):
        for mode in ("no copies", "input", "input and output", "both, in parts", "both, by the engine"):
            assert table[f"{codec}, {mode}"]["GB/s"] > 0


def test_energy(run: Run) -> None:
    (table,) = run("energy")
    assert table["at rest"]["ratio"] is None
    assert table["GPU: gompresso-bit -6"]["GB/s"] > 0
    assert table["CPU: gompresso-byte -6"]["ratio"] > 1


def test_wesley(run: Run) -> None:
    triples, lz4 = run("wesley")
    ways = ("encode: serial", "chains", "maps", "decode: serial", "jumping", "tiles")
    assert all(row[way] > 0 for name, row in triples.items() if "thesis" not in name for way in ways)
    assert triples["geometric mean in the thesis"]["jumping / serial"] == 106
    assert list(lz4)


def test_sweeps(run: Run) -> None:
    limits, interleaved, consecutive = run("sweeps")
    assert limits
    assert interleaved
    assert consecutive


def test_statistics_of_tadoc(run: Run, tmp_path: Path) -> None:
    """What the command `tadoc --only statistics` prints. `run` makes the stand-in."""
    tables = tool_module("bench.tadoc").measure_tadoc([tmp_path / "text"], 1 << 16, None, 1 << 20, 1, "statistics")
    rows = tables[0].as_json()["rows"]
    assert rows["inverted_index"]["GPU, brought, in rounds, last"] > 0


def test_no_experiment_is_left_out() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert tested >= set(EXPERIMENTS) - {"tadoc"}  # which test_experiments.py runs: it is about the CPU
