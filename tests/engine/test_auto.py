"""What `auto` gives to a GPU. Other engines stand in for the GPU, since there may be none."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from gompfs.codec import Codec, CodecOptions
from gompfs.engine import auto as auto_module
from gompfs.engine.auto import AutoEngine
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.rates import KnownRates
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


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_batches_are_counted_by_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches go to the CPU. Large ones go to the GPU once it has started."""
    started = []
    monkeypatch.setattr(AutoEngine, "start_gpu", started.append)
    monkeypatch.setattr(auto_module, "_LEAST_GPU_BYTES", 400_000)
    auto = AutoEngine(num_threads=1)
    stream = bytes(range(200)) * 2000
    blocks = [block.data for block in auto.encode_blocks(stream, 1 << 14, CodecOptions(Codec.GOMPRESSO_BIT))]
    out = memoryview(bytearray(len(stream)))
    auto.decode_blocks(blocks, out)
    assert auto.decode_work.keys() == {"cpu"}
    auto._gpu = _OtherDecoder(auto._cpu)
    for batch in (blocks[:1], blocks, blocks[:2], blocks):
        auto.decode_blocks(batch, out[: len(batch) << 14])
    assert [auto.decodes_on_cpu(size) for size in (1 << 14, 400_000)] == [True, False]
    done = {name: (work.num_blocks, work.num_bytes) for name, work in auto.decode_work.items()}
    assert done == {"cpu": (25 + 3, 400_000 + (3 << 14)), "gpu": (50, 800_000)}
    assert not started


def note(auto: AutoEngine, cpu: float, gpu: float, count: int = 4) -> None:
    """Notes batches of 16 MiB that took the engines so many seconds."""
    for _ in range(count):
        auto.note_batch(16 << 20, cpu, on_cpu=True)
        auto.note_batch(16 << 20, gpu, on_cpu=False)


def test_a_gpu_is_tried_and_then_the_faster_engine_is_taken() -> None:
    auto = AutoEngine(num_threads=1)
    auto._gpu = _OtherDecoder(auto._cpu)
    sizes = ((8 << 20) - 1, 8 << 20, 1 << 30)
    assert auto.batch_bytes == auto._gpu.batch_bytes, "also while the CPU is preferred, so that both are compared"
    assert [auto.decodes_on_cpu(size) for size in sizes] == [True, False, False], "it is tried"
    note(auto, 0.01, 0.1)
    assert [auto.decodes_on_cpu(size) for size in sizes] == [True] * 3
    assert "the CPU for every batch (batches took the CPU 1.7 GB/s, the GPU 0.2 GB/s)" in auto.reason
    note(auto, 0.01, 0.004)
    assert [auto.decodes_on_cpu(size) for size in sizes] == [True, False, False]
    assert "the GPU for batches of 8 MiB and more, else the CPU (" in auto.reason


def test_the_slower_engine_is_tried_again_now_and_then() -> None:
    auto = AutoEngine(num_threads=1)
    auto._gpu = _OtherDecoder(auto._cpu)
    note(auto, 0.01, 0.1)
    choices = []
    for _ in range(1000):
        choices.append(auto.decodes_on_cpu(16 << 20))
        auto.note_batch(16 << 20, 0.01 if choices[-1] else 0.1, on_cpu=choices[-1])
    assert 5 < choices.count(False) < 10


def test_what_earlier_processes_measured_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that was faster is started by `prepare`. One that was slower is not started to decode."""
    started: list[str] = []
    monkeypatch.setattr(AutoEngine, "_start_on_a_thread", lambda *_: started.append("started"))
    for gpu, num_threads, by_prepare, in_time in (
        (0.1, 1, 0, 0),
        (0.004, 2, 0, 0),
        (0.0095, 1, 0, 1),
        (0.004, 1, 1, 1),
    ):
        before = AutoEngine(num_threads=num_threads)
        before._gpu = _OtherDecoder(before._cpu)
        note(before, 0.01, gpu)
        after = AutoEngine(num_threads=1)
        after.prepare(None)
        assert started == ["started"] * by_prepare
        started.clear()
        monkeypatch.setattr(auto_module, "_SECONDS_BEFORE_START", 0)
        assert after.decodes_on_cpu(1 << 30)
        assert started == ["started"] * in_time
        started.clear()
        assert ("no GPU that decodes faster" in after.reason) == (not in_time)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1}', b"\xff", None])
def test_a_damaged_file_of_speeds(content: bytes | None, tmp_path: Path) -> None:
    """It is as if there were none, and the next measurement replaces it. None: the folder cannot be written."""
    path = tmp_path / "a/engines.json"
    known = KnownRates(1, path)
    if content is None:
        path.parent.write_bytes(b"a file")
    else:
        path.parent.mkdir()
        path.write_bytes(content)
    assert known.gain_of_gpu() is None
    known.keep(1e9, 2e9)
    assert known.gain_of_gpu() == (None if content is None else 2)


def test_old_speeds_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownRates(1, tmp_path / "engines.json")
    known.keep(1e9, 2e9)
    kept = known._read()[known._key][2]
    month = 30 * 86400
    for seconds, expected in ((month - 1, 2), (month, None), (month + 1, None), (0, 2), (-1, None)):
        now = kept + seconds
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda now=now: now)
            assert known.gain_of_gpu() == expected


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


def test_an_idle_mount_measures_both_engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a process of its own, once nothing was decoded for a while. Then the GPU starts if it was faster."""
    started: list[float] = []
    monkeypatch.setattr(AutoEngine, "_start_on_a_thread", lambda _auto, seconds: started.append(seconds))
    monkeypatch.setattr(auto_module, "_SECONDS_IDLE", 0.05)
    commands: list[list[str]] = []

    class Measuring:
        def __init__(self, command: list[str], **_: object) -> None:
            commands.append(command)

        def wait(self) -> None:
            KnownRates(1).keep(1e9, 3e9)

        def kill(self) -> None: ...

    monkeypatch.setattr(subprocess, "Popen", Measuring)
    auto = AutoEngine(num_threads=1)
    auto._measure("a.gomp")
    assert commands[0][-2:] == ["gompfs.archive.measure_engines", "a.gomp"]
    assert len(started) == 1
    AutoEngine(num_threads=1).prepare("a.gomp")
    assert (len(commands), len(started)) == (1, 2), "it is known now"
