"""Decoding speed, in memory, of blocks of one size."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from blocks import peers, read_blocks, total
from report import NOT_INSTALLED, Report

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine

OURS = (Codec.GOMPRESSO_BYTE, Codec.GOMPRESSO_BIT)
_BATCH = 128  # blocks that the engine gets at once, as a mount gives them


def measure_decode(paths: Sequence[Path], block_size: int, every: int, rounds: int) -> Report:
    """GB/s of output: a row for each codec, two columns for each file, one thread and all."""
    num_threads = len(os.sched_getaffinity(0))
    columns = [f"{path.name} {count}" for path in paths for count in ("1 thread", f"{num_threads} threads")]
    report = Report(f"decoding, GB/s, blocks of {block_size}, medians of {rounds}", columns)
    speeds: dict[str, list[float]] = {}
    missing: list[str] = []
    for path in paths:
        blocks = read_blocks(path, block_size, every)
        others, missing = peers()
        jobs: dict[str, list[Callable[[], None]]] = {}
        for codec in OURS:
            jobs[codec.label] = [_our_job(codec, blocks, block_size, count) for count in (1, num_threads)]
        for peer in others:
            pairs = [(peer.compress(block), len(block)) for block in blocks]
            jobs[peer.name] = [_their_job(peer.decompress, pairs, count) for count in (1, num_threads)]
        for name, values in _run(jobs, total(blocks), rounds).items():
            speeds.setdefault(name, []).extend(values)
    for name, values in speeds.items():
        report.add(name, *values)
    for package in missing:
        report.add(package, *[NOT_INSTALLED] * len(columns))
    for ours, theirs in (("gompresso-byte", "lz4hc -9"), ("gompresso-bit", "zstd -3")):
        if theirs in speeds:
            report.add(f"{ours} / {theirs}", *(a / b for a, b in zip(speeds[ours], speeds[theirs], strict=True)))
    report.notes.append("Ours include the check of each block's XXH3 checksum; theirs check nothing, but for zlib.")
    return report


def _our_job(codec: Codec, blocks: Sequence[bytes], block_size: int, num_threads: int) -> Callable[[], None]:
    engine = CpuEngine(num_threads)
    encoded = [b.data for b in engine.encode_blocks(b"".join(blocks), block_size, CodecOptions(codec))]
    out = memoryview(bytearray(_BATCH * block_size))

    def job() -> None:
        for first in range(0, len(encoded), _BATCH):
            statuses = engine.decode_blocks(encoded[first : first + _BATCH], out)
            assert not any(statuses)

    return job


def _their_job(
    decompress: Callable[[bytes, int], bytes], pairs: Sequence[tuple[bytes, int]], num_threads: int
) -> Callable[[], None]:
    def decode(part: Sequence[tuple[bytes, int]]) -> None:
        for block, size in part:
            decompress(block, size)

    if num_threads == 1:
        return lambda: decode(pairs)
    executor = ThreadPoolExecutor(num_threads)
    parts = [pairs[number::num_threads] for number in range(num_threads)]
    return lambda: list(executor.map(decode, parts)) and None


def _run(jobs: dict[str, list[Callable[[], None]]], size: int, rounds: int) -> dict[str, list[float]]:
    """The rounds of all jobs are interleaved, so that whatever else the machine does hits all alike."""
    seconds: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds + 1):
        for name, variants in jobs.items():
            for variant, job in enumerate(variants):
                started = time.perf_counter()
                job()
                if number:  # the first round warms up
                    seconds.setdefault((name, variant), []).append(time.perf_counter() - started)
    return {name: [size / 1e9 / statistics.median(seconds[name, v]) for v in range(len(jobs[name]))] for name in jobs}
