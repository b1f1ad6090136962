"""Work that is spread over several devices: the same bytes, statuses and errors as on one, and a share for each.

The devices are stand-ins that run the kernels on the host (gpus_on_host.py). They refuse memory, streams and kernels of
another device than the current one of the thread.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dictionary_trees import similar_text
from gpus_on_host import Gpus, gpus_on_host
from native_builds import kernel_library
from oracle.block import build_block
from tree_helpers import add, pack

import gompfs
from gompfs.archive import Archive
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, CodecOptions, parse_block_header
from gompfs.engine import Engine, selection
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import CorruptBlockError, EngineUnavailableError, OptionError
from gompfs.files import ArchiveFiles
from gompfs.gpu.decode import shares
from gompfs.gpu.device.spread import cut_evenly, run_together
from gompfs.model import ROOT_INO
from gompfs.options import GpuOptions, PackOptions
from gompfs.pack import contents as pack_contents
from gompfs.pack import open_source, pack_archive
from gompfs.search.gpu import archive_scan, text_on_device
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch
from gompfs.search.search_memory import SearchMemory
from gompfs.statistics.answering import RESIDENT, Answering
from gompfs.statistics.tasks import compute
from gompfs.verify import verify_archive

BLOCK_SIZE, ARCHIVE_BLOCK_SIZE = 4 << 10, 16 << 10
LEAST_SHARE = 8 * BLOCK_SIZE

UseGpus = Callable[..., Gpus]


@pytest.fixture
def use_gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[UseGpus]:
    """Returns a function that makes stand-ins, with small shares."""
    monkeypatch.setattr(shares, "LEAST_SHARE", LEAST_SHARE)
    monkeypatch.setattr(selection, "has_cupy", lambda: True)
    with ExitStack() as stack:
        yield lambda count, **limits: stack.enter_context(gpus_on_host(count, kernel_library(), **limits))


def engine_of(gpus: Gpus, count: int | None = None, **options: Any) -> Any:
    """Returns an engine that uses all devices, or the first ones."""
    from gompfs.engine.gpu import GpuEngine

    return GpuEngine(range(count or len(gpus)), 2, options=GpuOptions(**options) if options else None)


def batch(num_blocks: int, seed: int = 1) -> list[bytes]:
    """Returns blocks of both codecs and stored ones, some of which are damaged."""
    rng = random.Random(seed)
    cpu, blocks = CpuEngine(), []
    for number in range(num_blocks):
        noise = rng.randbytes(BLOCK_SIZE)
        content = (
            noise if number % 9 == 4 else similar_text(f"{seed} {number}", rng.choice((BLOCK_SIZE, BLOCK_SIZE // 3)))
        )
        codec = rng.choice((Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE))
        (encoded,) = cpu.encode_blocks(content, BLOCK_SIZE, CodecOptions(codec, 6))
        blocks.append(encoded.data)
    return blocks


def damaged(blocks: list[bytes]) -> list[bytes]:
    """Returns the blocks with some that have a wrong checksum, header, payload or content."""
    broken = list(blocks)
    for number in range(3, len(blocks), 10):
        block, header = blocks[number], parse_block_header(blocks[number])
        kind = number // 10 % 4
        if kind == 0:
            broken[number] = block[:-1] + bytes([block[-1] ^ 1])
        elif kind == 1:
            broken[number] = b"X" + block[1:]
        else:
            payload = block[BLOCK_HEADER_SIZE:]
            payload = bytes(len(payload)) if kind == 2 and header.codec != Codec.STORED else payload
            broken[number] = build_block(header.codec, payload, bytes(header.uncompressed_size)).data
    return broken


def decode(engine: Engine, blocks: list[bytes], sizes: list[int], **options: Any) -> tuple[bytes, list[BlockStatus]]:
    out = engine.allocate(sum(sizes))
    statuses = engine.decode_blocks(blocks, out, sizes=sizes, **options)
    return bytes(out), statuses


def sizes_of(blocks: list[bytes]) -> list[int]:
    return [parse_block_header(block).uncompressed_size for block in blocks]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_batch_is_divided(count: int, use_gpus: UseGpus) -> None:
    """The bytes and statuses are those of the CPU, with damaged blocks too, and each device decodes its part."""
    blocks = batch(80)
    sizes = sizes_of(blocks)
    gpus = use_gpus(count)
    engine = engine_of(gpus)
    for given in (blocks, damaged(blocks)):
        for verify in (False, True):
            assert decode(engine, given, sizes, verify=verify) == decode(CpuEngine(), given, sizes, verify=verify)
    assert len(set(CpuEngine().decode_blocks(damaged(blocks), memoryview(bytearray(sum(sizes))), sizes=sizes))) > 3
    total = sum(gpu.downloaded for gpu in gpus)
    assert all(0.7 < gpu.downloaded * count / total < 1.3 for gpu in gpus)
    assert engine.decode_work["gpu"].num_bytes + engine.decode_work["cpu"].num_bytes > 3 * sum(sizes)


def test_the_devices_work_at_the_same_time(use_gpus: UseGpus) -> None:
    gpus = use_gpus(3)
    engine = engine_of(gpus)
    blocks = [block for block in batch(80) if block[4] == Codec.GOMPRESSO_BIT]
    together = threading.Barrier(3, timeout=60)
    threads = []
    gpus.before_launch = lambda _: (threads.append(threading.current_thread().name), together.wait())
    decode(engine, blocks, sizes_of(blocks))
    assert sorted(name.rpartition("_")[0] for name in threads) == ["", "gompfs-device", "gompfs-device"]
    assert [dict(gpu.launches) for gpu in gpus] == [{"decode_bit": 1}] * 3


def test_the_cpu_decodes_small_batches(use_gpus: UseGpus) -> None:
    (gpu,) = use_gpus(1)
    engine = engine_of([gpu])
    blocks = [block for block in batch(40) if block[4] == Codec.GOMPRESSO_BYTE]
    size = sum(sizes_of(blocks))
    engine.least_decoded = size + 1
    for given in (blocks, damaged(blocks)):
        assert decode(engine, given, sizes_of(blocks)) == decode(CpuEngine(), given, sizes_of(blocks))
    assert engine.decodes_on_cpu(size)
    assert (gpu.launches, gpu.pinned) == ({}, 0)
    assert [engine.decode_work[name].num_bytes for name in ("cpu", "gpu")] == [2 * size, 0]
    engine.least_decoded = size
    assert decode(engine, blocks, sizes_of(blocks)) == decode(CpuEngine(), blocks, sizes_of(blocks))
    assert not engine.decodes_on_cpu(size)
    assert (gpu.launches, engine.decode_work["gpu"].num_bytes) == ({"decode_byte": 1}, size)
    engine.least_decoded = 8 << 20
    assert "the CPU decodes batches below 8 MiB" in engine.reason


def test_small_batches_go_to_the_devices_in_turn(use_gpus: UseGpus) -> None:
    gpus = use_gpus(3)
    engine = engine_of(gpus)
    blocks = [block for block in batch(40) if block[4] == Codec.GOMPRESSO_BYTE]
    for block in blocks[:6]:
        assert decode(engine, [block], sizes_of([block])) == decode(CpuEngine(), [block], sizes_of([block]))
    assert [gpu.launches["decode_byte"] for gpu in gpus] == [2, 2, 2]
    assert decode(engine, [], []) == (b"", [])


def test_only_the_devices_that_are_given_are_used(use_gpus: UseGpus) -> None:
    gpus = use_gpus(3)
    engine = selection.select_engine("gpu:2,1", 2)
    blocks = batch(60)
    assert decode(engine, blocks, sizes_of(blocks)) == decode(CpuEngine(), blocks, sizes_of(blocks))
    assert (gpus[0].pinned, gpus[0].launches, gpus[0].used) == (0, {}, 0)
    assert gpus[1].pinned > 0
    assert gpus[2].pinned > 0
    for name in ("gpu:1,1", "gpu:0,x"):
        with pytest.raises(OptionError, match="CUDA device"):
            selection.select_engine(name)


def test_payloads_stay_on_one_device_each(use_gpus: UseGpus) -> None:
    """All of them together take the memory that they take on one device. Other batches find them where they are."""
    blocks = [block for block in batch(120) if block[4] == Codec.GOMPRESSO_BIT]
    payloads = sum(len(block) - BLOCK_HEADER_SIZE for block in blocks)
    gpus = use_gpus(2)
    engine = engine_of(gpus, memory=256 << 20)
    for start in (0, 0, 7, 13):
        for gpu in gpus:
            gpu.forget()
        given = blocks[start:]
        assert decode(engine, given, sizes_of(given)) == decode(CpuEngine(), given, sizes_of(given))
        uploaded = [gpu.uploaded for gpu in gpus]
        assert all(gpu.launches == {"decode_bit": 1} for gpu in gpus)
        if start == 0 and sum(uploaded) > payloads:
            assert all(0.4 < each / sum(uploaded) < 0.6 for each in uploaded)
    descriptions = 64 * len(blocks) + 2 * 9 * 16  # columns begin at multiples of 16
    assert sum(uploaded) <= descriptions < payloads
    kept = [len(device.store) for device in engine._devices]
    assert sum(kept) == len(blocks)
    (first,) = [device.store for device in engine._devices[:1]]
    first.clear()
    assert decode(engine, blocks, sizes_of(blocks)) == decode(CpuEngine(), blocks, sizes_of(blocks))


def test_an_archive_is_divided_among_the_devices_on_which_all_of_it_must_stay(use_gpus: UseGpus) -> None:
    gpus = use_gpus(2)
    options: dict[str, Any] = {"memory": 256 << 20, "resident": "on"}
    engine_of(gpus, archive_size=80 << 20, **options)
    engine_of(gpus, archive_size=100 << 20, **options)
    with pytest.raises(EngineUnavailableError, match="the archive needs"):
        engine_of(gpus, archive_size=400 << 20, **options)


@pytest.mark.parametrize("which", [0, 1])
def test_a_device_without_memory(which: int, use_gpus: UseGpus) -> None:
    """The error is that of one device; afterwards, the engine decodes as before."""
    gpus = use_gpus(2)
    engine = engine_of(gpus)
    blocks = batch(80)
    memory, gpus[which].memory = gpus[which].memory, gpus[which].used
    with pytest.raises(EngineUnavailableError, match=f"stand-in {which} has too little free memory"):
        decode(engine, blocks, sizes_of(blocks))
    gpus[which].memory = memory
    assert decode(engine, blocks, sizes_of(blocks)) == decode(CpuEngine(), blocks, sizes_of(blocks))


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    ended = threading.Event()

    def fail(name: str) -> None:
        raise ValueError(name)

    def go_on() -> None:
        ended.set()

    with pytest.raises(ValueError, match="first"):
        run_together([lambda: fail("first"), lambda: fail("second"), go_on])
    assert ended.is_set()
    with pytest.raises(ValueError, match="second"):
        run_together([lambda: None, lambda: fail("second"), lambda: fail("third")])
    assert run_together([lambda number=number: number for number in range(5)]) == list(range(5))
    assert run_together([]) == []


def test_runs_of_equal_size() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        sizes = rng.choice([0, 1, 100, 5000, 70_000], rng.integers(0, 60))
        count = int(rng.integers(1, 6))
        runs = cut_evenly(sizes, count)
        assert len(runs) == count
        assert [*np.concatenate([np.arange(sizes.size)[run] for run in runs])] == [*range(sizes.size)]
        largest = int(sizes.max(initial=0))
        assert all(abs(int(sizes[run].sum()) - sizes.sum() / count) <= largest for run in runs)


KINDS: dict[str, dict[str, object]] = {
    "bit": {"codec": Codec.GOMPRESSO_BIT, "dictionary_size": 0},
    "byte": {"codec": Codec.GOMPRESSO_BYTE},
    "text": {"codec": Codec.GOMPRESSO_TADOC},
}


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    rng = random.Random(6)
    files = {
        f"text/{number:02}": similar_text(f"file {number}", rng.choice((500, 9000, 40_000))) for number in range(30)
    }
    return files | {"noise": rng.randbytes(30_000), "nothing": b""}


@pytest.fixture(scope="module")
def archives(contents: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("spread") / "tree"
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    paths = {}
    for kind, options in KINDS.items():
        paths[kind] = root.with_name(f"{kind}.gomp")
        pack(paths[kind], root, **{"block_size": ARCHIVE_BLOCK_SIZE, **options})
    return paths


@pytest.mark.parametrize("kind", KINDS)
def test_archives(kind: str, use_gpus: UseGpus, archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    """Files one by one and many at once, a large range, and `verify`; each device decodes a part of each."""
    gpus = use_gpus(2)
    engine = engine_of(gpus)
    names = list(contents)
    with Archive(archives[kind], engine=engine) as archive:
        files = ArchiveFiles(archive)
        assert {name: files.read(name) for name in names} == contents
        for gpu in gpus:
            gpu.forget()
        arrays = files.read_many(names)
        assert [bytes(each) for each in arrays] == list(contents.values())
        assert all(gpu.downloaded for gpu in gpus)
    with Archive(archives[kind], engine=engine) as archive:
        assert verify_archive(archive).is_sound
        assert archive.stored.heads is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_block_has_the_error_of_one_device(
    kind: str, use_gpus: UseGpus, archives: dict[str, Path], contents: dict[str, bytes], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.gomp"
    data = bytearray(archives[kind].read_bytes())
    with Archive(archives[kind]) as archive:
        table = archive.segments[0].blocks
        block = len(table) // 2
        data[table.archive_offsets[block] + table.compressed_sizes[block] - 1] ^= 1
    copy.write_bytes(data)
    gpus = use_gpus(3)
    errors = []
    for count in (1, 2, 3):
        engine = engine_of(gpus, count)
        with Archive(copy, engine=engine) as archive:
            with pytest.raises(CorruptBlockError) as caught:
                ArchiveFiles(archive).read_many(list(contents))
            errors.append((str(caught.value), caught.value.block, caught.value.path))
            (damage,) = verify_archive(archive).damages
            errors.append((damage.block, damage.status))
    assert errors == errors[:2] * 3
    assert errors[0][1] == block


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_arrays_on_several_devices(
    count: int, kind: str, use_gpus: UseGpus, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """Together they have all items in order. Each device has about the same size, and nothing of another one."""
    gpus = use_gpus(count)
    engine = engine_of(gpus)
    names = list(contents)
    random.Random(kind).shuffle(names)
    wanted: list[Any] = [*names, ("text/03", 100, 400)]
    expected = [*(contents[name] for name in names), contents["text/03"][100:400]]
    devices = [f"cuda:{number}" for number in range(count)]
    with Archive(archives[kind], engine=engine) as archive:
        files = ArchiveFiles(archive)
        for gpu in gpus:
            gpu.forget()
        results = files.read_many_on(wanted, devices)
        assert [arrays.device for arrays in results] == devices
        items = [arrays.data.get_anywhere()[start:end] for arrays in results for start, end in pairwise(arrays.offsets)]
        assert [item.tobytes() for item in items] == expected
        total = sum(map(len, expected))
        assert all(abs(arrays.offsets[-1] - total / count) < 40_000 for arrays in results)
        assert all(arrays.data.owner is gpu for arrays, gpu in zip(results, gpus, strict=True))
        assert all(gpu.launches["gather_pieces"] for gpu in gpus)
        with pytest.raises(gompfs.EntryNotFoundError):
            files.read_many_on([*names, "missing"], devices)
        with pytest.raises(OptionError, match="no device"):
            files.read_many_on(names, [])
        assert [bytes(each) for each in files.read_many_on(names, ["cpu"])[0]] == [contents[name] for name in names]


def test_a_device_without_memory_for_arrays(
    use_gpus: UseGpus, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    gpus = use_gpus(2)
    engine = engine_of(gpus)
    with Archive(archives["bit"], engine=engine) as archive:
        files = ArchiveFiles(archive)
        files.read_many_on(list(contents), ["cuda:0", "cuda:1"])
        gpus[1].memory = gpus[1].used + 300_000
        messages = []
        for read in (
            lambda: files.read_many(list(contents), "cuda:1"),
            lambda: files.read_many_on([*contents, *contents], ["cuda:0", "cuda:1"]),
        ):
            with pytest.raises((EngineUnavailableError, MemoryError)) as caught:
                read()
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("kind", KINDS)
def test_searches(kind: str, use_gpus: UseGpus, archives: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of blocks go to the devices in turn. The second time, nothing is uploaded but the pattern."""
    monkeypatch.setattr(text_on_device, "_BATCH_BYTES", 3 * ARCHIVE_BLOCK_SIZE)
    monkeypatch.setattr(text_on_device, "LEAST_BATCH", 1)
    monkeypatch.setattr(archive_scan, "_MOST_CANDIDATES", 1)
    gpus = use_gpus(2)
    engine = engine_of(gpus, memory=256 << 20)
    query = SearchQuery((b"[0-9a-f]{6} 6e2925",), line_number=True, read_all=True)
    with Archive(archives[kind], engine=CpuEngine()) as archive:
        expected = b"".join(ArchiveSearch(archive, query, [(b"", ROOT_INO)]))
    with Archive(archives[kind], engine=engine) as archive:
        memory = SearchMemory(archive)
        for uploaded in (1 << 30, 40_000):
            for gpu in gpus:
                gpu.forget()
            search = ArchiveSearch(archive, query, [(b"", ROOT_INO)], memory=memory)
            assert b"".join(search) == expected != b""
            assert search.totals.scanned_bytes == sum(sum(each.blocks.uncompressed_sizes) for each in archive.segments)
            assert len({gpu.launches["run_automaton"] for gpu in gpus}) == 1
            assert all(gpu.launches["run_automaton"] > 2 and gpu.uploaded < uploaded for gpu in gpus)


@pytest.mark.parametrize(("codec", "is_large"), [(Codec.GOMPRESSO_BIT, True), (Codec.GOMPRESSO_BYTE, False)])
def test_packing(codec: Codec, is_large: bool, use_gpus: UseGpus, contents: dict[str, bytes], tmp_path: Path) -> None:
    """The archive is that of the CPU. The batches go to the devices in turn, two for each at a time."""
    gpus = use_gpus(2)
    from gompfs.engine import gpu as gpu_module

    source = tmp_path / "source"
    source.write_bytes(b"".join(contents.values())[: 9 * ARCHIVE_BLOCK_SIZE])
    options = PackOptions(codec=codec, level=3, block_size=ARCHIVE_BLOCK_SIZE, dictionary_size=0)
    archives = []
    assert (engine_of(gpus).num_encode_batches, engine_of(gpus, 1).num_encode_batches) == (4, 2)
    for engine in (engine_of(gpus), CpuEngine()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gpu_module, "_LEAST_ENCODED", 0)
            if is_large:  # it is not read whole, but into the memory of a batch
                patch.setattr(pack_contents, "MAX_WHOLE_SIZE", 1000)
            patch.setattr(engine, "encode_batch_bytes", 2 * ARCHIVE_BLOCK_SIZE, raising=False)
            target = tmp_path / f"{len(archives)}.gomp"
            pack_archive([open_source(source)], target, options, engine=engine)
        archives.append(target.read_bytes())
    launches = [gpu.launches[f"encode_{codec.label.rpartition('-')[2]}"] for gpu in gpus]
    assert sorted(launches) == [2, 3]
    assert archives[0] == archives[1]


def test_statistics(use_gpus: UseGpus, tmp_path: Path) -> None:
    """Words that stay are divided: here, those of each generation are on a device of their own."""
    archive_path = tmp_path / "a.gomp"
    for number, make in enumerate((pack, add)):
        tree = tmp_path / f"{number}"
        tree.mkdir()
        for file in range(9):
            (tree / f"{number}{file}").write_bytes(similar_text(f"{number} {file}", 900 * file))
        make(archive_path, tree, codec=Codec.GOMPRESSO_TADOC)
    with Archive(archive_path, engine=CpuEngine()) as archive:
        word = compute(b"wordcount", archive).read().split(b"\t")[0]
        names = [b"wordcount", b"sequence_count", b"term_vector", b"tfidf", b"word/" + word]
        names += [b"files/04/wordcount", b"files/13/term_vector"]
        expected = [compute(name, archive).read() for name in names]
    gpus = use_gpus(2)
    with Archive(archive_path, engine=engine_of(gpus, memory=64 << 20, stats_memory=16 << 20)) as archive:
        answering = Answering(archive)
        for gpu in gpus:
            gpu.forget()
        assert [compute(name, archive, answering=answering).read() for name in names] == expected
        assert {engine for _, engine in answering.all_times()} == {RESIDENT}
        assert "stay on stand-in 0, stand-in 1" in answering.reason
        assert all(gpu.launches["count_phrase"] == 1 for gpu in gpus)
        answering.drop("the test is over")


@pytest.mark.parametrize("count", [1, 2])
def test_pinned_memory_is_near_its_device(
    count: int, use_gpus: UseGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several devices, threads allocate it on a CPU near the device, and may run anywhere afterwards."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU")
    first, *others = sorted(allowed)
    for number, cpus in enumerate((f"{first}", ",".join(f"{cpu}-{cpu}" for cpu in others))):
        (tmp_path / f"0000:b{number}:00.0").mkdir()
        (tmp_path / f"0000:b{number}:00.0" / "local_cpulist").write_text(cpus + "\n")
    gpus = use_gpus(3)
    from gompfs.engine import gpu as gpu_module
    from gompfs.gpu.device import cuda, slot

    cpus_near = cuda.CpusNearDevices(tmp_path)
    for module in (gpu_module, slot):
        monkeypatch.setattr(module, "CPUS_NEAR_DEVICES", cpus_near)
    engine = engine_of(gpus, count)
    blocks = batch(80)
    out = memoryview(bytearray(sum(sizes_of(blocks))))
    assert set(engine.decode_blocks(blocks, out)) == {BlockStatus.OK}
    expected = [{frozenset([first])}, {frozenset(others)}] if count == 2 else [{frozenset(allowed)}]
    assert [gpu.pinned_on for gpu in gpus[:count]] == expected
    assert os.sched_getaffinity(0) == allowed
    cpus_near.add(2)  # the system does not know it
    for number in (2, 3):
        with cpus_near.run_near(number):
            assert os.sched_getaffinity(0) == allowed
