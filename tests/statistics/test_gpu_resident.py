"""Words that stay on a real GPU give the same bytes as the CPU."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from device_cases import cases
from native_builds import ROOT
from resident_cases import ROOM, ask_cpu, ask_device, check_resident, many_files, questions_of_many_files
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.options import GpuOptions
from gompfs.statistics.answering import RESIDENT, Answering
from gompfs.statistics.gpu.resident_text import ResidentText
from gompfs.statistics.paths import files_in_order
from gompfs.statistics.tasks import NAMES, NAMES_OF_FILE, compute
from gompfs.statistics.traversal import PhaseTimes

pytestmark = pytest.mark.gpu


def test_same_bytes_as_the_cpu(gpu: ArrayDevice) -> None:
    for case in cases():
        check_resident(gpu, case).release()


def test_wide_levels(gpu: ArrayDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gompfs.statistics.gpu.forest._MAX_NARROW", 4)
    for case in cases():
        check_resident(gpu, case, repeats=1).release()


def test_long_answers(gpu: ArrayDevice) -> None:
    """Thousands of files have a word equally often, and the answers about a large file come in several pieces."""
    case = many_files()
    _, grammars, paths = case
    expected = [(question, ask_cpu(case, question)) for question in questions_of_many_files()]
    archive = cast("Archive", SimpleNamespace(path_of=paths.get))
    text = ResidentText(archive, [gpu], grammars, files_in_order(paths), ROOM, PhaseTimes())
    for question, lines in expected:
        assert ask_device(text, question) == lines, question
    text.release()


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of gompfs, stored in parts."""
    path = tmp_path_factory.mktemp("sources") / "a.gomp"
    pack(path, ROOT / "gompfs", ROOT / "native", codec=Codec.GOMPRESSO_TADOC, part_size=1 << 20)
    return path


def _names(archive: Archive) -> list[bytes]:
    files = [path for path in archive.paths().values() if path.endswith(b".py")][:5]
    searches = [b"word/self", b"word/nowhere", b"phrase/import annotations", b"phrase/from __future__ import"]
    of_files = [b"files/%s/%s" % (path, name.encode()) for path in files for name in NAMES_OF_FILE]
    return [*(name.encode() for name in NAMES if name != "info"), *searches, *of_files]


def test_the_statistics_of_an_archive(sources: Path) -> None:
    """The memory is freed at the end, and when decoding needs it."""
    with Archive(sources, engine=select_engine("cpu")) as archive:
        names = _names(archive)
        of_the_cpu = [compute(name, archive).read() for name in names]
    engine = select_engine("gpu", gpu=GpuOptions())
    with Archive(sources, engine=engine) as archive:
        answering = Answering(archive)
        assert [compute(name, archive, answering=answering).read() for name in names] == of_the_cpu
        assert {engine for _, engine in answering.all_times()} == {RESIDENT}
        assert f"stay on {engine.first_device.name}" in answering.reason
        assert engine.first_device.take_back()
        assert "needed for reading" in answering.reason
        assert [compute(name, archive, answering=answering).read() for name in names[:2]] == of_the_cpu[:2]


def test_a_limit_for_the_memory(sources: Path) -> None:
    with Archive(sources, engine=select_engine("gpu", gpu=GpuOptions(stats_memory=1 << 20))) as archive:
        answering = Answering(archive)
        compute(b"wordcount", archive, answering=answering)
        assert "MiB of GPU memory, and 1 MiB may be used for them" in answering.reason
    with Archive(sources, engine=select_engine("gpu", gpu=GpuOptions(stats_memory=0))) as archive:
        assert archive.engine.accelerator is not None
        assert archive.engine.accelerator.resident_memory() is None


def test_auto_puts_words_on_the_gpu(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gompfs.statistics.answering._SECONDS_BEFORE_LOADING", 0)
    with Archive(sources, engine=select_engine("auto", gpu=GpuOptions())) as archive:
        answering = Answering(archive)
        answers = [compute(b"word/self", archive, answering=answering).read() for _ in range(3)]
        assert len(set(answers)) == 1
        assert ("word", RESIDENT) in answering.all_times()
