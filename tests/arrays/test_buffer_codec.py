"""Buffers compressed and decompressed: by the CPU, by a GPU, by a stand-in for one, by numcodecs and by Zarr."""

from __future__ import annotations

import pickle
import random
import tomllib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cupy_on_host import cupy_on_host, fake_device
from native_builds import ROOT, kernel_library

import gompfs
from gompfs import BufferCodec
from gompfs.arrays import buffers
from gompfs.codec import BLOCK_HEADER_SIZE
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import ArchiveFormatError, CorruptBlockError, OptionError

BLOCK_SIZE = 1 << 14
HEADER_SIZE = 16


def text(size: int) -> bytes:
    rng = random.Random(size)
    return b" ".join(rng.choices([b"chunk", b"array", b"codec", b"buffer"], k=size // 5 + 1))[:size]


CONTENTS = [b"", b"x", text(5000), text(BLOCK_SIZE), text(5 * BLOCK_SIZE + 33), random.Random(1).randbytes(100_000)]


@pytest.fixture(params=["cpu", "stand-in", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., BufferCodec]]:
    """Returns a function that makes a codec on a device."""
    is_fake = request.param == "stand-in"
    with cupy_on_host() if is_fake else nullcontext():
        if is_fake:
            stand_in = fake_device(kernel_library())
            monkeypatch.setattr(buffers, "select_engine", lambda *_: CpuEngine(2))
            monkeypatch.setattr(buffers, "select_device", lambda *_: stand_in)
        device = "cuda:0" if is_fake else request.param
        yield lambda *arguments: BufferCodec(*arguments, block_size=BLOCK_SIZE, device=device)


def bytes_of(array: Any) -> bytes:
    return (array.get() if hasattr(array, "get") else np.asarray(array)).tobytes()


@pytest.mark.parametrize(("codec", "level"), [("gompresso-bit", 1), ("gompresso-bit", 8), ("gompresso-byte", 6)])
@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_the_content_comes_back(make: Callable[..., BufferCodec], codec: str, level: int, content: bytes) -> None:
    """Also what the CPU has compressed, which is the same, and into a buffer, whose other bytes stay."""
    chosen = make(codec, level)
    compressed = chosen.compress(content)
    assert compressed == BufferCodec(codec, level, block_size=BLOCK_SIZE).compress(np.frombuffer(content, np.uint8))
    assert bytes_of(chosen.decompress(compressed)) == content
    before = np.full(len(content) + 40, 0x99, np.uint8)
    out = before.copy() if chosen.device == "cpu" else on_device(before)
    assert bytes_of(chosen.decompress(memoryview(compressed), out)) == content
    assert bytes_of(out) == content + bytes(before[len(content) :])
    if content:
        with pytest.raises(ValueError, match=f"the buffer has {len(content) - 1} bytes, the content has"):
            chosen.decompress(compressed, out[: len(content) - 1])


def on_device(array: Any) -> Any:
    import cupy

    out = cupy.empty(array.size, array.dtype)
    out.set(array)
    return out


def test_text_becomes_smaller() -> None:
    assert len(BufferCodec().compress(text(200_000))) < 60_000


@pytest.mark.gpu
def test_arrays_of_the_device() -> None:
    import cupy

    values = cupy.arange(100_000, dtype=cupy.int32)
    codec = BufferCodec(device="cuda:0")
    compressed = codec.compress(values)
    assert compressed == BufferCodec().compress(values.get())
    assert bool((codec.decompress(compressed).view(cupy.int32) == values).all())


def damaged_buffers() -> Iterator[tuple[bytes, type[Exception], str]]:
    sound = BufferCodec(block_size=BLOCK_SIZE).compress(text(3 * BLOCK_SIZE))
    yield sound[:10], ArchiveFormatError, "ends inside its header"
    yield b"\x89PNG" + sound[4:], ArchiveFormatError, "not a buffer"
    yield sound[:4] + b"\2" + sound[5:], ArchiveFormatError, "version 2"
    yield sound[:8] + bytes(8) + sound[16:], ArchiveFormatError, "cut off or changed"
    yield sound + sound[16:], ArchiveFormatError, "cut off or changed"
    yield sound[:HEADER_SIZE], ArchiveFormatError, "has 0 of 49152 bytes"
    yield sound[:-1], ArchiveFormatError, "cut off"
    yield sound[: HEADER_SIZE + 5], CorruptBlockError, "block 0: the block header is damaged"
    yield sound[:HEADER_SIZE] + b"X" + sound[HEADER_SIZE + 1 :], CorruptBlockError, "block 0"
    yield sound[:-1] + bytes([sound[-1] ^ 1]), CorruptBlockError, "block 2: the compressed bytes do not match"
    small = BufferCodec(block_size=BLOCK_SIZE).compress(text(100))[HEADER_SIZE:]
    yield sound[:HEADER_SIZE] + small + sound[HEADER_SIZE:], ArchiveFormatError, "ends early"
    at = HEADER_SIZE + 12
    assert int.from_bytes(sound[at : at + 4], "little") == BLOCK_SIZE
    huge = sound[: at - 4] + (1).to_bytes(4, "little") + sound[at : HEADER_SIZE + BLOCK_HEADER_SIZE] + b"x"
    yield huge, CorruptBlockError, "too small for its content"


@pytest.mark.parametrize(("data", "error", "reason"), list(damaged_buffers()))
def test_damage(make: Callable[..., BufferCodec], data: bytes, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        make().decompress(data)


def test_mistakes() -> None:
    for codec in ("gompresso-tadoc", "stored", "zlib"):
        with pytest.raises(OptionError):
            BufferCodec(codec)
    for arguments in ({"level": 0}, {"level": 9}, {"block_size": 100}, {"block_size": 1 << 21}, {"device": "gpu"}):
        with pytest.raises(OptionError):
            BufferCodec(**arguments)
    with pytest.raises(ValueError, match="contiguous"):
        BufferCodec().compress(np.zeros((10, 10))[:, 3])
    with pytest.raises(TypeError):
        BufferCodec().compress("text")
    with pytest.raises(ValueError, match="writable"):
        BufferCodec().decompress(BufferCodec().compress(b"abc"), bytes(3))


def test_it_can_be_pickled() -> None:
    codec = pickle.loads(pickle.dumps(BufferCodec("gompresso-byte", 3, block_size=BLOCK_SIZE, num_threads=2)))
    assert (codec.codec, codec.level, codec.block_size, codec.device) == ("gompresso-byte", 3, BLOCK_SIZE, "cpu")
    assert bytes_of(codec.decompress(codec.compress(text(50_000)))) == text(50_000)


def entry_point(group: str) -> Any:
    """Returns what a package finds by the entry point `gompresso`."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    return EntryPoint("gompresso", groups[group]["gompresso"], group).load()


@pytest.mark.parametrize("dtype", ["<f4", "u1", ">i8"])
def test_numcodecs(dtype: str) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    numcodecs.register_codec(entry_point("numcodecs.codecs"))
    codec = numcodecs.get_codec({"id": "gompresso", "codec": "gompresso-byte", "level": 3})
    assert numcodecs.get_codec(codec.get_config()) == codec
    values = np.arange(30_000).reshape(3, 100, 100).astype(dtype)
    for array in (values, np.asfortranarray(values), values[0]):
        decoded = np.frombuffer(codec.decode(codec.encode(array)), dtype)
        assert np.array_equal(decoded, array.reshape(-1, order="A"))
        out = np.empty_like(array)
        codec.decode(codec.encode(array), out=out)
        assert np.array_equal(out, array)


def test_zarr(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", minversion="3")
    zarr.registry.register_codec("gompresso", entry_point("zarr.codecs"))
    values = np.arange(1 << 18, dtype=np.int32).reshape(512, 512) // 16
    compressor = {"name": "gompresso", "configuration": {"level": 3}}
    shapes = {"shape": values.shape, "chunks": (100, 200)}
    array = zarr.create_array(tmp_path / "a.zarr", **shapes, dtype="i4", compressors=compressor)
    array[:] = values
    again = zarr.open_array(tmp_path / "a.zarr")
    assert np.array_equal(again[:], values)
    assert again.compressors[0].to_dict()["configuration"] == {
        "codec": "gompresso-bit", "level": 3, "block_size": 1 << 16
    }  # fmt: skip
    stored = sum(path.stat().st_size for path in (tmp_path / "a.zarr").rglob("c/*/*"))
    assert 0 < stored < values.nbytes / 2
    with pytest.raises(ValueError, match="level 77"):
        zarr.create_array(
            tmp_path / "b.zarr", shape=(5,), dtype="i4",
            compressors={"name": "gompresso", "configuration": {"level": 77}},
        )  # fmt: skip


def test_it_is_exported() -> None:
    assert gompfs.BufferCodec is BufferCodec
