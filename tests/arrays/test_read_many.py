"""Many files read into one array: on the CPU, on a GPU, and on a stand-in for one, with the same bytes as the sources.

The stand-in (cupy_on_host.py) runs the code of the GPU, and its kernels that move pieces and check contents.
"""

from __future__ import annotations

import os
import random
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_index import forge_index
from head_engine import HeadEngine
from many_files import BLOCK_SIZE, KINDS, Place, check, on_host
from numpy.typing import NDArray
from oracle.block import build_block
from tree_helpers import pack

import gompfs
from gompfs.archive import Archive
from gompfs.codec import BLOCK_HEADER_SIZE, parse_block_header
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
        ("UPDATE extent SET size = 0 WHERE ino = {ino}", "impossible extents"),
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


def test_another_engine(archives: dict[str, Path], contents: dict[str, bytes]) -> None:
    names = ["text/3000", f"noise/{BLOCK_SIZE + 1}", "small/007"]
    with ArchiveFiles(Archive(archives["text"], engine=HeadEngine())) as files:
        check(files.read_many(names), [contents[name] for name in names])


def test_without_a_gpu(archives: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "has_cupy", lambda: False)
    with gompfs.open(archives["bit"]) as files, pytest.raises(gompfs.EngineUnavailableError, match="CuPy"):
        files.read_many(["text/3000"], "cuda:0")
