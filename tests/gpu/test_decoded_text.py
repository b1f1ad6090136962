"""Blocks that are decoded to text on a device, on a stand-in for one, compared with the CPU.

The stand-in (gpus_on_host.py) runs the kernels on the host.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cupy_on_host import FakeHeads
from dictionary_trees import similar_text
from gpus_on_host import Gpus, gpus_on_host
from native_builds import kernel_library
from tree_helpers import pack
from xxhash import xxh3_64_digest

from gompfs.archive import Archive
from gompfs.codec import BlockStatus, Codec
from gompfs.engine import select_engine
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.decode.archive_source import ArchiveSource
from gompfs.options import GpuOptions

BLOCK_SIZE = 16 << 10
KINDS = {
    "bit": {"dictionary_size": 0},
    "dictionary": {"dictionary_size": 32 << 10},
    "text": {"codec": Codec.GOMPRESSO_TADOC, "part_size": 40_000},
}


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text and noise, in files of a few blocks."""
    root = tmp_path_factory.mktemp("staged")
    rng = random.Random(3)
    (root / "tree").mkdir()
    for number in range(12):
        noise = rng.randbytes(2 * BLOCK_SIZE + number) if number % 3 == 0 else b""
        (root / "tree" / f"{number:02}").write_bytes(similar_text(f"{number}", 50_000) + noise)
    pack(root / "tree.gomp", root / "tree", block_size=BLOCK_SIZE, **KINDS[request.param])
    return root / "tree.gomp"


@pytest.fixture
def gpu() -> Iterator[Gpus]:
    with ExitStack() as stack:
        yield stack.enter_context(gpus_on_host(1, kernel_library()))


def text_device(**options: Any) -> Any:
    from gompfs.engine.gpu import GpuEngine

    engine = GpuEngine(num_threads=2, options=GpuOptions(**options) if options else None)
    return engine.accelerator.search(0)[0]


def decode_all(path: Path, text: Any, step: int = 1, times: int = 1) -> list[tuple[list[bytes], list[BlockStatus]]]:
    """Returns the contents of every `step`th block and the statuses, for each of some times."""
    results = []
    with Archive(path, engine=select_engine("cpu")) as opened, text:
        source = ArchiveSource(opened.stored, 2)
        decoder = text.decoder(source)
        numbers = np.arange(0, opened.num_blocks, step, dtype=np.uint64)
        sizes = source.uncompressed_sizes[numbers].tolist()
        for _ in range(times):
            decoded = decoder.decode(numbers)
            statuses = [BlockStatus(status) for status in decoded.statuses().tolist()]
            content = decoded.text.get_anywhere()
            ranges = zip(decoded.offsets.tolist(), sizes, strict=True)
            results.append(([content[start : start + size].tobytes() for start, size in ranges], statuses))
    return results


def decode_on_cpu(path: Path, step: int = 1) -> tuple[list[bytes], list[BlockStatus]]:
    with Archive(path, engine=select_engine("cpu")) as opened:
        blocks = opened.stored.decode_stream(range(0, opened.num_blocks, step))
        return [bytes(block.content) for block in blocks], [block.status for block in blocks]


@pytest.mark.parametrize("step", [1, 3])
def test_contents(archive: Path, gpu: Gpus, step: int) -> None:
    """The same batch twice: without room for payloads, and with it. Payloads that stay are not copied again."""
    expected = decode_on_cpu(archive, step)
    assert decode_all(archive, text_device(), step, 2) == [expected] * 2
    text = text_device(memory=256 << 20)
    assert decode_all(archive, text, step, 2) == [expected] * 2
    gpu[0].forget()
    assert decode_all(archive, text, step) == [expected]  # another decoder
    assert gpu[0].uploaded < archive.stat().st_size / 4


def test_damaged_blocks(archive: Path, gpu: Gpus, tmp_path: Path) -> None:
    with Archive(archive, engine=select_engine("cpu")) as opened:
        table = opened.segments[0].blocks
        hit = [table.archive_offsets[number] + table.compressed_sizes[number] - 1 for number in (2, 7)]
        hit.append(table.archive_offsets[11])
    content = bytearray(archive.read_bytes())
    for offset in hit:
        content[offset] ^= 0xFF
    broken = tmp_path / "broken.gomp"
    broken.write_bytes(content)
    expected, statuses = decode_on_cpu(broken)
    ((found, of_device),) = decode_all(broken, text_device(memory=256 << 20))
    assert of_device == statuses
    assert sum(status is not BlockStatus.OK for status in statuses) >= 3
    is_sound = [status is BlockStatus.OK for status in statuses]
    assert [each for each, sound in zip(found, is_sound, strict=True) if sound] == [
        each for each, sound in zip(expected, is_sound, strict=True) if sound
    ]


def test_blocks_forged_as_stored(archive: Path, gpu: Gpus, tmp_path: Path) -> None:
    """Their checksums are right, but their payloads are shorter than what they should contain."""
    forged = tmp_path / "forged.gomp"
    content = bytearray(archive.read_bytes())
    with Archive(archive, engine=select_engine("cpu")) as opened:
        table = opened.segments[0].blocks
        for number in (0, 5, 9):
            start, size = table.archive_offsets[number], table.compressed_sizes[number]
            block = content[start : start + size]
            block[4] = Codec.STORED
            block[24:32] = xxh3_64_digest(bytes(block[:24] + block[32:]))[::-1]
            content[start : start + size] = block
    forged.write_bytes(content)
    _, statuses = decode_on_cpu(forged)
    assert sum(status is not BlockStatus.OK for status in statuses) >= 2
    ((_, found),) = decode_all(forged, text_device())
    assert found == statuses


@pytest.mark.parametrize("capacity", [0, 1, 2])
def test_heads_that_do_not_fit(archive: Path, gpu: Gpus, capacity: int) -> None:
    """Their blocks wait for another pass, or the host decodes them."""
    text = text_device(memory=256 << 20)
    text._device.heads = gpu[0].heads = FakeHeads(capacity)
    assert decode_all(archive, text, times=2) == [decode_on_cpu(archive)] * 2


def test_too_little_memory(archive: Path, gpu: Gpus) -> None:
    text = text_device(memory=256 << 20)
    gpu[0].memory = gpu[0].used + 500_000
    with pytest.raises((EngineUnavailableError, MemoryError)):
        decode_all(archive, text)
    gpu[0].memory = 1 << 30
    assert decode_all(archive, text) == [decode_on_cpu(archive)]
