"""Measures decoding with transfers of the input, and of the output, between host and device (Fig. 13).

Beside it: codecs of C libraries on all threads of the same host, in blocks of 2 MB as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import cupy
import numpy as np

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine
from tools.bench.c_libraries import CompressedBlocks, library_codecs
from tools.bench.device import Sample, check, time_copy_to_host, time_on_device, time_on_host
from tools.bench.report import NOT_INSTALLED, Plot, Report
from tools.bench.resident import ResidentBlocks

from .strategies import CODECS, LEVEL

_NUM_PARTS = 16
_NUM_STREAMS = 4
PEERS = ("lz4", "lz4-9", "snappy", "zstd-3", "libdeflate-6", "zlib-6")
PEER_BLOCK = 2 << 20


class _Part:
    """Blocks on the device, and pinned memory for their payloads and their part of the output."""

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
        """Queue the copy of the payloads and the decoding."""
        self.upload()
        self.blocks.decode()

    def decode_with_both(self) -> None:
        """Queue both copies, and the decoding between them."""
        self.decode_with_input()
        self.fetch()

    def clear(self) -> None:
        """Clear the memory on the device, so that a missing copy is noticed."""
        self.blocks.payloads.fill(0)
        self.blocks.output.fill(0)


def measure_transfers(sample: Sample, engine: GpuEngine, rounds: int) -> list[Report]:
    """Returns a table of both codecs with each combination of copies, and of the CPU."""
    out = engine.allocate(sample.size)
    report = Report(
        f"{sample.name} -{LEVEL}, {sample.size / 1e9:.2f} GB in blocks of {sample.block_size}: GB/s of output with "
        f"copies from and to pinned memory, medians of {rounds}",
        ["ratio", "GB/s"],
    )
    report.add("copy of the output alone", None, sample.size / 1e9 / time_copy_to_host(out, rounds))
    for codec in CODECS:
        encoded = sample.encode(CodecOptions(codec, LEVEL, dependency_elimination=True))
        if encoded is None:
            report.add(codec.label, "has blocks that do not shrink", None)
            continue
        ratio = len(sample.content) / sum(map(len, encoded))
        for mode, seconds in _time_modes(sample, codec, encoded, out, engine, rounds).items():
            report.add(f"{codec.label}, {mode}", ratio, sample.size / 1e9 / seconds)
    _add_peers(report, sample, rounds)
    report.notes += [
        f"Copies and decoding run one after another; in parts: {_NUM_PARTS} parts overlap on {_NUM_STREAMS} streams.",
        "Engine and CPU also check the checksums of all blocks.",
        (
            f"C libraries decode blocks of {PEER_BLOCK} bytes on all threads, into memory that was used before; the "
            "data is not repeated for them."
        ),
    ]
    report.plots.append(Plot(f"transfers-{sample.name}", "points", ("ratio", "GB/s"), "ratio", "output, GB/s"))
    return [report]


def _add_peers(report: Report, sample: Sample, rounds: int) -> None:
    """Adds the codecs of C libraries on all threads of the CPU."""
    num_threads = CpuEngine().num_threads
    size = len(sample.content)
    with ThreadPoolExecutor(num_threads) as executor:
        for name, codec in library_codecs(PEERS).items():
            label = f"{name}, {num_threads} threads"
            if codec is None:
                report.add(label, NOT_INSTALLED, None)
                continue
            blocks = CompressedBlocks(codec, sample.content, PEER_BLOCK, executor)
            seconds = time_on_host(blocks.decode, rounds)
            check(name, blocks.is_right())
            report.add(label, size / blocks.compressed_size, size / 1e9 / seconds)


def time_copies(
    sample: Sample, codec: Codec, blocks: list[bytes], out: memoryview, engine: GpuEngine, rounds: int
) -> dict[str, float]:
    """Returns the median seconds to decode without copies, with a copy of the input, and with copies of both.

    Checks the output in `out`.
    """
    whole = _Part(engine, blocks, out)
    seconds = {
        "no copies": time_on_device(whole.blocks.decode, rounds),
        "input": time_on_device(whole.decode_with_input, rounds),
        "input and output": time_on_device(whole.decode_with_both, rounds),
    }
    whole.clear()
    _check_output(codec, sample, out, whole.decode_with_both)
    return seconds


def _time_modes(
    sample: Sample, codec: Codec, encoded: list[bytes], out: memoryview, engine: GpuEngine, rounds: int
) -> dict[str, float]:
    """Returns the median seconds of each mode; checks the output of each mode that copies it to the host."""
    blocks = encoded * sample.repeats
    seconds = time_copies(sample, codec, blocks, out, engine, rounds)
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
    """Runs a job on cleared memory, and checks its output."""
    np.frombuffer(out, np.uint8)[:] = 0
    cupy.cuda.Device().synchronize()
    job()
    cupy.cuda.Device().synchronize()
    check(codec.label, sample.is_repeated_in(out))


def _cut(sample: Sample, blocks: list[bytes], out: memoryview, engine: GpuEngine) -> list[_Part]:
    """Returns parts with about the same number of blocks."""
    step = -(-len(blocks) // _NUM_PARTS)
    return [
        _Part(engine, blocks[first : first + step], out[first * sample.block_size : (first + step) * sample.block_size])
        for first in range(0, len(blocks), step)
    ]


def _run_parts(parts: list[_Part], streams: list[cupy.cuda.Stream]) -> None:
    """Runs all parts on several streams, so that copies of some parts overlap with the decoding of others."""
    for part, stream in zip(parts, cycle(streams), strict=False):
        with stream:
            part.decode_with_both()
    for stream in streams:
        stream.synchronize()
