"""Many files read into one array: on the CPU, on a GPU, and on a stand-in for one, with the same bytes as the sources.

The stand-in (cupy_on_host.py) runs the code of the GPU, and its kernels that move pieces and check contents.
"""

from __future__ import annotations

import os
import random
import tarfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cupy_on_host import FakeDevice, OutOfMemoryError, cupy_on_host
from dictionary_trees import OPTIONS, similar_text
from forged_index import forge_index
from native_builds import kernel_library
from numpy.typing import NDArray
from tree_helpers import pack

import gompfs
from gompfs.archive import Archive
from gompfs.arrays import Arrays
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, build_block, parse_block_header
from gompfs.engine import selection
from gompfs.errors import (
    CorruptBlockError,
    CorruptIndexError,
    EntryIsDirectoryError,
    EntryNotFoundError,
    EntryTypeError,
    OptionError,
)
from gompfs.files import ArchiveFiles

BLOCK_SIZE = 16 << 10
WORDS = [b"block", b"stream", b"extent", b"inode", b"\n"]


@dataclass
class Place:
    """Where a test reads files to."""

    name: str
    make: Callable[..., Any]
    """Makes the device, in place of the one before."""

    def read(self, files: ArchiveFiles, wanted: Any, **arguments: Any) -> Arrays:
        return files.read_many(wanted, self.name, **arguments)

    @property
    def is_cpu(self) -> bool:
        return self.name == "cpu"


@pytest.fixture(params=["cpu", "stand-in", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    is_fake = request.param == "stand-in"

    def make(**limits: int) -> Any:
        if is_fake:
            device = FakeDevice(kernel_library(), **limits)
            monkeypatch.setattr(selection, "select_device", lambda *_: device)
            return device
        return None

    if is_fake:
        monkeypatch.setattr(selection, "find_spec", lambda _: None)  # no other engine uses the stand-in
    with cupy_on_host() if is_fake else nullcontext():
        make()
        yield Place("cuda:0" if is_fake else request.param, make)


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    """Files of all sizes around that of a block, of text and noise, and equal ones."""
    rng = random.Random(11)
    sizes = [0, 1, 2, 15, 100, 3000, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 3 * BLOCK_SIZE, 5 * BLOCK_SIZE + 77]
    files = {f"text/{size}": similar_text(f"text {size}", size) for size in sizes}
    files |= {f"noise/{size}": rng.randbytes(size) for size in sizes}
    files |= {f"small/{number:03d}": rng.choice(WORDS) * rng.randrange(300) for number in range(150)}
    return files | {"again/text": files[f"text/{3 * BLOCK_SIZE}"], "again/noise": files["noise/3000"]}


@pytest.fixture(scope="module")
def tree(contents: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many") / "tree"
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


KINDS: dict[str, dict[str, object]] = {
    "bit": {"codec": Codec.GOMPRESSO_BIT, "dictionary_size": 0},
    "byte": {"codec": Codec.GOMPRESSO_BYTE},
    "version 1": {"version": 1},
    "parts": {"codec": Codec.GOMPRESSO_BIT, "part_size": 5 * BLOCK_SIZE + 1000, "dictionary_size": 0},
    "text": {"stats": True},
    "dictionary": OPTIONS,
}


@pytest.fixture(scope="module")
def archives(tree: Path) -> dict[str, Path]:
    """One archive of each kind."""
    paths = {}
    for kind, options in KINDS.items():
        paths[kind] = tree.with_name(f"{kind}.gomp")
        pack(paths[kind], tree, **{"block_size": BLOCK_SIZE, **options})
    return paths


def on_host(data: Any) -> NDArray[np.uint8]:
    return data.get() if hasattr(data, "get") else np.asarray(data)


def check(arrays: Arrays, expected: list[bytes]) -> None:
    data = on_host(arrays.data)
    assert arrays.offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert [data[start:end].tobytes() for start, end in pairwise(arrays.offsets)] == expected


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_files(
    kind: str, verify: bool, place: Place, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """In random order, some of them twice; as paths and as an array of inode numbers."""
    names = [*contents, "text/3000", "noise/3000"]
    random.Random(kind).shuffle(names)
    expected = [contents[name] for name in names]
    with gompfs.open(archives[kind], verify=verify) as files:
        check(place.read(files, names), expected)
        check(place.read(files, np.array([files.stat(name).st_ino for name in names])), expected)
        check(place.read(files, [os.fsencode(names[0]), Path(names[1]), files.stat(names[2]).st_ino]), expected[:3])


@pytest.mark.parametrize("kind", ["bit", "text"])
def test_ranges(kind: str, place: Place, archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    rng = random.Random(kind)
    with gompfs.open(archives[kind]) as files:
        wanted: list[Any] = [("text/3000", None, None), ("text/3000", 5, None), ("text/15", None, 7), ("text/0", 3, 9)]
        for name in rng.choices(list(contents), k=400):
            start, stop = sorted(rng.randrange(len(contents[name]) + 50) for _ in range(2))
            wanted.append((name, start, stop))
        expected = [contents[name][start:stop] for name, start, stop in wanted]
        check(place.read(files, wanted), expected)
        ends = [1 << 40 if stop is None else stop for _, _, stop in wanted]
        rows = [(files.stat(name).st_ino, start or 0, end) for (name, start, _), end in zip(wanted, ends, strict=True)]
        check(place.read(files, np.array(rows)), expected)


def test_nothing(place: Place, archives: dict[str, Path]) -> None:
    with gompfs.open(archives["bit"]) as files:
        check(place.read(files, []), [])
        check(place.read(files, np.zeros(0, np.int64)), [])
        check(place.read(files, ["text/0", "noise/0"]), [b"", b""])


def test_holes_are_zeros(place: Place, tmp_path: Path) -> None:
    """Also in a buffer that has other bytes."""
    tree = tmp_path / "tree"
    tree.mkdir()
    with open(tree / "sparse", "wb") as file:
        for start in (0, 3, 4, 9):
            file.seek(start * 100_000)
            file.write(random.Random(start).randbytes(20_000))
        file.truncate(1_500_000)
    with open(tree / "nothing", "wb") as file:
        file.truncate(500_000)
    pack(tmp_path / "a.gomp", tree, block_size=BLOCK_SIZE)
    content = (tree / "sparse").read_bytes()
    wanted = ["nothing", "sparse", ("sparse", 100_000, 400_000), ("sparse", 15_000, 30_000), ("nothing", 5, 6)]
    expected = [bytes(500_000), content, content[100_000:400_000], content[15_000:30_000], b"\0"]
    with gompfs.open(tmp_path / "a.gomp") as files:
        out = np.full(3_000_000, 0x77, np.uint8)
        check(place.read(files, wanted, out=out if place.is_cpu else to_device(out)), expected)


def to_device(array: NDArray[Any]) -> Any:
    import cupy

    out = cupy.empty(array.size, array.dtype)
    out.set(array)
    return out


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_callers_buffer(dtype: type, place: Place, archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    """It is used if it is large enough; bytes after the files stay."""
    names = ["text/3000", f"noise/{3 * BLOCK_SIZE}"]
    size = sum(len(contents[name]) for name in names)
    with gompfs.open(archives["bit"]) as files:
        before = np.full(size // np.dtype(dtype).itemsize + 5, 7, dtype)
        out = before.copy() if place.is_cpu else to_device(before)
        check(place.read(files, names, out=out), [contents[name] for name in names])
        after = np.ascontiguousarray(on_host(out)).view(np.uint8)
        assert after[:size].tobytes() == contents[names[0]] + contents[names[1]]
        assert after[size:].tobytes() == before.view(np.uint8)[size:].tobytes()
        with pytest.raises(ValueError, match=f"the buffer has {after.size - 10 * before.itemsize} bytes, the content"):
            place.read(files, names, out=out[:-10])
        with pytest.raises(ValueError, match="contiguous"):
            place.read(files, names, out=out[::2])


def test_buffers_of_the_host(archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    with gompfs.open(archives["bit"]) as files:
        out = bytearray(4000)
        check(files.read_many(["text/3000"], out=out), [contents["text/3000"]])
        assert out == contents["text/3000"] + bytes(1000)
        with pytest.raises(ValueError, match="writable"):
            files.read_many(["text/3000"], out=bytes(4000))
        with pytest.raises(OptionError, match="stream needs a CUDA device"):
            files.read_many(["text/3000"], stream=1)


@pytest.mark.parametrize("kind", ["bit", "text", "dictionary"])
def test_little_space_on_the_device(
    kind: str, place: Place, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """Small slices, payloads that stay in memory, and no space for heads: these blocks are decoded by the host."""
    expected = list(contents.values())
    for limits in ({"slice_bytes": 1 << 15}, {"capacity": 1 << 22}, {"num_heads": 2}, {"num_heads": 0}):
        device = place.make(**limits)
        with gompfs.open(archives[kind], verify=True) as files:
            for _ in range(3):
                check(place.read(files, list(contents)), expected)
            if device is not None and "capacity" in limits:
                assert device.store.num_bytes > 0
                device.store.clear()
                check(place.read(files, list(contents)), expected)


@pytest.mark.parametrize("kind", ["text", "dictionary"])
def test_heads_that_stay_on_the_device(
    kind: str, place: Place, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """The store of heads is asked again only after it has dropped some."""
    device = place.make()
    names = list(contents)
    with gompfs.open(archives[kind]) as files:
        for is_lost, num_loads in ((False, 1), (False, 1), (True, 2), (False, 2)):
            if device is not None and is_lost:
                device.heads.num_losses += 1
                device.heads.loaded = dict.fromkeys(device.heads.loaded)
            check(place.read(files, names), [contents[name] for name in names])
            assert device is None or device.heads.num_loads == num_loads


@pytest.mark.parametrize("place", ["stand-in"], indirect=True)
def test_payloads_that_are_dropped_before_anybody_waits(
    place: Place, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """Their memory has other bytes then. The next read reads the blocks again."""
    device = place.make(capacity=1 << 22)
    names = list(contents)
    with gompfs.open(archives["bit"]) as files:
        place.read(files, names, stream=SimpleNamespace(ptr=1))
        for memory in device.store._allocated:
            memory.fill(0xEE)
        device.store.clear()
        check(place.read(files, names), [contents[name] for name in names])


@pytest.mark.parametrize("place", ["stand-in"], indirect=True)
@pytest.mark.parametrize("number", [1, 2, 5])
def test_memory_that_runs_out_once(
    number: int, place: Place, archives: dict[str, Path], contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While blocks of the next slices are being read. Payloads on the device are dropped, and all is read again."""
    device = place.make(capacity=1 << 22, slice_bytes=1 << 15)
    from gompfs.gpu.range_slots import RangeSlot

    allocate, names = RangeSlot.device, []

    def allocate_or_fail(slot: Any, name: str, size: int) -> Any:
        names.append(name)
        if names.count("content") == number and name == "content":
            raise OutOfMemoryError
        return allocate(slot, name, size)

    monkeypatch.setattr(RangeSlot, "device", allocate_or_fail)
    with gompfs.open(archives["bit"]) as files:
        for _ in range(2):
            check(place.read(files, list(contents)), list(contents.values()))
    assert device.store.num_cleared == 1


@pytest.mark.parametrize("resident", ["off", "auto", "on"])
@pytest.mark.gpu
def test_resident_payloads(resident: str, archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    expected = list(contents.values())
    for kind in KINDS:
        with gompfs.open(archives[kind], gpu_resident=resident) as files:
            for _ in range(3):
                check(files.read_many(list(contents), "cuda:0"), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["gpu", "cpu"])
def test_streams(engine: str, archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    """Work before the call on the stream is done before, and work after it finds the data, without waiting."""
    import cupy

    names = list(contents)
    expected = b"".join(contents.values())
    with gompfs.open(archives["bit"], engine=engine, gpu_resident="auto") as files:
        stream = cupy.cuda.Stream(non_blocking=True)
        out = cupy.zeros(len(expected), cupy.uint8)
        sums = []
        for number in range(20):
            with stream:
                out.fill(number)
                arrays = files.read_many(names, "cuda:0", out=out, stream=(stream, stream.ptr)[number % 2])
                sums.append(out.sum(dtype=cupy.uint64))
        assert arrays.wait() is arrays
        assert out.get().tobytes() == expected
        stream.synchronize()  # arrays.wait() does not wait for the sums
        assert {int(each) for each in sums} == {sum(expected)}
        assert cupy.asarray(arrays).data.ptr == out.data.ptr
        assert cupy.from_dlpack(arrays).data.ptr == out.data.ptr
        with pytest.raises(TypeError, match="not a CUDA stream"):
            files.read_many(names, "cuda:0", stream="stream")


@pytest.mark.gpu
def test_tensors(archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    torch = pytest.importorskip("torch")
    names = list(contents)
    with gompfs.open(archives["bit"]) as files:
        tensor = torch.as_tensor(files.read_many(names, "cuda:0"), device="cuda:0")
        assert tensor.cpu().numpy().tobytes() == b"".join(contents.values())
        out = torch.zeros(tensor.numel(), dtype=torch.uint8, device="cuda:0")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            arrays = files.read_many(names, "cuda:0", out=out, stream=stream)
            copy = torch.from_dlpack(arrays).clone()
        stream.synchronize()
        assert torch.equal(copy, tensor)
        assert torch.equal(out, tensor)


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["gpu", "auto"])
def test_a_forked_child_refuses(engine: str, archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    """It does not use the CUDA context of its parent, and reads on the CPU as before."""
    with gompfs.open(archives["bit"], engine=engine) as files:
        check(files.read_many(["text/3000"], "cuda:0"), [contents["text/3000"]])
        child = os.fork()
        if child == 0:
            try:
                files.read_many(["text/3000"], "cuda:0")
            except gompfs.EngineUnavailableError:
                with gompfs.open(archives["bit"], engine="cpu") as again:
                    os._exit(0 if bytes(again.read_many(["text/3000"])[0]) == contents["text/3000"] else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        check(files.read_many(["text/3000"], "cuda:0"), [contents["text/3000"]])


def damage(archive: Path, path: str, *, forge: bool) -> int:
    """Damages the last block of a file: a bit of its payload, or, to `forge`, its content. Returns its number."""
    with Archive(archive) as opened:
        extent = opened.extents(opened.resolve(path).ino)[-1]
        block = (extent.stream_offset + extent.size - 1) // opened.block_size
        table = opened.segments[0].blocks
        offset, size = int(table.archive_offsets[block]), int(table.compressed_sizes[block])
    data = bytearray(archive.read_bytes())
    old = bytes(data[offset : offset + size])
    if forge:
        header = parse_block_header(old)
        new = build_block(header.codec, old[BLOCK_HEADER_SIZE:], bytes(header.uncompressed_size)).data
    else:
        new = old[:-1] + bytes([old[-1] ^ 1])
    data[offset : offset + size] = new
    archive.write_bytes(data)
    return block


@pytest.mark.parametrize("forge", [False, True])
def test_damaged_blocks(
    forge: bool, place: Place, archives: dict[str, Path], contents: dict[str, bytes], tmp_path: Path
) -> None:
    """The error names the file. Other files can be read. Only `verify` finds a checksum of other content."""
    copy = tmp_path / "copy.gomp"
    copy.write_bytes(archives["bit"].read_bytes())
    damaged = f"text/{5 * BLOCK_SIZE + 77}"
    block = damage(copy, damaged, forge=forge)
    sound = ["text/3000", "noise/3000", "small/007"]
    with gompfs.open(copy, verify=True) as files:
        for wanted in (damaged, files.stat(damaged).st_ino):
            with pytest.raises(CorruptBlockError) as caught:
                place.read(files, [*sound, wanted])
            assert (caught.value.path, caught.value.block) == (damaged, block)
        first = (damaged, 0, 4 * BLOCK_SIZE)
        check(place.read(files, [*sound, first]), [*map(contents.get, sound), contents[damaged][: 4 * BLOCK_SIZE]])
    if forge:
        with gompfs.open(copy) as files:
            check(place.read(files, [damaged]), [contents[damaged]])


@pytest.mark.gpu
def test_damage_on_a_stream(archives: dict[str, Path], contents: dict[str, bytes], tmp_path: Path) -> None:
    """The error comes with `wait`; until then, the bytes of damaged blocks are zeros."""
    import cupy

    copy = tmp_path / "copy.gomp"
    copy.write_bytes(archives["bit"].read_bytes())
    name = f"text/{5 * BLOCK_SIZE + 77}"
    damage(copy, name, forge=False)
    with gompfs.open(copy) as files:
        arrays = files.read_many([name], "cuda:0", stream=cupy.cuda.Stream())
        with pytest.raises(CorruptBlockError, match=name):
            arrays.wait()
        content = arrays[0].get().tobytes()
        assert content[: 4 * BLOCK_SIZE] == contents[name][: 4 * BLOCK_SIZE]
        assert content[-70:] == bytes(70)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE extent SET size = -5 WHERE ino = {ino}", "impossible extents"),
        ("UPDATE extent SET stream_offset = 1 << 60 WHERE ino = {ino}", "outside the stream"),
    ],
)
def test_forged_extents(statement: str, reason: str, place: Place, archives: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy.gomp"
    copy.write_bytes(archives["parts"].read_bytes())
    with gompfs.open(copy) as files:
        ino = files.stat("text/3000").st_ino
    forge_index(copy, statement.format(ino=ino))
    with gompfs.open(copy) as files:
        for wanted in ("text/3000", ino):
            with pytest.raises(CorruptIndexError, match=reason) as caught:
                place.read(files, ["small/007", wanted])
            assert caught.value.path == "text/3000"


def test_extents_after_the_end_of_a_part(place: Place, archives: dict[str, Path], tmp_path: Path) -> None:
    """The last block of a part is short. An extent that goes on after its end reads no other bytes."""
    copy = tmp_path / "copy.gomp"
    copy.write_bytes(archives["parts"].read_bytes())
    with Archive(copy) as archive:
        (_, end), *_ = archive.segments[0].part_ranges(BLOCK_SIZE)
        assert end % BLOCK_SIZE
        ino = archive.resolve("text/3000").ino
    forge_index(copy, f"UPDATE extent SET stream_offset = {end - 100} WHERE ino = {ino}")
    with gompfs.open(copy) as files, pytest.raises(CorruptIndexError, match="outside its segment"):
        place.read(files, ["text/3000"])


def test_mistakes(place: Place, archives: dict[str, Path]) -> None:
    with gompfs.open(archives["bit"]) as files:
        for wanted, error in (
            ("missing", EntryNotFoundError),
            ("text", EntryIsDirectoryError),
            (1 << 40, EntryNotFoundError),
            (files.stat("text").st_ino, EntryTypeError),
            (("text/3000", -1, 5), ValueError),
            (("text/3000", 5, 4), ValueError),
            (-3, ValueError),
            (("text/3000", 5), ValueError),
            (3.5, TypeError),
        ):
            with pytest.raises(error):
                place.read(files, ["noise/3000", wanted])
        for array in (np.zeros((2, 2), np.int64), np.zeros(3), np.zeros((1, 3, 3), np.int64)):
            with pytest.raises(ValueError, match="inode numbers"):
                place.read(files, array)


@pytest.mark.parametrize("device", ["cpu:0", "gpu", "cuda:x", "cuda:-1", ""])
def test_unknown_devices(device: str, archives: dict[str, Path]) -> None:
    with gompfs.open(archives["bit"]) as files, pytest.raises(OptionError, match="unknown device"):
        files.read_many(["text/3000"], device)


def test_a_file_larger_than_memory(tmp_path: Path) -> None:
    """A hole of an exabyte is a MemoryError, at once."""
    header = tarfile.TarInfo("file")
    header.size = 1
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.addfile(header, BytesIO(b"x"))
    pack(tmp_path / "a.gomp", tmp_path / "a.tar")
    forge_index(tmp_path / "a.gomp", "UPDATE inode SET size = 1 << 60 WHERE mode & 61440 = 32768")
    with gompfs.open(tmp_path / "a.gomp") as files:
        with pytest.raises(MemoryError):
            files.read_many(["file"])
        with pytest.raises(ValueError, match="too large for one array"):
            files.read_many(["file"] * 20)
        check(files.read_many([("file", 0, 5)]), [b"x\0\0\0\0"])


def test_results(archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    names = ["text/15", "text/0", "noise/100"]
    with gompfs.open(archives["bit"]) as files:
        arrays = files.read_many(names)
    assert (len(arrays), arrays.device, arrays.wait()) == (3, "cpu", arrays)
    assert [item.tobytes() for item in arrays] == [contents[name] for name in names]
    assert arrays[-1].tobytes() == contents["noise/100"]
    for number in (3, -4):
        with pytest.raises(IndexError):
            arrays[number]
    whole = b"".join(contents[name] for name in names)
    for array in (np.asarray(arrays), np.from_dlpack(arrays)):
        assert array.tobytes() == whole
        assert np.shares_memory(array, arrays.data)
    assert not hasattr(arrays, "__cuda_array_interface__")
    assert repr(arrays) == f"<Arrays: 3 items, {len(whole)} bytes, cpu>"


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_other_engines(engine: str, archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    names = ["text/3000", f"noise/{BLOCK_SIZE + 1}", "small/007"]
    with gompfs.open(archives["text"], engine=engine) as files:
        check(files.read_many(names), [contents[name] for name in names])


def test_without_a_gpu(archives: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "find_spec", lambda _: None)
    with gompfs.open(archives["bit"]) as files, pytest.raises(gompfs.EngineUnavailableError, match="CuPy"):
        files.read_many(["text/3000"], "cuda:0")
