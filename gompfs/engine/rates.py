"""How fast the CPU and a GPU decode large batches, as measured while they work, and kept for later processes."""

from __future__ import annotations

import json
import os
import platform
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from statistics import median

_NUM_TRIED = 3  # batches of the GPU, before its speed counts
_NUM_KEPT = 7
_TRIED_AGAIN = 128  # after so many batches, one goes to the slower side: conditions may have changed
_SECONDS_KEPT = 30 * 86400


class Rates:
    """The speeds of batches that the CPU (`cpu`) and the GPU (`gpu`) have decoded. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds_per_byte = {name: deque[float](maxlen=_NUM_KEPT) for name in ("cpu", "gpu")}
        self._num_noted = 0
        self._is_warm = False  # the first batch of a GPU loads kernels and allocates memory, so it does not count

    def note(self, name: str, num_bytes: int, seconds: float) -> None:
        """Notes a batch that was decoded."""
        if num_bytes <= 0:
            return
        with self._lock:
            if name == "gpu" and not self._is_warm:
                self._is_warm = True
                return
            self._seconds_per_byte[name].append(seconds / num_bytes)
            self._num_noted += 1

    @property
    def prefers_gpu(self) -> bool:
        """Whether the next batch should go to the GPU: it is faster, or was not tried often enough."""
        with self._lock:
            is_faster = self._gain() >= 1
            is_turn_of_the_other = self._num_noted % _TRIED_AGAIN == _TRIED_AGAIN - 1
            return is_faster != is_turn_of_the_other

    def _gain(self) -> float:
        """Returns how many times as fast as the CPU the GPU is: infinity before it was tried."""
        cpu, gpu = self._seconds_per_byte["cpu"], self._seconds_per_byte["gpu"]
        if len(gpu) < _NUM_TRIED:
            return float("inf")
        return median(cpu) / median(gpu) if cpu else 0.0  # the CPU was not tried

    @property
    def measured(self) -> tuple[float, float] | None:
        """The speeds of the CPU and the GPU in bytes per second, or None before both are known."""
        with self._lock:
            cpu, gpu = self._seconds_per_byte["cpu"], self._seconds_per_byte["gpu"]
            if not cpu or len(gpu) < _NUM_TRIED:
                return None
            return 1 / median(cpu), 1 / median(gpu)


class KnownRates:
    """The speeds that earlier processes of the user have measured on this machine, in a small file of JSON.

    They are forgotten after a month. Not being able to read or write them costs time only, so that raises nothing.
    """

    def __init__(self, num_threads: int, path: Path | None = None) -> None:
        """For engines with `num_threads` host threads. The file is in the user's folder for caches unless given."""
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self._path = path or Path(base, "gompfs", "engines.json")
        self._key = f"{platform.node()}, {num_threads} threads"

    def gain_of_gpu(self) -> float | None:
        """Returns how many times as fast as the CPU a GPU decoded, with as many threads, or None if that is unknown."""
        try:
            cpu, gpu, measured_at = (float(number) for number in self._read()[self._key])
            return gpu / cpu if 0 <= time.time() - measured_at < _SECONDS_KEPT else None
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return None

    def keep(self, cpu: float, gpu: float) -> None:
        """Writes speeds in bytes per second. Another process sees the old file or the new one, whole."""
        found = self._read() | {self._key: [round(cpu), round(gpu), int(time.time())]}
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile("w", dir=self._path.parent, prefix="engines-", delete=False) as file:
                json.dump(found, file)
            os.replace(file.name, self._path)

    def _read(self) -> dict[str, list[float]]:
        try:
            found = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}
