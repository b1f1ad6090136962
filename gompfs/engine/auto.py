"""The engine `auto`: it uses the CPU, and the GPU for batches that the GPU decodes faster."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gompfs.codec import DEFAULT_BLOCK_SIZE, BlockStatus, Codec, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.engine.auto_accelerator import AutoAccelerator
from gompfs.engine.base import Engine
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import EngineUnavailableError
from gompfs.forks import call_in_child
from gompfs.log import Logger
from gompfs.options import GpuOptions

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary
    from gompfs.engine.base import PartSymbols

log = Logger(__name__)

# Starting CUDA and compiling the kernels takes about this long, so the GPU starts only after this much CPU work.
_SECONDS_BEFORE_START = 1.0
_SAMPLE_BLOCKS = 128
_ROUNDS = 3


@dataclass(frozen=True)
class Cost:
    """The time a batch takes on an engine: a fixed time in seconds, plus a time per byte of output."""

    seconds: float
    seconds_per_byte: float

    def of(self, num_bytes: int) -> float:
        """Returns the seconds for a batch with `num_bytes` of output."""
        return self.seconds + num_bytes * self.seconds_per_byte


class AutoEngine:
    """Decodes on the CPU.

    After a second of decoding it starts the GPU, then gives each batch to the faster of the two.
    """

    def __init__(self, num_threads: int = 0, options: GpuOptions | None = None) -> None:
        """Uses `num_threads` host threads (0: one per core). The GPU starts later, on a thread of its own."""
        self._cpu = CpuEngine(num_threads)
        self._options = options
        self.num_threads = self._cpu.num_threads
        self._gpu: Engine | None = None
        self._costs: dict[str, Cost] = {}
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
        return f"auto: {self._state}{self.accelerator.reason}"

    @property
    def batch_bytes(self) -> int:
        """See Engine.batch_bytes: the GPU's batch size if the GPU decodes batches of that size, else the CPU's."""
        gpu = self._gpu
        return gpu.batch_bytes if gpu is not None and self._prefers_gpu(gpu.batch_bytes) else self._cpu.batch_bytes

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

    def opens_heads(self, num_bytes: int) -> bool:
        """See Engine.opens_heads. Only the GPU does."""
        return self._gpu is not None and self._prefers_gpu(num_bytes)

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
        return self._costs["gpu"].of(num_bytes) < self._costs["cpu"].of(num_bytes)

    def _start_gpu_in_time(self) -> None:
        with self._lock:
            if self._is_started or self._cpu.decode_work["cpu"].seconds < _SECONDS_BEFORE_START:
                return
            self._is_started = True
        # Not a daemon thread: the interpreter waits for it before it exits. A process that exits while CUDA starts
        # crashes.
        threading.Thread(target=self.start_gpu, name="gompfs-start-gpu").start()

    def start_gpu(self) -> None:
        """Starts the GPU, if there is one, and measures the cost of batches on both. Decoding continues meanwhile."""
        try:
            from gompfs.engine.gpu import GpuEngine

            if _is_ending():
                return
            gpu = GpuEngine(reason="auto", options=self._options, cpu=self._cpu)
            gpu.least_decoded = 0  # this engine compares the costs of each batch
            self._costs = {"cpu": measure_cost(CpuEngine(self.num_threads)), "gpu": measure_cost(gpu)}
            gpu.decode_work["gpu"].clear()  # the measurement is not the user's work
        except (EngineUnavailableError, ImportError) as error:
            self._state = f"the CPU, because {error}"
        except RuntimeError:
            if not _is_ending():  # an interpreter that is exiting accepts no new work for threads
                raise
        else:
            self._state = describe_choice(self._costs["cpu"], self._costs["gpu"])
            self._gpu = gpu
        log.info("%s", self.reason)


def _is_ending() -> bool:
    """Returns whether the main thread has ended, so that the interpreter only waits for other threads."""
    return not threading.main_thread().is_alive()


def measure_cost(engine: Engine) -> Cost:
    """Measures the cost of batches: decodes one block and many blocks, and fits a line through the two times."""
    rounds = _sample_blocks()
    out = engine.allocate(_SAMPLE_BLOCKS * DEFAULT_BLOCK_SIZE)
    seconds = []
    for part in (slice(0, 1), slice(1, None)):
        best = float("inf")
        for blocks in rounds:
            started = time.perf_counter()
            engine.decode_blocks(blocks[part], out)
            best = min(best, time.perf_counter() - started)
        seconds.append(best)
    per_byte = max(seconds[1] - seconds[0], 1e-9) / ((_SAMPLE_BLOCKS - 1) * DEFAULT_BLOCK_SIZE)
    return Cost(max(seconds[0] - per_byte * DEFAULT_BLOCK_SIZE, 0.0), per_byte)


def _sample_blocks() -> list[list[bytes]]:
    """Returns text blocks for each round, all different, so that none is in device memory from another round."""
    rng = random.Random(0)
    words = [bytes(rng.choices(range(97, 123), k=rng.randint(2, 9))) for _ in range(4000)]
    text = b" ".join(rng.choices(words, k=DEFAULT_BLOCK_SIZE // 6))[: DEFAULT_BLOCK_SIZE - 8]
    stream = b"".join(b"%08d" % number + text for number in range(_ROUNDS * (_SAMPLE_BLOCKS + 1)))
    encoded = CpuEngine().encode_blocks(stream, DEFAULT_BLOCK_SIZE, CodecOptions(Codec.GOMPRESSO_BIT, 1))
    blocks = [block.data for block in encoded]
    return [blocks[first::_ROUNDS] for first in range(_ROUNDS)]


def describe_choice(cpu: Cost, gpu: Cost) -> str:
    """Returns which engine decodes which batches, and the speeds, as text for users."""
    speeds = f"CPU {1e-9 / cpu.seconds_per_byte:.1f} GB/s, GPU {1e-9 / gpu.seconds_per_byte:.1f} GB/s"
    if gpu.seconds_per_byte >= cpu.seconds_per_byte:
        return f"the CPU for every batch ({speeds})"
    least = max(gpu.seconds - cpu.seconds, 0.0) / (cpu.seconds_per_byte - gpu.seconds_per_byte)
    return f"the GPU for batches of {least / 1e6:.1f} MB and more, else the CPU ({speeds})"
