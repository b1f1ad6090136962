"""The tables of statistics of words that stay on a device, which is the host here."""

from __future__ import annotations

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
    for name in ("README.md", "CONTRIBUTING.md", "justfile"):
        (tree / name).write_bytes((ROOT / name).read_bytes())
    path = tmp_path_factory.mktemp("archive") / "a.gomp"
    pack(path, tree, codec=Codec.GOMPRESSO_TADOC, stats=True)
    return path


def test_tables(archive: Path) -> None:
    device = HostDevice(kernel_library())
    tasks, phases, questions = bench.measure_resident_statistics(archive, [device], 64 << 20, 1, "three files")
    assert [name for name, _ in tasks.rows] == list(bench.TASKS)
    assert all(cell > 0 for _, cells in tasks.rows for cell in cells)
    of_phases = dict(phases.rows)
    flatten, upload = (phases.columns.index(name) for name in ("flatten", "upload"))
    traverse = phases.columns.index("traverse")
    for task in bench.TASKS:
        resident, brought = (of_phases[f"{task}, GPU, {way}"] for way in ("resident", "brought"))
        assert resident[flatten] == resident[upload] == 0 < min(brought[flatten], brought[upload])
        assert min(resident[traverse], brought[traverse]) > 0
    assert {"word, rarest", "phrase of 5 words", "sequence_count of the largest file"} <= dict(questions.rows).keys()
    assert any(note.startswith("Slower than the CPU: ") for note in tasks.notes)
    assert device.reserved == 0


def test_words_that_do_not_fit(archive: Path) -> None:
    with pytest.raises(StatsUnavailableError, match="its words need"):
        bench.measure_resident_statistics(archive, [HostDevice(kernel_library())], 100, 1, "three files")
