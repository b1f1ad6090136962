"""Measures compression ratios on independent blocks of one size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gompfs.codec import Codec, CodecOptions
from gompfs.engine.cpu import CpuEngine

from .blocks import Peer, peer, read_batches
from .report import NOT_INSTALLED, Report, divide

_OURS = (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE)
_PEERS = ("zlib-6", "lz4hc-9", "zstd-3", "zstd-19")
_PAIRS = (("gompresso-bit", "zlib-6"), ("gompresso-byte", "lz4hc-9"))


def measure_ratio(paths: Sequence[Path], block_size: int, every: int) -> Report:
    """Returns a table of ratios (uncompressed / compressed size): a row for each path, a column for each codec."""
    peers = [peer(name) for name in _PEERS]
    columns = ["MB", *(codec.label for codec in _OURS), *_PEERS, *(f"{a} / {b}" for a, b in _PAIRS)]
    report = Report(f"compression ratio, independent blocks of {block_size}", columns)
    for path in paths:
        size, ratios = _measure(path, block_size, every, peers)
        report.add(path.name, size / 1e6, *ratios.values(), *(divide(ratios[a], ratios[b]) for a, b in _PAIRS))
    if every > 1:
        report.notes.append(f"One of {every} runs of 16 blocks is measured; MB is the size of the measured blocks.")
    report.notes.append(
        "Our ratios include the 32-byte header of each block (sizes, two checksums). The peers write no header, except "
        "for zlib's 6 bytes: zstd writes neither content size nor checksum, lz4 no size."
    )
    return report


def _measure(path: Path, block_size: int, every: int, peers: Sequence[Peer]) -> tuple[int, dict[str, float | str]]:
    engine = CpuEngine()
    size = 0
    compressed = dict.fromkeys([codec.label for codec in _OURS], 0) | {other.name: 0 for other in peers}
    for batch in read_batches(path, block_size, every):
        size += sum(map(len, batch))
        for codec in _OURS:
            encoded = engine.encode_blocks(b"".join(batch), block_size, CodecOptions(codec))
            compressed[codec.label] += sum(block.compressed_size for block in encoded)
        for other in peers:
            if other.compress is not None:
                compressed[other.name] += sum(len(other.compress(block)) for block in batch)
    if not size:
        raise click.ClickException(f"{path} holds no data")
    return size, {name: size / total if total else NOT_INSTALLED for name, total in compressed.items()}
