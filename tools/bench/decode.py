"""Measures the decoding speed of independent blocks of one size, from memory to memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gompfs.codec import Codec, CodecOptions
from gompfs.codec.block import parse_block_header
from gompfs.engine.cpu import CpuEngine

from .blocks import BATCH_SIZE, RUN_SIZE, Peer, peer, read_blocks
from .report import NOT_INSTALLED, Report, divide
from .stored_text import StoredText, store_text
from .timing import interleave

_OURS = (Codec.GOMPRESSO_BYTE, Codec.GOMPRESSO_BIT)
_TADOC = Codec.GOMPRESSO_TADOC.label
PEERS = ("lz4", "zstd-3", "libdeflate-6", "zlib-6")
_PAIRS = (("gompresso-byte", "lz4"), ("gompresso-bit", "zstd-3"), (_TADOC, "gompresso-bit"))

Decompress = Callable[[bytes, int], bytes]


class WrongContentError(AssertionError):
    """A codec decoded other bytes than were compressed."""


def measure_decode(paths: Sequence[Path], block_size: int, every: int, rounds: int) -> list[Report]:
    """Returns a table for each file or directory: GB/s of output by codec, on one thread and on all cores."""
    num_threads = len(os.sched_getaffinity(0))
    return [_measure(path, block_size, every, rounds, num_threads) for path in paths]


def _measure(path: Path, block_size: int, every: int, rounds: int, num_threads: int) -> Report:
    blocks = read_blocks(path, block_size, every)
    size = sum(map(len, blocks))
    jobs: dict[tuple[str, int], Callable[[], object]] = {}
    ratios: dict[str, float] = {}
    with ThreadPoolExecutor(num_threads) as executor:
        for codec in _OURS:
            ratios[codec.label] = size / add_ours(jobs, codec, blocks, block_size, num_threads)
        ratios[_TADOC] = size / add_tadoc(jobs, blocks, block_size, num_threads)
        for other in map(peer, PEERS):
            if other.compress is not None and other.decompress is not None:
                ratios[other.name] = size / add_peer(jobs, other, blocks, executor, num_threads)
        seconds = interleave(jobs, rounds)
    speeds: dict[str, list[float | str]] = {
        name: [size / 1e9 / seconds[name, count] for count in (1, num_threads)] for name in ratios
    }
    return _tabulate(path.name, size, block_size, rounds, num_threads, speeds, ratios)


def _tabulate(
    name: str,
    size: int,
    block_size: int,
    rounds: int,
    num_threads: int,
    speeds: dict[str, list[float | str]],
    ratios: dict[str, float],
) -> Report:
    report = Report(
        f"decoding {name}, {size / 1e6:.1f} MB in blocks of {block_size}, GB/s of output, medians of {rounds}",
        ["ratio", "1 thread", f"{num_threads} threads", "scaling"],
    )
    for codec in [*(codec.label for codec in _OURS), _TADOC, *PEERS]:
        if codec in speeds:
            one, all_threads = speeds[codec]
            report.add(codec, ratios[codec], one, all_threads, divide(all_threads, one))
        else:
            report.add(codec, NOT_INSTALLED, None, None, None)
    for ours, theirs in _PAIRS:
        if theirs in speeds:
            quotients = [divide(a, b) for a, b in zip(speeds[ours], speeds[theirs], strict=True)]
            report.add(f"{ours} / {theirs}", None, *quotients, None)
    report.notes.append(
        "Our codecs always check the XXH3 checksum of each compressed block; this cannot be switched off. Of the "
        "peers, only zlib has a checksum (Adler-32)."
    )
    report.notes.append(
        f"{_TADOC}: the words that parts share, the head of each part once, and its blocks, as an archive stores them."
    )
    report.notes.append(
        "Peers on several threads: a pool of Python threads, each with a part of the blocks. The time in which a "
        "binding holds the GIL limits their speed; python-lz4 holds it for a part of each call."
    )
    return report


def add_ours(
    jobs: dict[tuple[str, int], Callable[[], object]],
    codec: Codec,
    blocks: Sequence[bytes],
    block_size: int,
    num_threads: int,
) -> int:
    """Adds jobs for one thread and for all, after checking the output; returns the compressed size."""
    stream = b"".join(blocks)
    encoded = [
        block.data
        for block in CpuEngine().encode_blocks(stream, block_size, CodecOptions(codec, dependency_elimination=True))
    ]
    for count in (1, num_threads):
        job = decode_job(CpuEngine(count), encoded, block_size)
        if job(check=stream) != len(stream):
            raise WrongContentError(codec.label)
        jobs[codec.label, count] = job
    return sum(map(len, encoded))


def add_tadoc(
    jobs: dict[tuple[str, int], Callable[[], object]], blocks: Sequence[bytes], block_size: int, num_threads: int
) -> int:
    """Like add_ours for gompresso-tadoc, with the heads of parts and the words that they share."""
    text = store_text(blocks, block_size, num_threads)
    stream = b"".join(blocks)
    for count in (1, num_threads):
        job = decode_job(CpuEngine(count), text.blocks, block_size, text)
        if job(check=stream) != len(stream):
            raise WrongContentError(_TADOC)
        jobs[_TADOC, count] = job
    return text.size


def decode_job(
    engine: CpuEngine, encoded: Sequence[bytes], block_size: int, text: StoredText | None = None
) -> Callable[..., int]:
    """Returns a job that decodes all blocks."""
    batch_size = BATCH_SIZE if text is None else RUN_SIZE * engine.num_threads
    step = batch_size // block_size
    out = memoryview(bytearray(batch_size))

    def job(check: bytes | None = None) -> int:
        """Decodes all blocks; with `check`, returns the number of bytes that equal it before the first wrong batch."""
        heads = None if text is None else text.heads(engine.num_threads)
        equal = 0
        for first in range(0, len(encoded), step):
            batch = encoded[first : first + step]
            symbols = None if heads is None else heads.open(range(first, first + len(batch)))[0]
            if any(engine.decode_blocks(batch, out, symbols=symbols)):
                raise WrongContentError(f"damage in a block from {first} on")
            if check is not None:
                size = sum(parse_block_header(block).uncompressed_size for block in batch)
                if out[:size] != memoryview(check)[equal : equal + size]:
                    break
                equal += size
        return equal

    return job


def add_peer(
    jobs: dict[tuple[str, int], Callable[[], object]],
    other: Peer,
    blocks: Sequence[bytes],
    executor: ThreadPoolExecutor,
    num_threads: int,
) -> int:
    """Adds jobs for one thread and for all, after checking the output; returns the compressed size."""
    assert other.compress is not None
    assert other.decompress is not None
    pairs = [(other.compress(block), len(block)) for block in blocks]
    decompress: Decompress = other.decompress
    if any(bytes(decompress(*pair)) != block for pair, block in zip(pairs, blocks, strict=True)):
        raise WrongContentError(other.name)

    def decode(part: Sequence[tuple[bytes, int]]) -> None:
        for compressed, size in part:
            decompress(compressed, size)

    parts = [pairs[number::num_threads] for number in range(num_threads)]
    jobs[other.name, 1] = lambda: decode(pairs)
    if num_threads > 1:
        jobs[other.name, num_threads] = lambda: list(executor.map(decode, parts))
    return sum(len(compressed) for compressed, _ in pairs)
