"""What `auto` leaves to a GPU, where there may be none."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gompfs.engine.auto import AutoEngine


class _Gpu:
    def text_device(self, num_bytes: int) -> str:
        return f"a GPU for {num_bytes} bytes"


def test_text_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started for much text, and only once."""
    started = []

    def start(auto: Any) -> None:
        started.append(auto)
        auto._gpu = _Gpu()

    monkeypatch.setattr(AutoEngine, "start_gpu", start)
    auto = AutoEngine(num_threads=4)
    assert auto.text_device(100 << 20) is None
    assert not started
    for _ in range(2):
        assert auto.text_device(1 << 30) == f"a GPU for {1 << 30} bytes"
    assert started == [auto]


def test_text_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AutoEngine, "start_gpu", lambda _auto: None)
    assert AutoEngine(num_threads=1).text_device(1 << 40) is None


def test_the_interpreter_waits_for_a_gpu_that_starts() -> None:
    """A process that ends while CUDA starts in it crashes."""
    program = """
import threading, time
from gompfs.engine import auto

def start(engine):
    threading.main_thread().join()
    time.sleep(0.1)
    print("started", auto._is_ending(), flush=True)

auto.AutoEngine.start_gpu = start
auto.AutoEngine(num_threads=1)._count(seconds=1.5)
print("ended", auto._is_ending(), flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "ended False\nstarted True\n"
