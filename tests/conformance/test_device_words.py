"""Words found by a device, compared with plain Python and with the CPU. The kernels run on the host here."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_builds import ROOT, kernel_library, sanitizer_environment
from text_device_on_host import EngineWithDevice, HostTextDevice
from word_cases import BATCH_BYTES, BLOCK_SIZE, check_table, compare, odd_files, pack_files

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import CorruptBlockError, CorruptIndexError, StatsUnavailableError
from gompfs.gpu import words as gpu_words
from gompfs.model import WORD_RULES
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source
from gompfs.statistics.content import ContentText
from gompfs.statistics.content_words import content_grammars, content_word_counts
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.tasks import NAMES, compute

COUNTS = [name.encode() for name in NAMES if name not in ("binary-files", "info")]


@pytest.fixture(scope="module")
def library() -> Path:
    return kernel_library()


@pytest.fixture(scope="module")
def device(library: Path) -> HostTextDevice:
    return HostTextDevice(library)


@pytest.mark.parametrize("word_rule", WORD_RULES)
@pytest.mark.parametrize("hash_bits", [64, 35, 3, 0])
def test_words_are_compared_by_their_bytes(device: HostTextDevice, word_rule: str, hash_bits: int) -> None:
    """Words are distinguished however many share a hash. The tables grow from 16 slots."""
    for seed in range(8):
        check_table(device, word_rule, hash_bits, seed, size=1500 if hash_bits > 3 else 400)


_words = st.lists(st.binary(max_size=40), max_size=60)
_nested = st.lists(st.tuples(st.sampled_from([b"a", b"a\0", b"ab"]), st.integers(0, 90)), max_size=40).map(
    lambda pairs: [prefix * times for prefix, times in pairs]
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.one_of(_words, _nested), max_rounds=st.sampled_from([1, 3, 16]))
def test_words_are_sorted(
    device: HostTextDevice, monkeypatch: pytest.MonkeyPatch, words: list[bytes], max_rounds: int
) -> None:
    """Words are sorted in rounds of 8 bytes; the host sorts words with a long common prefix."""
    monkeypatch.setattr(gpu_words, "_MAX_ROUNDS", max_rounds)
    different = [word for word in dict.fromkeys(words) if word]
    starts = np.cumsum([0, *map(len, different)]).astype(np.uint64)
    pool = np.frombuffer(b"".join(different), np.uint8).copy()
    order = gpu_words.sort_words(device, pool, starts)
    assert [different[place] for place in order.tolist()] == sorted(different)


@pytest.mark.parametrize("word_rule", WORD_RULES)
@pytest.mark.parametrize("batch_bytes", BATCH_BYTES)
def test_odd_files(tmp_path: Path, device: HostTextDevice, word_rule: str, batch_bytes: int) -> None:
    path = pack_files(tmp_path, odd_files(), words=word_rule)
    with Archive(path, engine=select_engine("cpu")) as archive:
        compare(device, archive, batch_bytes)


def test_long_words(tmp_path: Path, device: HostTextDevice) -> None:
    """Words of 1 MB, alone and next to each other, longer than a batch."""
    long = b"w" * (1 << 20)
    contents = {"a": long, "b": long + b" " + long[1:], "c": long + b"1 " + long + b"2", "d": b"\xff" + long}
    with Archive(pack_files(tmp_path, contents), engine=select_engine("cpu")) as archive:
        for batch_bytes in (300_000, 128 << 20):
            compare(device, archive, batch_bytes)


def test_many_tiny_files(tmp_path: Path, device: HostTextDevice) -> None:
    rng = random.Random(7)
    contents = {f"{number}": b"%d\n" % rng.randrange(99) * rng.randrange(3) for number in range(2000)}
    with Archive(pack_files(tmp_path, contents), engine=select_engine("cpu")) as archive:
        compare(device, archive, 8192)
        compare(device, archive, 128 << 20)


def test_many_words_are_cut_into_parts(tmp_path: Path, device: HostTextDevice) -> None:
    """The grammar of a large text has several parts, and a file may continue in the next part."""
    rng = random.Random(8)
    contents = {f"{number}": b"".join(rng.choices([b"a ", b"b\n", b"cc "], k=700_000)) for number in range(3)}
    contents["between"] = b""
    with Archive(pack_files(tmp_path, contents), engine=EngineWithDevice(device)) as archive:
        (grammar,) = content_grammars(ContentText(archive, archive.inode_numbers()))
        assert [part.continues for part in grammar.parts()] == [False, True, True]
        compare(device, archive, 128 << 20)


@pytest.mark.parametrize(
    "options",
    [{"version": 1, "words": "whitespace"}, {"part_size": 5000}, {"part_size": 40_000}, {"dictionary_size": 4000}],
)
def test_all_tasks_of_an_archive(tmp_path: Path, device: HostTextDevice, options: dict[str, object]) -> None:
    """Results do not depend on the device, for all files, for one file, and for segments with and without a grammar.

    With parts, a file may lie in several parts, and words may cross from one into the next.
    """
    path = pack_files(tmp_path, odd_files(), **options)
    (tmp_path / "late").write_bytes(b"text that has a grammar: word word")
    with Archive(path, engine=EngineWithDevice(device)) as found, Archive(path, engine=CpuEngine()) as expected:
        queries = [StatsQuery(), *(StatsQuery(ino=found.resolve(name).ino) for name in ("long", "text", "empty"))]
        for name in COUNTS:
            if name == b"tfidf":  # tfidf needs all files together
                assert compute(name, found).read() == compute(name, expected).read()
                continue
            for query in queries:
                assert compute(name, found, query).read() == compute(name, expected, query).read()
            with pytest.raises(StatsUnavailableError, match="binary: a binary file has no statistics"):
                compute(name, found, StatsQuery(ino=found.resolve("binary").ino))
    add_to_archive(path, [open_source(tmp_path / "late")], PackOptions(), engine=CpuEngine())
    with Archive(path, engine=EngineWithDevice(device)) as found, Archive(path, engine=CpuEngine()) as expected:
        for name in COUNTS:
            assert compute(name, found).read() == compute(name, expected).read()
        counted = b"grammar:" if options.get("version") == 1 else b"grammar"
        assert counted + b"\t1\n" in compute(b"sort", found).read()


def test_damage(tmp_path: Path, device: HostTextDevice) -> None:
    """Each damaged block gives the same error as on the CPU. With verify, the CPU decodes."""
    path = pack_files(tmp_path, {"a": b"word " * 20_000, "b": b"other " * 20_000})
    whole = path.read_bytes()
    with Archive(path) as archive:
        table = archive.segments[0].blocks
    for number in range(len(table)):
        content = bytearray(whole)
        content[int(table.archive_offsets[number]) + (20 if number % 2 else 3)] ^= 1
        path.write_bytes(content)
        messages = []
        for engine in (CpuEngine(), EngineWithDevice(device)):
            with Archive(path, engine=engine) as archive, pytest.raises(CorruptBlockError) as caught:
                compute(b"wordcount", archive)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        assert f"block {number}: " in messages[0]
    path.write_bytes(whole)
    engine = EngineWithDevice(device)
    device.launched.clear()
    with Archive(path, engine=engine, verify=True) as archive:
        assert compute(b"sort", archive).read() == b"other\t20000\nword\t20000\n"
    assert not device.launched


def test_a_damaged_dictionary(tmp_path: Path, device: HostTextDevice) -> None:
    """It gives the same error as on the CPU, also for a stored block, which could be decoded without it."""
    noise = random.Random(4).randbytes(70_000).replace(b"\0", b" ")
    path = pack_files(tmp_path, {"a": noise, "b": b"other " * 20_000}, dictionary_size=2000)
    content = bytearray(path.read_bytes())
    with Archive(path) as archive:
        (section,) = archive.sections
        content[section.blocks.archive_offsets[0] + 40] ^= 1
    path.write_bytes(content)
    messages = []
    for engine in (CpuEngine(), EngineWithDevice(device)):
        with Archive(path, engine=engine) as archive, pytest.raises(CorruptBlockError) as caught:
            compute(b"wordcount", archive)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_files_outside_their_segment(tmp_path: Path, device: HostTextDevice) -> None:
    """The index gives wrong offsets for the files."""
    path = pack_files(tmp_path, {"a": b"word " * 20_000})
    add_to_archive(path, [open_source(tmp_path / "tree")], PackOptions(stats=False), engine=CpuEngine())
    for engine in (CpuEngine(), EngineWithDevice(device)):
        with Archive(path, engine=engine) as archive:
            content = ContentText(archive, archive.inode_numbers())
            content.layout.stream_offsets[:] = 1
            content.layout.sizes[:] = content.layout.run_sizes[:] = 110_000
            with pytest.raises(CorruptIndexError, match="outside its segment"):
                content_word_counts(content)


def test_too_little_memory(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = HostTextDevice(library)
    path = pack_files(tmp_path, {"a": b"word " * 20_000})

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(device, "decode_blocks", fail)
    with (
        Archive(path, engine=EngineWithDevice(device)) as archive,
        pytest.raises(StatsUnavailableError, match="more memory than is allowed on the host"),
    ):
        compute(b"wordcount", archive)


@pytest.mark.timeout(1200)
def test_no_access_out_of_bounds() -> None:
    """Runs the cases under AddressSanitizer and UndefinedBehaviorSanitizer."""
    environment = {
        **sanitizer_environment(),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    program = [sys.executable, Path(__file__).with_name("word_cases.py"), kernel_library(sanitized=True)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the device finds the words" in done.stdout


def test_all_kernels_take_part(tmp_path: Path, library: Path) -> None:
    device = HostTextDevice(library)
    check_table(device, "whitespace", 64, seed=1)
    with Archive(pack_files(tmp_path, {"a": b"word " * BLOCK_SIZE}), engine=select_engine("cpu")) as archive:
        compare(device, archive, 30_000)
    folder = ROOT / "kernels" / "statistics"
    texts = [(folder / f"{name}.cu").read_text() for name in ("words", "word_table")]
    kernels = {kernel for text in texts for kernel in re.findall(r"__global__ void (\w+)\(", text)}
    assert kernels
    assert kernels == device.launched
