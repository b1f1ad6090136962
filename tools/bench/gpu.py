"""Decoding speed on a GPU: blocks in device memory beside nvCOMP, and through the engine with all transfers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import cupy
import numpy as np

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine, ResidentBlocks

from . import nvcomp
from .blocks import read_blocks
from .report import NOT_INSTALLED, Cell, Report, divide

_OURS = ((Codec.GOMPRESSO_BIT, 6), (Codec.GOMPRESSO_BIT, 9), (Codec.GOMPRESSO_BYTE, 6), (Codec.GOMPRESSO_BYTE, 1))
_PEERS = (("LZ4", 0), ("Snappy", 0), ("Gdeflate", 1), ("Gdeflate", 5), ("Deflate", 5), ("Zstd", 0))
_PAIRS = (
    ("gompresso-bit -6", "nvCOMP Gdeflate 5"),
    ("gompresso-bit -9", "nvCOMP Gdeflate 5"),
    ("gompresso-byte -6", "nvCOMP LZ4"),
    ("gompresso-byte -6", "nvCOMP Snappy"),
    ("gompresso-byte -1", "nvCOMP LZ4"),
    ("gompresso-byte -1", "nvCOMP Snappy"),
)
_BYTES = 1 << 30  # of output: enough to fill the device several times


class WrongContentError(AssertionError):
    """What a codec decoded is not what was compressed."""


def measure_gpu(paths: Sequence[Path], block_size: int, every: int, rounds: int) -> list[Report]:
    """Two tables for each file or directory: device memory to device memory, and host to host."""
    engine = GpuEngine()
    reports = []
    for path in paths:
        blocks = [block for block in read_blocks(path, block_size, every) if len(block) == block_size]
        if not blocks:
            raise click.ClickException(f"{path} has less than a block")
        repeated = blocks * max(_BYTES // (len(blocks) * block_size), 1)
        reports.append(_measure_resident(path.name, blocks, repeated, engine, rounds))
        reports.append(_measure_transfers(path.name, blocks, repeated, engine, rounds))
    return reports


def _measure_resident(
    name: str, blocks: Sequence[bytes], repeated: Sequence[bytes], engine: GpuEngine, rounds: int
) -> Report:
    size = sum(map(len, repeated))
    report = Report(
        f"{name}, {size / 1e9:.2f} GB in blocks of {len(blocks[0])}, in device memory: GB/s, medians of {rounds}",
        ["ratio", "GB/s"],
    )
    results: dict[str, tuple[float, float]] = {}
    for codec, level in _OURS:
        label = f"{codec.label} -{level}"
        encoded = _encode(blocks, codec, level)
        if any(block[4] == Codec.STORED for block in encoded):
            report.add(label, "has blocks that do not shrink", None)
            continue
        resident = ResidentBlocks(engine, encoded * (len(repeated) // len(blocks)))
        results[label] = (sum(map(len, blocks)) / sum(map(len, encoded)), size / 1e9 / _time(resident.decode, rounds))
        _check(label, resident.all_decoded() and _is_repeated(resident.output[:size], blocks))
        del resident
    library = nvcomp.load_library()
    for codec_name, level in _PEERS:
        label = f"nvCOMP {codec_name}" + (f" {level}" if level else "")
        if library is None:
            report.add(label, NOT_INSTALLED, None)
            continue
        peer = nvcomp.NvcompBatch(library, codec_name, level, repeated)
        results[label] = (size / peer.compressed_size, size / 1e9 / _time(peer.decode, rounds))
        _check(label, peer.is_right())
        del peer
        cupy.get_default_memory_pool().free_all_blocks()
    for label, values in results.items():
        report.add(label, *values)
    for ours, theirs in _PAIRS:
        if ours in results and theirs in results:
            cells: list[Cell] = [divide(a, b) for a, b in zip(results[ours], results[theirs], strict=True)]
            report.add(f"{ours} / {theirs}", *cells)
    report.notes.append(_device_note(library is not None))
    report.notes.append(
        "Ours count each block with its header of 32 bytes. Checksums are checked on the host, not here."
    )
    return report


def _measure_transfers(
    name: str, blocks: Sequence[bytes], repeated: Sequence[bytes], engine: GpuEngine, rounds: int
) -> Report:
    size = sum(map(len, repeated))
    out = engine.allocate(size)
    copy = _time_copy_to_host(out, rounds)
    report = Report(
        f"{name}, {size / 1e9:.2f} GB, host memory to host memory: GB/s of output, medians of {rounds}",
        ["GB/s", "of the copy to the host"],
    )
    report.add("copy to the host alone", size / 1e9 / copy, 1.0)
    content = np.frombuffer(b"".join(blocks), np.uint8)
    for label, target in (("pinned", out), ("pageable", memoryview(bytearray(size)))):
        for codec, level in _OURS:
            encoded = _encode(blocks, codec, level) * (len(repeated) // len(blocks))
            seconds = _time_on_host(lambda: engine.decode_blocks(encoded, target), rounds)  # noqa: B023
            _check(codec.label, bool((np.frombuffer(target, np.uint8)[-content.size :] == content).all()))
            report.add(f"{codec.label} -{level}, {label}", size / 1e9 / seconds, copy / seconds)
    report.notes.append(_device_note(with_nvcomp=False))
    report.notes.append(
        "Checks of all headers and checksums, both copies and decoding; pageable memory takes a copy more."
    )
    return report


def _encode(blocks: Sequence[bytes], codec: Codec, level: int) -> list[bytes]:
    stream = b"".join(blocks)
    return [block.data for block in CpuEngine().encode_blocks(stream, len(blocks[0]), CodecOptions(codec, level))]


def _is_repeated(output: cupy.ndarray, blocks: Sequence[bytes]) -> bool:
    content = cupy.asarray(np.frombuffer(b"".join(blocks), np.uint8))
    return bool((output.reshape(-1, content.size) == content).all())


def _check(label: str, is_right: bool) -> None:
    if not is_right:
        raise WrongContentError(label)


def _time(decode: Callable[[], None], rounds: int) -> float:
    """Median seconds between two events on the stream, after two rounds that warm up."""
    seconds = []
    for number in range(rounds + 2):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        decode()
        end.record()
        end.synchronize()
        if number >= 2:
            seconds.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return statistics.median(seconds)


def _time_on_host(job: Callable[[], object], rounds: int) -> float:
    seconds = []
    for number in range(rounds + 1):
        started = time.perf_counter()
        job()
        if number:
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _time_copy_to_host(out: memoryview, rounds: int) -> float:
    device = cupy.zeros(len(out), cupy.uint8)
    target = np.frombuffer(out, np.uint8)
    return _time(lambda: device.get(cupy.cuda.get_current_stream(), out=target, blocking=False), rounds)


def _device_note(with_nvcomp: bool) -> str:
    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(0)["name"].decode()
    versions = (
        f"driver of CUDA {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}, CuPy {cupy.__version__}"
    )
    return f"{name}, {versions}" + (f", nvCOMP {nvcomp.version()}" if with_nvcomp else "") + "."
