"""Decoding with the blocks, or their bytes too, crossing between host and device (Fig. 13)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import cupy
import numpy as np

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine, ResidentBlocks

from ..device import Sample, check, time_copy_to_host, time_on_device, time_on_host
from ..report import Plot, Report
from .strategies import CODECS, LEVEL

_NUM_PARTS = 16
_NUM_STREAMS = 4


class _Part:
    """Blocks on the device, and pinned memory for their payloads and for a part of the output."""

    def __init__(self, engine: GpuEngine, encoded: list[bytes], out: memoryview) -> None:
        self.blocks = ResidentBlocks(engine, encoded)
        self._payloads = np.frombuffer(engine.allocate(self.blocks.payloads.size), np.uint8)
        self._payloads[:] = self.blocks.payloads.get()
        self._out = np.frombuffer(out, np.uint8)

    def upload(self) -> None:
        """Queue the copy of the payloads to the device."""
        self.blocks.payloads.set(self._payloads, cupy.cuda.get_current_stream())

    def fetch(self) -> None:
        """Queue the copy of the output to the host."""
        output = self.blocks.output[: self._out.size]
        output.get(cupy.cuda.get_current_stream(), out=self._out, blocking=False)

    def decode_with_input(self) -> None:
        """Queue copy and decoding."""
        self.upload()
        self.blocks.decode()

    def decode_with_both(self) -> None:
        """Queue both copies, and the decoding between them."""
        self.decode_with_input()
        self.fetch()

    def clear(self) -> None:
        """Forget what is on the device, so that a copy that does not happen shows."""
        self.blocks.payloads.fill(0)
        self.blocks.output.fill(0)


def measure_transfers(sample: Sample, engine: GpuEngine, rounds: int) -> list[Report]:
    """A table of both codecs by what is copied, and the CPU beside them."""
    out = engine.allocate(sample.size)
    report = Report(
        f"{sample.name} -{LEVEL}, {sample.size / 1e9:.2f} GB in blocks of {sample.block_size}: GB/s of output with "
        f"copies from and to pinned memory, medians of {rounds}",
        ["ratio", "GB/s"],
    )
    report.add("copy of the output alone", None, sample.size / 1e9 / time_copy_to_host(out, rounds))
    for codec in CODECS:
        encoded = sample.encode(CodecOptions(codec, LEVEL))
        if encoded is None:
            report.add(codec.label, "has blocks that do not shrink", None)
            continue
        ratio = len(sample.content) / sum(map(len, encoded))
        for mode, seconds in _time_modes(sample, codec, encoded, out, engine, rounds).items():
            report.add(f"{codec.label}, {mode}", ratio, sample.size / 1e9 / seconds)
    report.notes += [
        f"Copies and decoding one after another; in parts: {_NUM_PARTS} of them on {_NUM_STREAMS} streams, at once.",
        "Engine and CPU check the checksums of all blocks as well.",
    ]
    report.plots.append(Plot(f"transfers-{sample.name}", "bars", ("GB/s",), "what is copied", "output, GB/s"))
    return [report]


def _time_modes(
    sample: Sample, codec: Codec, encoded: list[bytes], out: memoryview, engine: GpuEngine, rounds: int
) -> dict[str, float]:
    """Median seconds of each way; after each that brings its output to the host, this is checked."""
    blocks = encoded * sample.repeats
    whole = _Part(engine, blocks, out)
    seconds = {
        "no copies": time_on_device(whole.blocks.decode, rounds),
        "input": time_on_device(whole.decode_with_input, rounds),
        "input and output": time_on_device(whole.decode_with_both, rounds),
    }
    whole.clear()
    _check_output(codec, sample, out, whole.decode_with_both)
    del whole
    cpu = CpuEngine()
    parts = _cut(sample, blocks, out, engine)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(_NUM_STREAMS)]
    jobs = {
        "both, in parts": lambda: _run_parts(parts, streams),
        "both, by the engine": lambda: engine.decode_blocks(blocks, out),
        f"by the CPU, {cpu.num_threads} threads": lambda: cpu.decode_blocks(blocks, out),
    }
    for part in parts:
        part.clear()
    for mode, job in jobs.items():
        _check_output(codec, sample, out, job)
        seconds[mode] = time_on_host(job, rounds)
    return seconds


def _check_output(codec: Codec, sample: Sample, out: memoryview, job: Callable[[], object]) -> None:
    """Run a job on memory that was cleared."""
    np.frombuffer(out, np.uint8)[:] = 0
    cupy.cuda.Device().synchronize()
    job()
    cupy.cuda.Device().synchronize()
    check(codec.label, sample.is_repeated_in(out))


def _cut(sample: Sample, blocks: list[bytes], out: memoryview, engine: GpuEngine) -> list[_Part]:
    """Parts of about the same number of blocks."""
    step = -(-len(blocks) // _NUM_PARTS)
    return [
        _Part(engine, blocks[first : first + step], out[first * sample.block_size : (first + step) * sample.block_size])
        for first in range(0, len(blocks), step)
    ]


def _run_parts(parts: list[_Part], streams: list[cupy.cuda.Stream]) -> None:
    """Let the copies of some parts pass while others are decoded."""
    for part, stream in zip(parts, cycle(streams), strict=False):
        with stream:
            part.decode_with_both()
    for stream in streams:
        stream.synchronize()
