"""Words found by a GPU, compared with plain Python and with the CPU."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from word_cases import BATCH_BYTES, check_table, compare, make_text, odd_files, pack_files

from gompfs.archive import Archive
from gompfs.engine import Engine, select_engine
from gompfs.errors import CorruptBlockError, StatsUnavailableError
from gompfs.gpu.arrays import TextDevice
from gompfs.model import WORD_RULES
from gompfs.options import GpuOptions
from gompfs.statistics.content import ContentText
from gompfs.statistics.content_words import content_word_counts
from gompfs.statistics.tasks import NAMES, compute

COUNTS = [name.encode() for name in NAMES if name != "info"]

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> Engine:
    return select_engine("gpu")


@pytest.fixture(scope="module")
def device(engine: Engine) -> TextDevice:
    device = engine.accelerator.text(0)
    assert device is not None
    return device


@pytest.mark.parametrize("word_rule", WORD_RULES)
@pytest.mark.parametrize("hash_bits", [64, 35, 3, 0])
def test_words_are_compared_by_their_bytes(device: TextDevice, word_rule: str, hash_bits: int) -> None:
    for seed in range(8):
        with device:
            check_table(device, word_rule, hash_bits, seed, size=300_000 if hash_bits == 64 else 2000)


@pytest.mark.parametrize("word_rule", WORD_RULES)
@pytest.mark.parametrize("codec", ["gompresso-bit", "gompresso-byte", "stored"])
def test_odd_files(tmp_path: Path, device: TextDevice, word_rule: str, codec: str) -> None:
    contents = odd_files()
    if codec == "stored":
        contents = {"noise": random.Random(1).randbytes(100_000).replace(b"\0", b" "), "text": b"word " * 9000}
    path = pack_files(tmp_path, contents, words=word_rule)
    with Archive(path, engine=select_engine("cpu")) as archive:
        for batch_bytes in BATCH_BYTES:
            compare(device, archive, batch_bytes)


@pytest.mark.usefixtures("empty_device_memory")
def test_large_text(tmp_path: Path, engine: Engine) -> None:
    """In several batches, with 4 GiB and with 256 MiB of memory, while other threads read."""
    rng = random.Random(3)
    piece = b"\n".join(make_text(0, rng, 3 << 20) for _ in range(8))
    contents = {f"{number}": b"%d " % number + piece[number * 1000 :] for number in range(16)}
    contents["long"] = b"x" * (40 << 20) + b" " + b"x" * (40 << 20)
    path = pack_files(tmp_path, contents)
    with Archive(path, engine=select_engine("cpu")) as archive:
        expected = {name: compute(name, archive).read() for name in (b"wordcount", b"inverted_index")}
    for memory in (4 << 30, 1 << 30):
        with Archive(path, engine=select_engine("gpu", gpu=GpuOptions(memory=memory))) as archive:
            for name, content in expected.items():
                assert compute(name, archive).read() == content
                assert archive.read(archive.resolve("3").ino, 0, 1000) == contents["3"][:1000]


def test_all_tasks(tmp_path: Path, engine: Engine) -> None:
    path = pack_files(tmp_path, odd_files())
    with Archive(path, engine=engine) as found, Archive(path, engine=select_engine("cpu")) as expected:
        for name in COUNTS:
            assert compute(name, found).read() == compute(name, expected).read()


def test_damage(tmp_path: Path, engine: Engine) -> None:
    path = pack_files(tmp_path, {"a": b"word " * 20_000})
    content = bytearray(path.read_bytes())
    with Archive(path) as archive:
        content[int(archive.segments[0].blocks.archive_offsets[2]) + 40] ^= 1
    path.write_bytes(content)
    with Archive(path, engine=engine) as archive, pytest.raises(CorruptBlockError, match="a: block 2: "):
        compute(b"wordcount", archive)


@pytest.mark.usefixtures("empty_device_memory")
def test_too_little_memory(tmp_path: Path) -> None:
    rng = random.Random(4)
    path = pack_files(tmp_path, {"a": b" ".join(b"%x" % rng.getrandbits(200) for _ in range(1_500_000))})
    engine = select_engine("gpu", gpu=GpuOptions(memory=64 << 20))
    with Archive(path, engine=engine) as archive:
        with pytest.raises(StatsUnavailableError, match="more memory than is allowed on NVIDIA"):
            content_word_counts(ContentText(archive, archive.inode_numbers()))
        assert archive.read(archive.resolve("a").ino, 0, 5)
