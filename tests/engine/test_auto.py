"""What `auto` gives to a GPU. Other engines stand in for the GPU, since there may be none."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable

import pytest

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.auto import AutoEngine, Cost
from gompfs.engine.cpu import CpuEngine
from gompfs.options import GpuOptions


class _Gpu:
    class accelerator:  # noqa: N801
        @staticmethod
        def search(num_bytes: int) -> list[str]:
            return [f"a GPU for {num_bytes} bytes"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, []),
        (GpuOptions(), []),
        (GpuOptions(resident="off"), []),
        (GpuOptions(resident="on"), ["a GPU for 5 bytes"]),
    ],
)
def test_a_gpu_searches_if_blocks_are_to_stay(
    monkeypatch: pytest.MonkeyPatch, options: GpuOptions | None, expected: list[str]
) -> None:
    monkeypatch.setattr(AutoEngine, "start_gpu", lambda auto: setattr(auto, "_gpu", _Gpu()))
    auto = AutoEngine(num_threads=1, options=options)
    assert list(auto.accelerator.search(5)) == expected
    monkeypatch.setattr(AutoEngine, "start_gpu", lambda _auto: None)
    assert not AutoEngine(num_threads=1, options=options).accelerator.search(5)


def test_the_interpreter_waits_for_a_gpu_that_starts() -> None:
    """A process that exits while CUDA starts crashes, so the interpreter must wait."""
    program = """
import threading, time
from gompfs.engine import auto

def start(engine):
    threading.main_thread().join()
    time.sleep(0.1)
    print("started", auto._is_ending(), flush=True)

auto.AutoEngine.start_gpu = start
engine = auto.AutoEngine(num_threads=1)
engine.decode_work["cpu"].begin()
time.sleep(1)
engine._start_gpu_in_time()
print("ended", auto._is_ending(), flush=True)
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "ended False\nstarted True\n"


class _OtherDecoder(CpuEngine):
    """Stands in for a GPU engine, which lets the CPU do part of the work."""

    name = "gpu"

    def __init__(self, cpu: CpuEngine) -> None:
        super().__init__(1)
        self.decode_work |= cpu.decode_work


def test_batches_are_counted_by_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches go to the CPU. Large ones go to the GPU once it has started."""
    started = []
    monkeypatch.setattr(AutoEngine, "start_gpu", started.append)
    auto = AutoEngine(num_threads=1)
    stream = bytes(range(200)) * 2000
    blocks = [block.data for block in auto.encode_blocks(stream, 1 << 14, CodecOptions(Codec.GOMPRESSO_BIT))]
    out = memoryview(bytearray(len(stream)))
    auto.decode_blocks(blocks, out)
    assert auto.decode_work.keys() == {"cpu"}
    auto._gpu = _OtherDecoder(auto._cpu)
    auto._costs = {"cpu": Cost(0, 1e-9), "gpu": Cost(100e-6, 1e-10)}
    for batch in (blocks[:1], blocks, blocks[:2], blocks):
        auto.decode_blocks(batch, out[: len(batch) << 14])
    assert [auto.decodes_on_cpu(size) for size in (1 << 14, 400_000)] == [True, False]
    done = {name: (work.num_blocks, work.num_bytes) for name, work in auto.decode_work.items()}
    assert done == {"cpu": (25 + 3, 400_000 + (3 << 14)), "gpu": (50, 800_000)}
    assert not started


@pytest.mark.parametrize(
    "decode",
    [lambda auto: auto.decode_blocks([], memoryview(bytearray())), lambda auto: auto.decodes_on_cpu(1)],
    ids=["by the engine", "by others"],
)
def test_the_gpu_starts_after_a_second_of_decoding(
    decode: Callable[[AutoEngine], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = threading.Event()
    monkeypatch.setattr(AutoEngine, "start_gpu", lambda _auto: started.set())
    auto = AutoEngine(num_threads=1)
    assert auto.decodes_on_cpu(1 << 30)
    auto.decode_work["cpu"].begin()
    auto.decode_blocks([], memoryview(bytearray()))
    assert not started.wait(0.1)
    assert not started.wait(1)
    decode(auto)
    assert started.wait(10)


def test_an_engine_is_freed_with_its_last_reference() -> None:
    """Its memory does not wait for the garbage collector."""
    engine = AutoEngine(num_threads=1)
    is_alive = weakref.ref(engine)
    gc.disable()
    try:
        del engine
        assert is_alive() is None
    finally:
        gc.enable()
