"""Measures ratio and speed of compressing, from memory to memory: all levels of our codecs beside peers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gompfs.codec import Codec, CodecOptions
from gompfs.codec.codecs import MAX_LEVEL, MIN_LEVEL
from gompfs.engine import select_engine
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import EngineUnavailableError

from .blocks import BATCH_SIZE, Peer, peer, read_blocks
from .decode import WrongContentError, decode_job
from .report import NOT_INSTALLED, Report
from .stored_text import store_text
from .timing import interleave

PEERS = (
    "libdeflate-1", "libdeflate-6", "libdeflate-12", "zlib-6", "zlibng-6", "isal-1", "isal-3",
    "zstd-1", "zstd-3", "zstd-9", "zstd-19", "lz4", "lz4hc-9", "lz4hc-12",
)  # fmt: skip

DEVICES = ("cpu", "gpu")

Job = Callable[[], object]


@dataclass
class _Row:
    """A row of the table: a codec, the size of its output, and a job to time for each column."""

    name: str
    ratio: float
    whole_ratio: float | None = None
    jobs: dict[str, Job] = field(default_factory=dict)


class _Columns:
    """The names of the columns, which depend on the number of threads."""

    def __init__(self, num_threads: int) -> None:
        self.speeds = {1: "MB/s, 1 thread"} | ({num_threads: f"MB/s, {num_threads} threads"} if num_threads > 1 else {})
        self.whole = "whole: MB/s"

    @property
    def names(self) -> list[str]:
        return ["ratio", *self.speeds.values(), "whole: ratio", self.whole]


def measure_compress(
    paths: Sequence[Path],
    block_size: int,
    every: int,
    rounds: int,
    only: Sequence[str] = (),
    devices: Sequence[str] = DEVICES,
) -> Iterator[Report]:
    """Yields a table for each file or directory, with a row for each codec and level. All output is decoded.

    Yields two more tables for each if there is a GPU. `devices` are some of DEVICES, which are then the only ones
    that are measured.
    """
    for path in paths:
        blocks = read_blocks(path, block_size, every)
        if "cpu" in devices:
            yield _measure(path.name, blocks, block_size, rounds, only)
        if "gpu" in devices:
            yield from _measure_on_gpu(path.name, blocks, rounds, only)


def _measure(name: str, blocks: Sequence[bytes], block_size: int, rounds: int, only: Sequence[str]) -> Report:
    size = sum(map(len, blocks))
    num_threads = len(os.sched_getaffinity(0))
    columns = _Columns(num_threads)
    report = Report(
        f"compressing {name}, {size / 1e6:.1f} MB in blocks of {block_size}, medians of {rounds}", columns.names
    )
    wanted = [name for name in _names() if not only or any(text in name for text in only)]
    with ThreadPoolExecutor(num_threads) as executor:
        rows = [row for name in wanted if (row := _row(name, blocks, block_size, columns, executor)) is not None]
        seconds = interleave({(row.name, column): job for row in rows for column, job in row.jobs.items()}, rounds)
    for row in rows:
        speeds = {column: size / 1e6 / seconds[row.name, column] for column in row.jobs}
        in_blocks = [speeds[column] for column in columns.speeds.values()]
        report.add(row.name, row.ratio, *in_blocks, row.whole_ratio, speeds.get(columns.whole))
    for name in sorted(set(wanted) - {row.name for row in rows}, key=wanted.index):
        report.add(name, NOT_INSTALLED, *[None] * (len(report.columns) - 1))
    report.notes.append(
        "Blocks: each is compressed by itself. Our ratios include the 32-byte header of each block, and our speeds two "
        "checksums; of the peers, only zlib, zlib-ng and ISA-L have one. Whole: the same bytes compressed at once."
    )
    report.notes.append(
        "Peers on several threads: a pool of Python threads, each with a part of the blocks. The time in which a "
        "binding holds the GIL limits their speed."
    )
    return report


def _names() -> list[str]:
    levels = range(MIN_LEVEL, MAX_LEVEL + 1)
    ours = [f"{codec.label}-{level}" for codec in (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE) for level in levels]
    return [*ours, Codec.GOMPRESSO_TADOC.label, *PEERS]


def _row(
    name: str, blocks: Sequence[bytes], block_size: int, columns: _Columns, executor: ThreadPoolExecutor
) -> _Row | None:
    """Returns the row of a codec, after checking that it restores the same bytes, or None for a missing peer."""
    if name in PEERS:
        return _peer_row(peer(name), blocks, columns, executor)
    if name == Codec.GOMPRESSO_TADOC.label:
        return _tadoc_row(blocks, block_size, columns)
    label, _, level = name.rpartition("-")
    codec = next(codec for codec in Codec if codec.label == label)
    return _our_row(name, CodecOptions(codec, int(level)), blocks, block_size, columns)


def _our_row(name: str, options: CodecOptions, blocks: Sequence[bytes], block_size: int, columns: _Columns) -> _Row:
    stream = memoryview(b"".join(blocks))
    step = BATCH_SIZE // block_size * block_size

    def compress(engine: CpuEngine) -> list[bytes]:
        starts = range(0, len(stream), step)
        batches = [engine.encode_blocks(stream[start : start + step], block_size, options) for start in starts]
        return [block.data for batch in batches for block in batch]

    sizes = set()
    for count in columns.speeds:
        encoded = compress(CpuEngine(count))
        if decode_job(CpuEngine(count), encoded, block_size)(check=stream) != len(stream):
            raise WrongContentError(name)
        sizes.add(sum(map(len, encoded)))
    (size,) = sizes  # the number of threads does not change the bytes
    row = _Row(name, len(stream) / size)
    for count, column in columns.speeds.items():
        row.jobs[column] = partial(compress, CpuEngine(count))
    return row


def _tadoc_row(blocks: Sequence[bytes], block_size: int, columns: _Columns) -> _Row:
    stream = b"".join(blocks)
    text = store_text(blocks, block_size)
    if decode_job(CpuEngine(), text.blocks, block_size, text)(check=stream) != len(stream):
        raise WrongContentError(Codec.GOMPRESSO_TADOC.label)
    row = _Row(Codec.GOMPRESSO_TADOC.label, len(stream) / text.size)
    for count, column in columns.speeds.items():
        row.jobs[column] = partial(store_text, blocks, block_size, count)
    return row


def _peer_row(other: Peer, blocks: Sequence[bytes], columns: _Columns, executor: ThreadPoolExecutor) -> _Row | None:
    if other.compress is None or other.decompress is None:
        return None
    whole = b"".join(blocks)
    compressed_size = 0
    for content in (*blocks, whole):
        compressed = other.compress(content)
        if bytes(other.decompress(compressed, len(content))) != content:
            raise WrongContentError(other.name)
        compressed_size += len(compressed) if content is not whole else 0
    row = _Row(other.name, len(whole) / compressed_size, len(whole) / len(compressed))

    compress = other.compress

    def compress_all(part: Sequence[bytes]) -> None:
        for block in part:
            compress(block)

    for count, column in columns.speeds.items():
        parts = [blocks[number::count] for number in range(count)]
        on_one = partial(compress_all, blocks)
        row.jobs[column] = on_one if count == 1 else partial(_on_all, executor, compress_all, parts)
    row.jobs[columns.whole] = partial(compress, whole)
    return row


def _on_all(
    executor: ThreadPoolExecutor, work: Callable[[Sequence[bytes]], None], parts: Sequence[Sequence[bytes]]
) -> None:
    for _ in executor.map(work, parts):
        pass


def _measure_on_gpu(name: str, blocks: Sequence[bytes], rounds: int, only: Sequence[str]) -> list[Report]:
    """Returns the tables of a GPU; without one, a table that says so."""
    try:
        select_engine("gpu")
    except EngineUnavailableError as error:
        return [Report(f"compressing {name} on a GPU", [""], [("not measured", [str(error)])])]
    from .gpu_compress import measure_gpu_compress

    return measure_gpu_compress(name, blocks, rounds, only)
