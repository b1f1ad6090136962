"""The engine `auto`: it uses the CPU, and the GPU for batches that the GPU decodes faster."""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gompfs.codec import BlockStatus, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.engine.auto_accelerator import AutoAccelerator
from gompfs.engine.base import Engine
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.rates import KnownRates, Rates
from gompfs.errors import EngineUnavailableError
from gompfs.forks import call_in_child
from gompfs.log import Logger
from gompfs.options import GpuOptions

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary
    from gompfs.engine.base import ArchiveDecoder, PartSymbols
    from gompfs.gpu.decode.archive_source import StoredBlocks

log = Logger(__name__)

# Starting CUDA takes about this long, so the GPU starts only after this much CPU work.
_SECONDS_BEFORE_START = 1.0
_SECONDS_AFTER_PREPARE = 0.3  # a mount answers its first requests before the start takes the interpreter's time
_GAIN_OF_EARLY_START = 1.1
_SECONDS_IDLE = 5.0
_LEAST_GPU_BYTES = 8 << 20  # of output: smaller batches are the CPU's


class AutoEngine:
    """Decodes on the CPU.

    After a second of decoding it starts the GPU, or at once where earlier processes found it faster. It tries the GPU
    with large batches, then gives them to the faster of the two.
    """

    def __init__(self, num_threads: int = 0, options: GpuOptions | None = None) -> None:
        """Uses `num_threads` host threads (0: one per core). The GPU starts later, on a thread of its own."""
        self._cpu = CpuEngine(num_threads)
        self._options = options
        self.num_threads = self._cpu.num_threads
        self._gpu: Engine | None = None
        self._rates = Rates()
        self._known = KnownRates(self.num_threads)
        self._lock = threading.Lock()
        self._is_started = False
        self.accelerator = AutoAccelerator(self.num_threads, options, self._gpu_for_text)
        self._state = "the CPU; a GPU is started after one second of decoding"
        self._lost_gpu: Engine | None = None
        call_in_child(self, AutoEngine._inherit)

    def _inherit(self) -> None:
        """Called in a forked child, where a GPU that the parent has started cannot be used."""
        self._lock = threading.Lock()
        is_lost = self._is_started or self.accelerator.is_started
        self.accelerator.restart_in_child(is_lost=is_lost)
        if is_lost:
            self._lost_gpu, self._gpu = self._gpu, None  # keep the object alive: freeing its memory would call CUDA
            self._is_started = True
            self._state = "the CPU, because this process was forked from one that had started the GPU"

    @property
    def name(self) -> str:
        """`cpu`, or `cpu and gpu` if both are used."""
        return "cpu" if self._gpu is None else "cpu and gpu"

    @property
    def reason(self) -> str:
        """The chosen engine and the reason, as text for users."""
        state = self._state if self._gpu is None else describe_choice(self._rates.measured)
        return f"auto: {state}{self.accelerator.reason}"

    @property
    def batch_bytes(self) -> int:
        """See Engine.batch_bytes: that of the GPU once it has started, since only large batches are compared."""
        return (self._gpu or self._cpu).batch_bytes

    encode_batch_bytes = CpuEngine.encode_batch_bytes
    num_encode_batches = CpuEngine.num_encode_batches
    num_reencoded = 0

    @property
    def decode_work(self) -> Mapping[str, DecodeWork]:
        """See Engine.decode_work."""
        return (self._gpu or self._cpu).decode_work

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu. Starts the GPU if the CPU has decoded for a second."""
        self._start_gpu_in_time()
        return self._gpu is None or not self._prefers_gpu(num_bytes)

    def archive_decoder(self, stored: StoredBlocks, *, verify: bool) -> ArchiveDecoder:
        """See Engine.archive_decoder."""
        assert self._gpu is not None
        return self._gpu.archive_decoder(stored, verify=verify)

    def allocate(self, size: int) -> memoryview:
        """See Engine.allocate."""
        return (self._gpu or self._cpu).allocate(size)

    def _gpu_for_text(self) -> Engine | None:
        """Starts the GPU if nothing has, without a second of decoding on the CPU. Returns it if there is one."""
        with self._lock:
            is_started, self._is_started = self._is_started, True
        if not is_started:
            self.start_gpu()
        return self._gpu

    def encode_blocks(
        self, stream: Buffer, block_size: int, options: CodecOptions, dictionary: Dictionary | None = None
    ) -> list[EncodedBlock]:
        """See Engine.encode_blocks."""
        return self._cpu.encode_blocks(stream, block_size, options, dictionary)

    def decode_blocks(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        *,
        sizes: Sequence[int] | None = None,
        symbols: Sequence[PartSymbols | None] | None = None,
        verify: bool = False,
    ) -> list[BlockStatus]:
        """See Engine.decode_blocks."""
        gpu = self._gpu
        if gpu is not None and self._prefers_gpu(len(out)):
            return gpu.decode_blocks(blocks, out, sizes=sizes, symbols=symbols, verify=verify)
        statuses = self._cpu.decode_blocks(blocks, out, sizes=sizes, symbols=symbols, verify=verify)
        self._start_gpu_in_time()
        return statuses

    def _prefers_gpu(self, num_bytes: int) -> bool:
        return num_bytes >= _LEAST_GPU_BYTES and self._rates.prefers_gpu

    def note_batch(self, num_bytes: int, seconds: float, *, on_cpu: bool) -> None:
        """See Engine.note_batch."""
        if num_bytes < _LEAST_GPU_BYTES or (on_cpu and self._gpu is None and self._is_started):
            return  # while the GPU starts, it takes time from the CPU
        had_both = self._rates.measured is not None
        self._rates.note("cpu" if on_cpu else "gpu", num_bytes, seconds)
        if not had_both and (measured := self._rates.measured) is not None:
            self._known.keep(*measured)
            log.info("%s", self.reason)

    def prepare(self, path: str | None) -> None:
        """See Engine.prepare. Starts the GPU if it is known to be faster. If nothing is known, measures, once idle."""
        if self._known_gain is not None:
            if self._known_gain >= _GAIN_OF_EARLY_START:
                self._start_on_a_thread(_SECONDS_AFTER_PREPARE)
        elif path is not None:
            threading.Thread(target=self._measure, args=(path,), name="gompfs-measure", daemon=True).start()

    def _measure(self, path: str) -> None:
        """Measures both engines in a process of its own, after some seconds in which nothing was decoded."""
        done = -1
        while done != (done := self._cpu.decode_work["cpu"].num_blocks):
            threading.Event().wait(_SECONDS_IDLE)
        if self._is_started:
            return
        command = [sys.executable, "-P", "-m", "gompfs.archive.measure_engines", path]
        try:
            measuring = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except OSError as error:  # there is no memory, or too many processes
            log.info("auto: the engines cannot be measured: %s", error)
            return
        atexit.register(measuring.kill)
        measuring.wait()
        atexit.unregister(measuring.kill)
        self.__dict__.pop("_known_gain", None)
        if self._known_gain is not None:
            self.prepare(None)

    def _start_gpu_in_time(self) -> None:
        if self._is_started or self._cpu.decode_work["cpu"].seconds < _SECONDS_BEFORE_START:
            return
        if self._known_gain is not None and self._known_gain < 1:
            self._state = "the CPU: no GPU that decodes faster was found on this machine"
        else:
            self._start_on_a_thread()

    @cached_property
    def _known_gain(self) -> float | None:
        return self._known.gain_of_gpu()

    def _start_on_a_thread(self, seconds_before: float = 0) -> None:
        with self._lock:
            is_started, self._is_started = self._is_started, True
        if not is_started:
            self._state = "the CPU; a GPU is starting"
            # Not a daemon thread: the interpreter waits for it before it exits. A process that exits while CUDA starts
            # crashes.

            def start() -> None:
                threading.Event().wait(seconds_before)
                self.start_gpu()

            threading.Thread(target=start, name="gompfs-start-gpu").start()

    def start_gpu(self) -> None:
        """Starts the GPU, if there is one. Decoding continues meanwhile."""
        try:
            from gompfs.engine.gpu import GpuEngine

            if _is_ending():
                return
            gpu = GpuEngine(reason="auto", options=self._options, cpu=self._cpu)
        except (EngineUnavailableError, ImportError) as error:
            self._state = f"the CPU, because {error}"
        except RuntimeError:
            if not _is_ending():  # an interpreter that is exiting accepts no new work for threads
                raise
        else:
            self._state = ""
            self._gpu = gpu
        log.info("%s", self.reason)


def _is_ending() -> bool:
    """Returns whether the main thread has ended, so that the interpreter only waits for other threads."""
    return not threading.main_thread().is_alive()


def describe_choice(measured: tuple[float, float] | None) -> str:
    """Returns which engine decodes which batches, and the speeds in bytes per second, as text for users."""
    if measured is None:
        return f"the CPU; batches of {_LEAST_GPU_BYTES >> 20} MiB and more are tried on the GPU"
    cpu, gpu = measured
    speeds = f"batches took the CPU {cpu / 1e9:.1f} GB/s, the GPU {gpu / 1e9:.1f} GB/s"
    if gpu < cpu:
        return f"the CPU for every batch ({speeds})"
    return f"the GPU for batches of {_LEAST_GPU_BYTES >> 20} MiB and more, else the CPU ({speeds})"
