"""Work besides decoding that the engine `auto` gives to a GPU: if it would keep the CPU busy for a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakMethod

from gompfs.engine.base import Engine
from gompfs.errors import EngineUnavailableError
from gompfs.log import Logger
from gompfs.options import GpuOptions

if TYPE_CHECKING:  # imported for types only: they need NumPy, and the CPU decodes without NumPy
    from gompfs.gpu.accelerator import Accelerator, ResidentMemory
    from gompfs.gpu.device.arrays import ArrayDevice, TextDevice

log = Logger(__name__)

# One CPU thread traverses a grammar of this many symbols in about a second.
_SYMBOLS_OF_A_THREAD = 8_000_000


class AutoAccelerator:
    """See Accelerator. Returns None for small amounts of work, and if there is no GPU."""

    def __init__(self, num_threads: int, options: GpuOptions | None, start_gpu: Callable[[], Engine | None]) -> None:
        """Compares a GPU with `num_threads` CPU threads.

        `start_gpu` is a method of the engine that starts its GPU if nothing has, and returns the GPU engine, or None if
        there is none. It is held weakly, so that the engine's memory is freed with the engine.
        """
        self._num_threads = num_threads
        self._options = options
        self._start_gpu = WeakMethod(start_gpu)
        self._lock = threading.Lock()
        self._arrays: ArrayDevice | None = None
        self._lost_arrays: ArrayDevice | None = None
        self._is_lost = False
        self.reason = ""

    @property
    def is_started(self) -> bool:
        """Whether a GPU computes with arrays."""
        return self._arrays is not None

    def restart_in_child(self, *, is_lost: bool) -> None:
        """Called in a forked child. If `is_lost`, the parent has started a GPU, so that the child can use none."""
        self._lock = threading.Lock()
        if is_lost:
            self._lost_arrays, self._arrays = self._arrays, None  # freeing the memory would call CUDA
            self._is_lost = True
            self.reason = ""

    def arrays(self, num_symbols: int) -> ArrayDevice | None:
        """See Accelerator.arrays."""
        if self._is_lost or num_symbols < _SYMBOLS_OF_A_THREAD * self._num_threads:
            return None
        try:
            from gompfs.gpu.device.cupy_arrays import GpuArrays

            with self._lock:
                memory = self._options.memory if self._options is not None else None
                self._arrays = self._arrays or GpuArrays(memory=memory or 0)
            self.reason = f"; statistics of large grammars on {self._arrays.name}"
        except (EngineUnavailableError, ImportError) as error:
            self.reason = f"; statistics on the CPU, because {error}"
        log.info("auto%s", self.reason)
        return self._arrays

    def _accelerator_of_gpu(self) -> Accelerator | None:
        """Starts the GPU if nothing has. Returns None if there is none."""
        start_gpu = self._start_gpu()
        gpu = None if start_gpu is None else start_gpu()
        return None if gpu is None else gpu.accelerator

    def resident_memory(self) -> AutoResidentMemory | None:
        """See Accelerator.resident_memory."""
        is_wanted = self._options is not None and self._options.resident != "off" and self._options.stats_memory != 0
        return AutoResidentMemory(self._start_gpu) if is_wanted and not self._is_lost else None

    def search(self, num_bytes: int) -> Sequence[TextDevice]:
        """See Accelerator.search. The CPU searches, unless blocks stay in device memory because the user asked for it.

        See docs/decisions/0035-search-on-the-gpu.md.
        """
        if self._is_lost or self._options is None or self._options.resident != "on":
            return ()
        accelerator = self._accelerator_of_gpu()
        return () if accelerator is None else accelerator.search(num_bytes)


class AutoResidentMemory:
    """See ResidentMemory. The GPU starts when the memory is opened."""

    is_asked_for = False

    def __init__(self, start_gpu: Callable[[], Callable[[], Engine | None] | None]) -> None:
        self._start_gpu = start_gpu
        self._of_gpu: ResidentMemory | None = None

    def open(self) -> tuple[Sequence[ArrayDevice], int]:
        """See ResidentMemory.open."""
        start_gpu = self._start_gpu()
        gpu = None if start_gpu is None else start_gpu()
        accelerator = None if gpu is None else gpu.accelerator
        self._of_gpu = None if accelerator is None else accelerator.resident_memory()
        if self._of_gpu is None:
            raise EngineUnavailableError("there is no GPU")
        return self._of_gpu.open()

    def call_if_needed(self, give_back: Callable[[], None]) -> None:
        """See ResidentMemory.call_if_needed."""
        if self._of_gpu is not None:
            self._of_gpu.call_if_needed(give_back)
