"""On a GPU, compiled kernels give the same bytes as kernels that CuPy compiles, and need no compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from payloads import CODECS, contents
from tool_modules import tool_module

from gompfs.codec import CodecOptions
from gompfs.engine import select_engine

pytestmark = pytest.mark.gpu


@pytest.mark.timeout(600)
def test_compiled_kernels_do_what_cupy_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")
    from gompfs.gpu.device import compiled_kernels
    from gompfs.gpu.device.cuda import KERNEL_MODULES

    tool_module("compile_kernels").compile_all([int(cupy.cuda.Device(0).compute_capability)], tmp_path / "compiled")
    blocks = [
        block.data
        for codec in CODECS
        for content in contents().values()
        for block in select_engine("cpu").encode_blocks(content, 1 << 16, CodecOptions(codec))
    ]
    size = sum(map(len, contents().values())) * len(CODECS)
    text = b"".join(contents().values()) * 40
    results = []
    for folder in (tmp_path / "compiled", tmp_path / "none"):
        monkeypatch.setattr(compiled_kernels, "compiled_folder", lambda folder=folder: folder)
        monkeypatch.setattr(KERNEL_MODULES, "_modules", {})
        monkeypatch.setattr(KERNEL_MODULES, "_sources_of_cupy", set())
        engine, out = select_engine("gpu"), bytearray(size)
        statuses = engine.decode_blocks(blocks, memoryview(out))
        encoded = [block.data for codec in CODECS for block in engine.encode_blocks(text, 1 << 16, CodecOptions(codec))]
        results.append((bytes(out), statuses, encoded))
        assert ("precompiled" in engine.reason) == (folder.name == "compiled")
        assert ("compiled by CuPy" in engine.reason) == (folder.name == "none")
    assert results[0] == results[1]
    assert results[0][0] == b"".join(contents().values()) * len(CODECS)
