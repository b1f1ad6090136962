"""A GPU opens heads of parts as the C++ core does, and the GPU engine reads archives whose heads it opens."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from both_decoders import frame
from numpy.typing import NDArray
from payloads import CORPUS
from tadoc_heads import (
    TadocHead,
    are_same,
    by_section,
    crafted_heads,
    damaged_heads,
    heads_of_texts,
    open_on_cpu,
    part_heads,
    random_heads,
)
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import BlockStatus, Codec
from gompfs.codec.stored_head import StoredHead, StoredWords
from gompfs.engine import Engine, select_engine

if TYPE_CHECKING:
    from gompfs.engine.gpu import GpuEngine
    from gompfs.gpu.decode.device import Device

pytestmark = pytest.mark.gpu
NUM_MUTATIONS = 20_000
TADOC = {"codec": Codec.GOMPRESSO_TADOC, "block_size": 1 << 14}


def gpu_engine() -> tuple[Engine, Device]:
    engine = select_engine("gpu")
    return engine, cast("GpuEngine", engine).first_device


def stored_heads(heads: Sequence[TadocHead]) -> list[StoredHead]:
    """Returns heads that only a device may open."""

    def refuse() -> tuple[None, BlockStatus]:
        raise AssertionError("the host opens a head")

    words = {section: StoredWords(partial(part_heads([], section).words, 0)) for section in by_section(heads)}
    return [StoredHead(partial(bytes, head.block), words[head.section], refuse) for head in heads]


def open_on_gpu(device: Device, heads: Sequence[TadocHead]) -> list[NDArray[np.uint8] | None]:
    """Returns each head as the device opens it, all in one batch, or None if it refuses the head."""
    import cupy

    stored = stored_heads(heads)
    with device.lock, cupy.cuda.Device(device.number):
        addresses, statuses = device.heads.load(stored)
        assert set(statuses.tolist()) <= {BlockStatus.OK, BlockStatus.BAD_PAYLOAD}
        assert np.array_equal(addresses != 0, statuses == BlockStatus.OK)
        arrays = [device.heads._heads.get(head.number) for head in stored]
        return [None if array is None else array.get() for array in arrays]


def check(device: Device, heads: Sequence[TadocHead]) -> int:
    """Compares the device with the core. Returns how many heads both refuse."""
    expected = open_on_cpu(heads)
    for ours, theirs, head in zip(open_on_gpu(device, heads), expected, heads, strict=True):
        assert are_same(ours, theirs), head
    return sum(opened is None for opened in expected)


def test_sound_heads() -> None:
    _, device = gpu_engine()
    assert check(device, [*heads_of_texts(), *random_heads(300, random.Random(3))]) == 0


def test_each_rule() -> None:
    _, device = gpu_engine()
    heads = [head for head in crafted_heads().values() if head.pool_size > 0]
    assert len(heads) / 2 < check(device, heads) < len(heads)
    for head in heads:
        check(device, [head])


def test_damaged_heads() -> None:
    rng = random.Random(11)
    _, device = gpu_engine()
    intact = [*random_heads(200, rng), *heads_of_texts()]
    refused = 0
    for _ in range(NUM_MUTATIONS // 2000):
        refused += check(device, list(damaged_heads(intact, 2000, rng)))
    assert NUM_MUTATIONS / 4 < refused < NUM_MUTATIONS


def test_more_heads_than_the_workspace_holds() -> None:
    """They are opened in several launches."""
    _, device = gpu_engine()
    heads = list(random_heads(50, random.Random(12)))
    device.opener.workspace_bytes = 60_000
    assert check(device, heads) == 0
    assert device.opener._workspace.size <= 60_000


def read_all(path: Path, engine: Engine) -> list[tuple[bytes, BlockStatus]]:
    with Archive(path, engine=engine, verify=True) as archive:
        blocks = archive.stored.decode_stream(range(archive.num_blocks))
        return [(bytes(block.content), block.status) for block in blocks]


@pytest.fixture(scope="module")
def archive_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gpu-heads")
    (root / "tree").mkdir()
    alice = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    for number, (start, end) in enumerate(pairwise(range(0, len(alice), 9000))):
        (root / f"tree/{number}").write_bytes(alice[start:end])
    (root / "tree/binary").write_bytes(b"\0" + alice[:3000])
    pack(root / "a.gomp", root / "tree", **TADOC, part_size=20_000)
    return root / "a.gomp"


def test_an_archive(archive_path: Path) -> None:
    engine, device = gpu_engine()
    expected = read_all(archive_path, select_engine("cpu"))
    assert {status for _, status in expected} == {BlockStatus.OK}
    assert read_all(archive_path, engine) == expected
    assert engine.decode_work["cpu"].num_blocks <= 1, "only blocks that are not compressed"
    kept = device.heads.num_bytes
    assert kept > 0
    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(lambda _: read_all(archive_path, engine), range(8))) == [expected] * 8


@pytest.mark.parametrize("capacity", [0, 30_000, 100_000])
@pytest.mark.parametrize("workspace", [1000, 1 << 20])
def test_little_memory(capacity: int, workspace: int, archive_path: Path) -> None:
    """Batches are decoded in rounds; the host opens heads, or decodes blocks, if that is not enough."""
    engine, device = gpu_engine()
    device.heads._capacity = capacity
    device.opener.workspace_bytes = workspace
    assert read_all(archive_path, engine) == read_all(archive_path, select_engine("cpu"))
    assert device.heads.num_bytes <= capacity


def flip(block: bytes) -> bytes:
    return block[:-20] + bytes([block[-20] ^ 1]) + block[-19:]


def forge(block: bytes) -> bytes:
    """Returns a head of other bytes with a right checksum."""
    changed = bytearray(block[32:])
    changed[len(changed) // 2 :] = bytes(len(changed) - len(changed) // 2)
    return frame(Codec.HEAD, bytes(changed), int.from_bytes(block[12:16], "little"), 0)


def test_damaged_archives(archive_path: Path, tmp_path: Path) -> None:
    with Archive(archive_path, engine=select_engine("cpu")) as archive:
        (segment,) = archive.segments
        parts, table = segment.parts, segment.blocks
        ranges = [pair for pair in zip(parts.head_offsets, parts.head_sizes, strict=True) if pair[1]]
        numbers = [number for number, codec in enumerate(segment.codecs) if codec == Codec.GOMPRESSO_TADOC]
        blocks = [(table.archive_offsets[number], table.compressed_sizes[number]) for number in numbers]
        (words,) = (section.blocks for section in archive.sections)
        section = words.archive_offsets[0], words.compressed_sizes[0]
    cases: list[list[tuple[tuple[int, int], Callable[[bytes], bytes]]]] = [
        [(ranges[0], flip)], [(ranges[1], forge)], [(ranges[2], lambda block: bytes(len(block)))],
        [(blocks[0], flip), (blocks[1], flip), (ranges[0], forge)], [(section, flip)],
        [(blocks[2], lambda block: bytes(len(block))), (ranges[1], forge)],
    ]  # fmt: skip
    engine, _ = gpu_engine()
    for number, changes in enumerate(cases):
        path = Path(shutil.copy(archive_path, tmp_path / str(number)))
        content = bytearray(path.read_bytes())
        for (offset, size), change in changes:
            content[offset : offset + size] = change(bytes(content[offset : offset + size]))
        path.write_bytes(content)
        expected = read_all(path, select_engine("cpu"))
        assert {status for _, status in expected} > {BlockStatus.OK}
        assert read_all(path, engine) == expected
