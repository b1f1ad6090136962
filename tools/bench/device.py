"""Shared by the tables about a GPU: data, timing, checks, and the description of the device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import click
import cupy
import numpy as np

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine

from . import nvml
from .blocks import read_blocks

OUTPUT_BYTES = 4 << 30  # a device decodes thousands of blocks at once; the last ones should hardly matter


class WrongContentError(AssertionError):
    """A codec decoded other bytes than were compressed."""


@dataclass(frozen=True)
class Sample:
    """Blocks of one size, and the number of repetitions that keeps a device busy."""

    name: str
    blocks: Sequence[bytes]
    repeats: int

    @property
    def block_size(self) -> int:
        """The size of each block in bytes."""
        return len(self.blocks[0])

    @cached_property
    def content(self) -> bytes:
        """The concatenated blocks, without repetitions."""
        return b"".join(self.blocks)

    @property
    def size(self) -> int:
        """The size of all blocks in bytes, including repetitions."""
        return len(self.content) * self.repeats

    def encode(self, options: CodecOptions) -> list[bytes] | None:
        """Returns the blocks, without repetitions, as an archive stores them; None if a block does not shrink."""
        encoded = [block.data for block in CpuEngine().encode_blocks(self.content, self.block_size, options)]
        return None if any(block[4] == Codec.STORED for block in encoded) else encoded

    def is_repeated_in(self, output: cupy.ndarray | memoryview) -> bool:
        """Returns whether an output, in device or host memory, is this content, repeated."""
        content = np.frombuffer(self.content, np.uint8)
        if isinstance(output, memoryview):
            rows = np.frombuffer(output, np.uint8)[: self.size].reshape(-1, content.size)
            return all(np.array_equal(row, content) for row in rows)
        return bool((output[: self.size].reshape(-1, content.size) == cupy.asarray(content)).all())


def make_sample(name: str, content: bytes, block_size: int, output_bytes: int = OUTPUT_BYTES) -> Sample:
    """Cuts content into whole blocks and drops the rest; raises a click error if there is no whole block.

    The blocks are repeated up to `output_bytes`.
    """
    blocks = [content[end - block_size : end] for end in range(block_size, len(content) + 1, block_size)]
    if not blocks:
        raise click.ClickException(f"{name} is smaller than a block")
    return Sample(name, blocks, max(output_bytes // (len(blocks) * block_size), 1))


def read_sample(path: Path, block_size: int, every: int, output_bytes: int = OUTPUT_BYTES) -> Sample:
    """Returns the data of a file or directory in blocks, repeated up to `output_bytes`."""
    return make_sample(path.name, b"".join(read_blocks(path, block_size, every)), block_size, output_bytes)


def check(label: str, is_right: bool) -> None:
    """Raises WrongContentError with the label if `is_right` is false."""
    if not is_right:
        raise WrongContentError(label)


def time_on_device(decode: Callable[[], None], rounds: int) -> float:
    """Returns the median seconds between two events on the stream, after two warm-up rounds."""
    seconds = []
    for number in range(rounds + 2):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        decode()
        end.record()
        end.synchronize()
        if number >= 2:
            seconds.append(float(cupy.cuda.get_elapsed_time(start, end)) / 1e3)
    return statistics.median(seconds)


def time_on_host(job: Callable[[], object], rounds: int) -> float:
    """Returns the median seconds of a job that itself waits for the device, after one warm-up round."""
    seconds = []
    for number in range(rounds + 1):
        started = time.perf_counter()
        job()
        if number:
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def time_copy_to_host(out: memoryview, rounds: int) -> float:
    """Returns the median seconds to copy from the device into host memory."""
    device = cupy.zeros(len(out), cupy.uint8)
    target = np.frombuffer(out, np.uint8)
    return time_on_device(lambda: device.get(cupy.cuda.get_current_stream(), out=target, blocking=False), rounds)


def describe_device() -> str:
    """Returns the name of the GPU, and the versions of its driver, of CUDA and of CuPy."""
    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(0)["name"].decode()
    driver = nvml.driver_version() or "unknown"
    versions = f"driver {driver} of CUDA {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}"
    return f"{name}, {versions}, CuPy {cupy.__version__}"
