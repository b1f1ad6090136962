"""A search with a device that scans blocks first finds the same as one without. The kernels run on the host here."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_builds import kernel_library
from numpy.typing import NDArray
from search_cases import BLOCK_SIZE, check, found, pack_tree
from searched_tree import OPTIONS, PATTERNS, make_large_tree, make_tree
from text_device_on_host import EngineWithDevice, HostTextDevice
from tool_modules import tool_module
from tree_helpers import pack

from gompfs import engine
from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import EngineUnavailableError, OptionError
from gompfs.gpu.decode.block_source import BlockSource
from gompfs.search.gpu import archive_scan, text_on_device
from gompfs.search.query import SearchQuery
from gompfs.search.search_memory import SearchMemory

Grep = Callable[..., tuple[int, bytes]]


@pytest.fixture(scope="module")
def device() -> HostTextDevice:
    return HostTextDevice(kernel_library())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("searched") / "tree"
    make_tree(root)
    (root / "rare").write_text("a rare_word, here\n")
    return root


@pytest.fixture(scope="module", params=["text", "bytes"])
def archive(request: pytest.FixtureRequest, tree: Path) -> Path:
    return pack_tree(tree, request.param)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few blocks, and no end of the scan after many candidates."""
    monkeypatch.setattr(text_on_device, "_BATCH_BYTES", 3 * BLOCK_SIZE)
    monkeypatch.setattr(archive_scan, "_MOST_CANDIDATES", 1)


@pytest.fixture
def grep(
    device: HostTextDevice, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> tuple[Grep, Grep]:
    """The command, with the CPU and with the device."""

    def with_cpu(*arguments: str) -> tuple[int, bytes]:
        status = run(["grep", "--sort=path", "--engine=cpu", *arguments])
        return status, capfdbinary.readouterr().out

    def with_device(*arguments: str) -> tuple[int, bytes]:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "select_engine", lambda *_, **__: EngineWithDevice(device))
            status = run(["grep", "--sort=path", *arguments])
        return status, capfdbinary.readouterr().out

    return with_cpu, with_device


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("small_batches")
def test_patterns(archive: Path, device: HostTextDevice) -> None:
    num_scanned = 0
    chosen = PATTERNS[archive.name == "text.gomp" :: 7]
    for pattern in chosen:
        try:
            totals = check(archive, EngineWithDevice(device), patterns=(pattern.encode(),), line_number=True)
        except OptionError:
            continue
        num_scanned += totals.scanned_bytes != 0
    assert num_scanned > len(chosen) / 2


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("small_batches")
def test_options(grep: tuple[Grep, Grep], archive: Path) -> None:
    with_cpu, with_device = grep
    is_text = archive.name == "text.gomp"
    for options in OPTIONS[is_text::4]:
        arguments = ("-n", *options, "-e", r"\bfoo|bar\s*$" if is_text else "foobar", str(archive))
        assert with_device(*arguments) == with_cpu(*arguments), options


def test_blocks_without_candidates_are_not_read(archive: Path, device: HostTextDevice) -> None:
    totals = check(archive, EngineWithDevice(device), patterns=(b"rare_word",))
    assert 0 < totals.candidate_bytes < totals.scanned_bytes / 2
    for options in ({"invert_match": True}, {"files_without_match": True}):
        assert check(archive, EngineWithDevice(device), patterns=(b"rare_word",), **options).scanned_bytes == 0


def test_an_encoding_is_searched_on_the_cpu(tmp_path: Path, device: HostTextDevice) -> None:
    """A device would look for the decoded text in the bytes of the files."""
    (tmp_path / "tree").mkdir()
    for number in range(9):
        (tmp_path / "tree" / f"{number}").write_bytes(b"caf\xe9 some_word\n" * 3000)
    archive = pack_tree(tmp_path / "tree", "bytes")
    for pattern in ("café", "some_word"):
        options = {"patterns": (pattern.encode(),), "encoding": "latin1", "count": True}
        totals = check(archive, EngineWithDevice(device), **options)
        assert (totals.scanned_bytes, totals.matched_lines) == (0, 9 * 3000)


def test_the_scan_ends_where_it_is_of_no_use(
    archive: Path, device: HostTextDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_on_device, "_BATCH_BYTES", 3 * BLOCK_SIZE)
    totals = check(archive, EngineWithDevice(device), patterns=(b"e",))
    assert totals.scanned_bytes <= 6 * BLOCK_SIZE + archive_scan._PROBED_BATCHES * BLOCK_SIZE


def test_damaged_blocks_are_reported(grep: tuple[Grep, Grep], tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "damaged.gomp"
    pack(target, tree, block_size=BLOCK_SIZE)
    with Archive(target, engine=select_engine("cpu")) as opened:
        table = opened.segments[0].blocks
        offset = table.archive_offsets[3] + table.compressed_sizes[3] // 2
    content = bytearray(target.read_bytes())
    content[offset] ^= 255
    target.write_bytes(content)
    with_cpu, with_device = grep
    arguments = ("-n", "no such thing", str(target))
    assert with_device(*arguments) == with_cpu(*arguments) == (2, b"")


@pytest.mark.timeout(600)
def test_large_files(grep: tuple[Grep, Grep], tmp_path: Path, device: HostTextDevice) -> None:
    """Ranges of large files are passed over; their lines are counted."""
    make_large_tree(tmp_path / "tree")
    target = tmp_path / "tree.gomp"
    pack(target, tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    with_cpu, with_device = grep
    for options in (["-m3", "-nA2"], ["-nB9000"]):
        arguments = (*options, "-e", r"needle [35]\d* .*r$", str(target))
        assert with_device(*arguments) == with_cpu(*arguments)
    totals = check(target, EngineWithDevice(device), patterns=(b"needle 35",), line_number=True)
    assert totals.candidate_bytes < totals.scanned_bytes / 4


def test_measures_are_counted_once(archive: Path, device: HostTextDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_on_device, "_BATCH_BYTES", 5 * BLOCK_SIZE)
    with Archive(archive, engine=EngineWithDevice(device)) as opened:
        memory = SearchMemory(opened)
        first, totals = found(opened, SearchQuery((b"rare_word",), read_all=True), memory)
        with monkeypatch.context() as patch:
            patch.setattr(text_on_device, "measure_blocks", None)
            assert found(opened, SearchQuery((b"rare_word",), read_all=True), memory) == (first, totals)
            other, other_totals = found(opened, SearchQuery((rb"rare_\w+",), glob=(b"rare",), read_all=True), memory)
        assert other == first
        assert 0 < other_totals.scanned_bytes < totals.scanned_bytes


@pytest.fixture
def devices() -> list[HostTextDevice]:
    """More than one."""
    return [HostTextDevice(kernel_library()) for _ in range(3)]


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("small_batches")
def test_several_devices(
    archive: Path, device: HostTextDevice, devices: list[HostTextDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each searches its part, the parts are about as large, and none is searched twice."""
    monkeypatch.setattr(text_on_device, "LEAST_BATCH", 1)
    scanned = []
    for each in devices:
        monkeypatch.setattr(each, "decoder", _counted(each.decoder, scanned, each))
    for pattern in (b"rare_word", rb"\bfoo|bar\s*$", b"e"):
        scanned.clear()
        totals = check(archive, EngineWithDevice(*devices), patterns=(pattern,), line_number=True)
        if totals.scanned_bytes:
            assert totals.scanned_bytes == check(archive, EngineWithDevice(device), patterns=(pattern,)).scanned_bytes
            assert sum(size for _, size in scanned) == totals.scanned_bytes
            shares = [sum(size for by, size in scanned if by is each) for each in devices]
            assert all(0.5 < 3 * share / totals.scanned_bytes < 1.5 for share in shares)
    assert scanned


def _counted(make: Callable[..., Any], scanned: list[tuple[HostTextDevice, int]], by: HostTextDevice) -> Any:
    def make_decoder(source: BlockSource) -> Any:
        decoder = make(source)
        decode = decoder.decode

        def decode_and_count(numbers: NDArray[np.uint64]) -> Any:
            scanned.append((by, int(source.uncompressed_sizes[numbers].sum())))
            return decode(numbers)

        decoder.decode = decode_and_count
        return decoder

    return make_decoder


@pytest.mark.usefixtures("small_batches")
def test_one_of_several_devices_has_no_memory(
    archive: Path, devices: list[HostTextDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(text_on_device, "LEAST_BATCH", 1)
    monkeypatch.setattr(devices[1], "decoder", lambda _: SimpleNamespace(decode=fail))
    with (
        Archive(archive, engine=EngineWithDevice(*devices)) as opened,
        pytest.raises(EngineUnavailableError, match="the host has too little free memory to search"),
    ):
        found(opened, SearchQuery((b"rare_word",), read_all=True))


def test_benchmark(tmp_path: Path, device: HostTextDevice) -> None:
    (tmp_path / "log").write_text("POST /x/v1/y/123456789 500 is slow\nERROR kernel panic timeout=123456\n" * 900)
    target = tmp_path / "log.gomp"
    pack(target, tmp_path / "log")
    report = tool_module("bench.scanning").measure_scan(target, EngineWithDevice(device), 1)
    assert report.notes == []
    assert [cells[-1] for _, cells in report.rows] == [100, 100, 0, 100, 100, 0, 0]
    assert all(rate > 0 for _, cells in report.rows for rate in cells[:5])


words = st.sampled_from(["foo", "food", "bar", "Suspend", "\u017fuspend", "x1", "été", "кот", "x" * 700])
separators = st.sampled_from([" ", "\n", "(", "-", "\n\n", "\0", "\ufeff"])
contents = st.lists(st.tuples(words, separators, st.integers(1, 60)), max_size=60).map(
    lambda runs: "".join((word + separator) * count for word, separator, count in runs)
)
patterns = st.sampled_from(
    ["foo", "Suspend", "(?i)SUSPEND", "d.*b", r"\w+d\W+bar", "o(o|d)+b?", "été.?кот", "^bar$", "x{9}$", r"\S1[^x]?foo"]
)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("small_batches")
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(files=st.lists(contents, min_size=1, max_size=5), pattern=patterns, part_size=st.sampled_from([None, 300, 5000]))
def test_any_files(
    tmp_path_factory: pytest.TempPathFactory,
    device: HostTextDevice,
    files: list[str],
    pattern: str,
    part_size: int | None,
) -> None:
    root = tmp_path_factory.mktemp("any") / "tree"
    root.mkdir()
    for number, text in enumerate(files):
        (root / f"{number}").write_text(text)
    (root / "utf-16").write_bytes(b"\xfe\xff" + files[0].encode("utf-16-be"))
    (root / "binary").write_bytes(random.Random(len(files)).randbytes(BLOCK_SIZE) + files[0].encode())
    target = root.parent / "tree.gomp"
    codec = Codec.GOMPRESSO_BIT if part_size is None else Codec.GOMPRESSO_TADOC
    pack(target, root, codec=codec, part_size=part_size, block_size=BLOCK_SIZE)
    for options in ({}, {"ignore_case": True, "text": True}, {"multiline": True}, {"context": 1}):
        check(target, EngineWithDevice(device), patterns=(pattern.encode(),), line_number=True, **options)
