"""Compression ratios on independent blocks of one size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blocks import peers, read_blocks, total
from report import NOT_INSTALLED, Report

from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.engine import select_engine

OURS = (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE)


def measure_ratio(paths: Sequence[Path], block_size: int, every: int) -> Report:
    """A column for each file, a row for each codec."""
    samples = {path.name: read_blocks(path, block_size, every) for path in paths}
    report = Report(f"compression ratio, blocks of {block_size}", list(samples))
    others, missing = peers()
    engine = select_engine("cpu")
    ratios: dict[str, list[float]] = {}
    for codec in OURS:
        ratios[codec.label] = []
        for blocks in samples.values():
            encoded = engine.encode_blocks(b"".join(blocks), block_size, CodecOptions(codec))
            payloads = sum(block.compressed_size - BLOCK_HEADER_SIZE for block in encoded)
            ratios[codec.label].append(total(blocks) / payloads)
    for peer in others:
        ratios[peer.name] = [
            total(blocks) / sum(len(peer.compress(block)) for block in blocks) for blocks in samples.values()
        ]
    for name, values in ratios.items():
        report.add(name, *values)
    for package in missing:
        report.add(package, *[NOT_INSTALLED] * len(samples))
    for ours, theirs in (("gompresso-bit", "zlib -6"), ("gompresso-byte", "lz4hc -9")):
        if theirs in ratios:
            report.add(f"{ours} / {theirs}", *(a / b for a, b in zip(ratios[ours], ratios[theirs], strict=True)))
    report.notes.append("Payloads without the 32 bytes of a block's header, which has two checksums.")
    return report
