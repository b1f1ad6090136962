"""Encoding on a GPU: the payloads, blocks and archives of the CPU."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from encode_cases import check_all
from payloads import CODECS, CORPUS, contents

from gompfs.codec import Codec, CodecOptions
from gompfs.engine import Engine, select_engine
from gompfs.options import GpuOptions, PackOptions
from gompfs.pack import open_source, pack_archive

pytestmark = pytest.mark.gpu
OPTIONS = [
    CodecOptions(codec, level)
    for codec, level in itertools.product(CODECS, range(1, 9))
    if codec is Codec.GOMPRESSO_BIT or level < 6
] + [CodecOptions(codec, 4, group_size_log2=size) for codec in CODECS for size in (3, 4, 5)]


@pytest.fixture(autouse=True)
def no_least_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine gives small batches to the GPU, too."""
    monkeypatch.setattr(pytest.importorskip("gompfs.engine.gpu"), "_LEAST_ENCODED", 0)


@pytest.fixture(scope="module")
def gpu() -> Engine:
    return select_engine("gpu")


@pytest.fixture(scope="module")
def stream() -> bytes:
    texts = [path.read_bytes() for path in sorted(CORPUS.glob("*/*.txt"))]
    return b"".join([*contents().values(), *texts])


def test_payloads_are_those_of_the_core() -> None:
    cupy_arrays = pytest.importorskip("gompfs.gpu.device.cupy_arrays")
    with cupy_arrays.GpuArrays() as device:
        check_all(device, 30)


@pytest.mark.parametrize(
    "options",
    OPTIONS,
    ids=lambda options: f"{options.codec.label}-{options.level}-{options.group_size_log2}",
)
def test_blocks_are_those_of_the_cpu(gpu: Engine, stream: bytes, options: CodecOptions) -> None:
    for block_size in (1 << 14, 1 << 16, 1 << 18, 1 << 20):
        encoded = gpu.encode_blocks(stream, block_size, options)
        assert encoded == select_engine("cpu").encode_blocks(stream, block_size, options)
    assert gpu.num_reencoded == 0


def test_batches_larger_than_the_slots(gpu: Engine, stream: bytes) -> None:
    options = CodecOptions(level=1)
    whole_blocks = stream[: 6 << 16]
    assert len(whole_blocks) == 6 << 16
    once = select_engine("cpu").encode_blocks(whole_blocks, 1 << 16, options)
    assert gpu.encode_blocks(whole_blocks * 800, 1 << 16, options) == once * 800


@pytest.mark.usefixtures("empty_device_memory")
def test_too_little_memory_makes_smaller_slices(stream: bytes) -> None:
    small = select_engine("gpu", gpu=GpuOptions(memory=64 << 20))
    expected = select_engine("cpu").encode_blocks(stream * 20, 1 << 16, CodecOptions())
    assert small.encode_blocks(stream * 20, 1 << 16, CodecOptions()) == expected


@pytest.mark.usefixtures("empty_device_memory")
@pytest.mark.parametrize("memory", [64 << 20, None])
def test_threads_share_an_engine(stream: bytes, memory: int | None) -> None:
    shared = select_engine("gpu", gpu=GpuOptions(memory=memory))
    streams = [stream[number * 1000 :] * 9 for number in range(12)]
    options = CodecOptions(level=2)
    with ThreadPoolExecutor(3) as executor:
        encoded = list(executor.map(lambda each: shared.encode_blocks(each, 1 << 16, options), streams))
    assert encoded == [select_engine("cpu").encode_blocks(each, 1 << 16, options) for each in streams]


def test_other_levels_and_block_sizes_are_left_to_the_cpu(gpu: Engine, stream: bytes) -> None:
    for block_size, options in (
        (1 << 16, CodecOptions(Codec.GOMPRESSO_BYTE, level=6)),
        (1 << 16, CodecOptions(level=1, dependency_elimination=True)),
        (1 << 16, CodecOptions(Codec.STORED)),
        (10_000, CodecOptions(level=1)),
    ):
        encoded = gpu.encode_blocks(stream, block_size, options)
        assert encoded == select_engine("cpu").encode_blocks(stream, block_size, options)


def test_archives_are_those_of_the_cpu(tmp_path: Path, stream: bytes) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "large").write_bytes(stream * 3)
    (tmp_path / "tree" / "small").write_bytes(stream[:100_000])
    for codec in CODECS:
        for engine in ("cpu", "gpu"):
            options = PackOptions(codec, level=5, force=True, dictionary_size=0)
            source = open_source(tmp_path / "tree")
            pack_archive([source], tmp_path / f"{engine}.gomp", options, engine=select_engine(engine))
        assert (tmp_path / "cpu.gomp").read_bytes() == (tmp_path / "gpu.gomp").read_bytes()
