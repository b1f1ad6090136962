"""The tables of statistics of words that stay on a device, which is the host here."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from host_device import HostDevice
from native_builds import ROOT, kernel_library
from tool_modules import tool_module
from tree_helpers import pack

from gompfs.codec import Codec
from gompfs.errors import StatsUnavailableError

bench = tool_module("bench.resident_statistics")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree")
    for name in ("docs/kernels.md", "docs/format.md", "docs/measurements.md"):
        (tree / Path(name).name).write_bytes((ROOT / name).read_bytes())
    path = tmp_path_factory.mktemp("archive") / "a.gomp"
    pack(path, tree, codec=Codec.GOMPRESSO_TADOC)
    return path


def test_tables(archive: Path) -> None:
    device = HostDevice(kernel_library())
    measured = bench.measure_resident_statistics(archive, [device], 64 << 20, 1, "three files")
    tasks, quotients, phases, questions = (table.as_json()["rows"] for table in measured)
    assert list(tasks) == list(bench.TASKS)
    for task, row in tasks.items():
        has_rounds = bench.TASKS[task] is not None  # algorithms 1 and 2 have no counts of all files
        assert {way for way, value in row.items() if value is None} == (
            set() if has_rounds else {f"GPU, brought, in rounds, {byte}" for byte in ("first", "last")}
        )
        assert all(value > 0 for value in row.values() if value is not None)
    of_tasks = [quotients[task]["CPU / GPU, resident, last"] for task in tasks]
    assert quotients["geometric mean"]["CPU / GPU, resident, last"] == pytest.approx(prod(of_tasks) ** (1 / 6))
    assert {"pass_values", "pass_tables"} <= device.launched
    for task in bench.TASKS:
        resident, brought = (phases[f"{task}, GPU, {way}"] for way in ("resident", "brought"))
        assert resident["flatten"] == resident["upload"] == 0 < min(brought["flatten"], brought["upload"])
        assert min(resident["traverse"], brought["traverse"]) > 0
    assert phases["inverted_index, GPU, brought, in rounds"]["traverse"] > 0
    assert {"word, rarest", "phrase of 5 words", "sequence_count of the largest file"} <= questions.keys()
    assert any(note.startswith("Slower than the CPU: ") for note in measured[0].notes)
    assert device.reserved == 0


def test_words_that_do_not_fit(archive: Path) -> None:
    with pytest.raises(StatsUnavailableError, match="its words need"):
        bench.measure_resident_statistics(archive, [HostDevice(kernel_library())], 100, 1, "three files")
