"""Traversal on a device gives the same bytes as the CPU. The kernels run on the host here."""

from __future__ import annotations

import random
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from device_cases import cases, compare, texts
from host_device import HostDevice
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_builds import ROOT, run_cases_sanitized
from plain_grammars import plain_grammar_of
from stored_parts import BUILDERS
from text_device_on_host import EngineWithDevice
from tree_helpers import pack, write_files

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine.auto import AutoEngine
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import StatsUnavailableError
from gompfs.statistics.grammar_cache import load_grammars
from gompfs.statistics.postings import postings_report
from gompfs.statistics.tasks import NAMES, compute
from gompfs.statistics.traversal import PhaseTimes, Traversal

MIB = 1 << 20


@pytest.mark.timeout(300)
def test_same_bytes_as_the_cpu(device: HostDevice) -> None:
    for name, grammars, paths in cases():
        compare(device, grammars, paths, name)


words = st.sampled_from([b"a", b"a\x01", b"ab", b"b", b"\xff"])
segments = st.lists(st.lists(st.lists(words, max_size=30), max_size=4), max_size=3)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=segments, builder=st.sampled_from(sorted(BUILDERS)), left_out=st.sets(st.integers(1, 12)))
def test_any_segments(device: HostDevice, contents: list, builder: str, left_out: set[int]) -> None:
    ino = 0
    grammars = []
    for segment in contents:
        files = [(ino + number, b" ".join(text)) for number, text in enumerate(segment, 1)]
        ino += len(files)
        grammars.append(BUILDERS[builder](files))
    compare(device, grammars, {number: b"%d" % number for number in range(1, ino + 1) if number not in left_out})


def test_all_kernels_take_part(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of four items for narrow levels, the kernels for wide levels run too."""
    compare(device, *texts(0)[1:], lengths=(3,))
    monkeypatch.setattr("gompfs.statistics.gpu.forest._MAX_NARROW", 4)
    compare(device, *texts(0)[1:], lengths=(3,))
    folder = ROOT / "kernels" / "statistics"
    sources = [folder / f"{name}.cu" for name in ("levels", "ngrams", "pairs", "tables")]
    pattern = r"__global__ void (?:__launch_bounds__\(\d+\)\s+)?(\w+)\("
    assert device.launched == {kernel for path in sources for kernel in re.findall(pattern, path.read_text())}


@pytest.mark.timeout(1200)
def test_no_access_out_of_bounds() -> None:
    """Runs the same cases under AddressSanitizer and UndefinedBehaviorSanitizer."""
    assert len(run_cases_sanitized("device_cases").splitlines()) == len(list(cases()))


def test_ranges_that_fit_little_memory(library: Path) -> None:
    """The result does not depend on the number of ranges into which the files are cut."""
    _, grammars, paths = texts(1)
    at_once = compare(HostDevice(library), grammars, paths, lengths=(3,))
    in_ranges = compare(HostDevice(library, memory=200_000), grammars, paths, lengths=(3,))
    assert in_ranges.directions.total() > at_once.directions.total()


def test_a_file_that_does_not_fit(library: Path) -> None:
    _, grammars, paths = texts(1)
    for direction in Direction:
        how = Traversal(direction, device=HostDevice(library, memory=10_000))
        with pytest.raises(StatsUnavailableError, match="one file needs more memory than is allowed on the host"):
            postings_report(PostingsTask.RANKED_INVERTED_INDEX, grammars, paths, traversal=how)


def test_a_file_over_several_parts(device: HostDevice) -> None:
    """N-grams across the ends of parts are found, but only in files that are counted."""
    word = [b"%d" % number * (5 * MIB) for number in range(3)]
    grammar = plain_grammar_of([(1, b"begin of it"), (2, b" ".join([*word, *word, b"end of it"])), (3, b"end of it")])
    assert len(list(grammar.parts())) >= 3
    for paths in ({1: b"a", 2: b"b", 3: b"c"}, {1: b"a", 3: b"c"}):
        compare(device, [grammar], paths, directions=[Direction.AUTO], lengths=(3, 5))


def test_the_selector_takes_the_direction_of_less_work(device: HostDevice, tmp_path: Path) -> None:
    """Files that share long runs of few distinct words favour tables; a file that repeats itself favours weights."""
    rng = random.Random(3)
    stretch = b" ".join(b"%d" % rng.randrange(8) for _ in range(3000))
    shared = {f"{number}": stretch + b" %d" % number for number in range(1, 50)}
    stretch = b" ".join(b"%d" % number for number in range(200))
    for name, files in (("bottom-up", shared), ("top-down", {"file": (stretch + b" ") * 200})):
        write_files(tmp_path / name, files)
        pack(tmp_path / "a.gomp", tmp_path / name, codec=Codec.GOMPRESSO_TADOC, force=True)
        with Archive(tmp_path / "a.gomp") as archive:
            grammars, paths = load_grammars(archive), archive.paths()
        times = PhaseTimes()
        how = Traversal(device=device, times=times)
        postings_report(PostingsTask.INVERTED_INDEX, grammars, paths, traversal=how).read()
        assert times.directions == {name: 1}
        assert min(times.flatten, times.upload, times.initialise, times.traverse, times.download, times.emit) > 0


def test_the_statistics_of_an_archive(device: HostDevice, tmp_path: Path) -> None:
    """The archive's engine decides which device traverses."""
    path = tmp_path / "a.gomp"
    for number in range(3):
        (tmp_path / f"{number}").write_bytes(b"to be or not to be, that is\n" * 30 * number)
    pack(path, *(tmp_path / f"{number}" for number in range(3)), codec=Codec.GOMPRESSO_TADOC)
    names = [name.encode() for name in NAMES if name not in ("binary-files", "info", "sha256sums")]
    with Archive(path, engine=CpuEngine()) as archive:
        of_the_cpu = {name: compute(name, archive).read() for name in names}
    engine = EngineWithDevice(device)
    with Archive(path, engine=engine) as archive:
        assert {name: compute(name, archive).read() for name in names} == of_the_cpu
    assert len(engine.accelerator.asked) == len(names)
    assert engine.accelerator.asked.count(0) == 2  # word counts
    assert {"add_along_levels", "add_equal_pairs"} <= device.launched


@pytest.mark.parametrize("words", ["identifiers", "letters"])
def test_the_statistics_of_text_in_parts(device: HostDevice, words: str, tmp_path: Path) -> None:
    """Words come from the heads of parts: of files over several parts, of equal files, of parts without a head."""
    rng = random.Random(7)
    names = [b"head", b"a_part", b"x", b"don't", b"caf\xc3\xa9", b"(y, z)", b"\n", b";"]
    lines = [b" ".join(rng.choices(names, k=rng.randint(1, 9))) for _ in range(80)]
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(30):
        (tree / f"{number}").write_bytes(b"\n".join(rng.choices(lines, k=number)))
    (tree / "long").write_bytes(b"\n".join(rng.choices(lines, k=1500)))
    (tree / "same").write_bytes((tree / "29").read_bytes())
    (tree / "token").write_bytes(b"w" * 70_000 + b" end of it")
    path = tmp_path / "a.gomp"
    pack(path, tree, codec=Codec.GOMPRESSO_TADOC, words=words, part_size=5000)
    with Archive(path, engine=CpuEngine()) as archive:
        assert min(archive.segments[0].parts.head_sizes) == 0 < max(archive.segments[0].parts.head_sizes)
        tasks = [
            *(name.encode() for name in NAMES if name not in ("binary-files", "info", "sha256sums")),
            b"word/head",
            b"phrase/head x",
        ]
        of_the_cpu = {name: compute(name, archive).read() for name in tasks}
    assert all(of_the_cpu.values())
    with Archive(path, engine=EngineWithDevice(device)) as archive:
        assert {name: compute(name, archive).read() for name in tasks} == of_the_cpu
    assert {"add_along_levels", "add_equal_pairs"} <= device.launched


def test_auto_leaves_small_grammars_to_the_cpu() -> None:
    engine = AutoEngine()
    assert engine.accelerator.arrays(100_000) is None
    assert "statistics" not in engine.reason


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is there")
def test_auto_reports_why_it_uses_the_cpu() -> None:
    engine = AutoEngine()
    assert engine.accelerator.arrays(1 << 40) is None
    assert "statistics on the CPU, because No module named 'cupy'" in engine.reason
