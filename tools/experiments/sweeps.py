"""Computes the sizes of blocks of gompresso-bit with other codeword limits and sub-blocks than the format has.

No such block is written: the sequences come from the encoder, the codes are those that it would build, and the sizes
are exact. Nothing is timed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gompfs._native.codec import parse_sequences
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.codec.constants import NUM_SUB_BLOCKS
from gompfs.engine.cpu import CpuEngine
from gompfs.gpu.device.kernel_sources import SHARED_BYTES
from tools.bench.blocks import read_blocks
from tools.bench.report import Cell, Plot, Report

from .shared_library import build_library

LIMITS = range(8, 16)
SUB_BLOCKS = (1, 4, 8, 16, 32, 64, 128)
RUNS = (4, 8, 16, 32, 64)  # consecutive sequences of a sub-block; the paper has 16
MAX_LITERAL_BITS = 10
_LEVEL = 6
_MOST_BLOCKS = 64

# An H200. Decode tables have two bytes an entry.
_SHARED_PER_MULTIPROCESSOR = 228 << 10
_RESERVED_PER_CTA = 1 << 10
_WARPS_PER_CTA = (4, 2, 1)
_WARPS_BY_REGISTERS = 28


@dataclass(frozen=True)
class SimulatedBlock:
    """The sequences (uint32, three for each) and literals of a block."""

    sequences: NDArray[np.uint32]
    literals: bytes
    uncompressed_size: int

    def size(self, max_bits: int = MAX_LITERAL_BITS, num_sub_blocks: int = NUM_SUB_BLOCKS) -> int:
        """Returns the payload's size in bytes if codewords have `max_bits` at most (those of offsets one less)."""
        return self._call("size_with_interleaved_sub_blocks", max_bits, num_sub_blocks)

    def size_with_runs(self, run: int) -> int:
        """Returns the payload's size if a sub-block has `run` consecutive sequences and their literals."""
        return self._call("size_with_consecutive_sub_blocks", MAX_LITERAL_BITS, run)

    def _call(self, name: str, max_bits: int, number: int) -> int:
        function = getattr(_library(), name)
        function.restype = ctypes.c_size_t
        return int(
            function(
                ctypes.c_void_p(self.sequences.ctypes.data),
                ctypes.c_size_t(self.sequences.size // 3),
                self.literals,
                ctypes.c_size_t(len(self.literals)),
                max_bits,
                ctypes.c_size_t(number),
            )
        )


def simulate_blocks(blocks: Sequence[bytes]) -> list[SimulatedBlock]:
    """Returns the blocks that shrink, with the sequences that the encoder finds in them."""
    found = []
    options = CodecOptions(Codec.GOMPRESSO_BIT, _LEVEL)
    for content in blocks:
        (block,) = CpuEngine().encode_blocks(content, len(content), options)
        if block.codec is Codec.GOMPRESSO_BIT:
            found.append(SimulatedBlock(*_parse_block(content), len(content)))
    return found


def _parse_block(content: bytes) -> tuple[NDArray[np.uint32], bytes]:
    """Returns the sequences (three numbers for each) and literals of a block."""
    packed = np.frombuffer(parse_sequences(content, Codec.GOMPRESSO_BIT, _LEVEL, False), np.uint64)
    fields = [packed >> 44, packed >> 32 & 0xFFF, packed & 0xFFFFFFFF]  # lengths of literals and match, match_offset
    sequences = np.stack(fields, 1).astype(np.uint32)
    is_literal = np.repeat(np.tile([True, False], len(sequences)), sequences[:, :2].ravel())
    return sequences.ravel(), np.frombuffer(content, np.uint8)[is_literal].tobytes()


def measure_sweeps(path: Path, block_size: int, every: int) -> list[Report]:
    """Returns a table of codeword limits and two of sub-blocks, for some blocks of a file or directory."""
    blocks = read_blocks(path, block_size, every)
    simulated = simulate_blocks(blocks[:: -(-len(blocks) // _MOST_BLOCKS)])
    if not simulated:
        return [Report(f"{path.name}: codeword limits", [""], [("nothing", ["no block shrinks"])])]
    title = f"{path.name}, gompresso-bit -{_LEVEL}, {len(simulated)} blocks of {block_size}"
    reports = [_sweep_limits(title, path.name, simulated), *_sweep_sub_blocks(title, simulated)]
    for report in reports:
        report.notes.append(
            "Computed, not measured: exact sizes for the sequences that the encoder finds with the format's limits; "
            "with the 32-byte header of each block."
        )
    return reports


def _sweep_limits(title: str, name: str, blocks: list[SimulatedBlock]) -> Report:
    report = Report(
        f"{title}: codeword limits",
        ["ratio", f"/ that of {MAX_LITERAL_BITS}", "shared memory per warp", "resident warps by it", "resident warps"],
    )
    ratios = {limit: _ratio(blocks, lambda block: block.size(limit)) for limit in LIMITS}  # noqa: B023
    for limit, ratio in ratios.items():
        shared = shared_bytes_per_warp(limit)
        warps = resident_warps(shared)
        row: list[Cell] = [ratio, ratio / ratios[MAX_LITERAL_BITS], shared, warps, min(warps, _WARPS_BY_REGISTERS)]
        report.add(f"{limit} bits" + (", the format's" if limit == MAX_LITERAL_BITS else ""), *row)
    report.notes.append(
        "The limit of literals and tokens; that of offsets is one less. Memory: decode tables of two bytes an entry. "
        f"Warps: of one multiprocessor of an H200, where registers allow {_WARPS_BY_REGISTERS}. Code lengths above "
        f"{MAX_LITERAL_BITS}, which the format cannot write, are counted as those of that limit."
    )
    report.plots.append(Plot(f"limits-{name}", "lines", ("ratio",), "codeword limit", "compression ratio"))
    return report


def shared_bytes_per_warp(limit: int) -> int:
    """Returns the shared memory of a warp of decode_bit if its tables had as many entries as a codeword limit asks."""
    _, per_warp = SHARED_BYTES["codec/decode_bit"]
    now, then = (2 * ((1 << bits) + (1 << bits) + (1 << bits - 1)) for bits in (MAX_LITERAL_BITS, limit))
    return per_warp - now + then


def resident_warps(shared_bytes: int) -> int:
    """Returns how many warps with so much shared memory each fit on a multiprocessor, in CTAs of the best size."""
    per_cta, _ = SHARED_BYTES["codec/decode_bit"]
    return max(
        _SHARED_PER_MULTIPROCESSOR // (per_cta + count * shared_bytes + _RESERVED_PER_CTA) * count
        for count in _WARPS_PER_CTA
    )


def _sweep_sub_blocks(title: str, blocks: list[SimulatedBlock]) -> list[Report]:
    whole = _ratio(blocks, lambda block: block.size(num_sub_blocks=1))
    columns = ["ratio", "/ that of one sub-block"]
    interleaved = Report(f"{title}: number of sub-blocks", columns)
    for count in SUB_BLOCKS:
        ratio = _ratio(blocks, lambda block: block.size(num_sub_blocks=count))  # noqa: B023
        interleaved.add(f"{count}" + (", the format's" if count == NUM_SUB_BLOCKS else ""), ratio, ratio / whole)
    interleaved.notes.append(
        "Sequence i and literal i are in sub-blocks i % n, each with a size for sequences and one for literals. An "
        "offset repeats only one of the same n sequences, or any if there is one sub-block."
    )
    consecutive = Report(f"{title}: consecutive sequences of a sub-block", ["sub-blocks", *columns])
    for run in RUNS:
        ratio = _ratio(blocks, lambda block: block.size_with_runs(run))  # noqa: B023
        count = sum(-(-block.sequences.size // (3 * run)) for block in blocks) / len(blocks)
        consecutive.add(f"{run}" + (", the paper's" if run == 16 else ""), count, ratio, ratio / whole)
    consecutive.notes.append(
        "The paper's way: a sub-block has its sequences with their literals, and one size. An offset repeats only one "
        "of the same sub-block."
    )
    return [interleaved, consecutive]


def _ratio(blocks: list[SimulatedBlock], size: Callable[[SimulatedBlock], int]) -> float:
    compressed = sum(size(block) + BLOCK_HEADER_SIZE for block in blocks)
    return sum(block.uncompressed_size for block in blocks) / compressed


@cache
def _library() -> ctypes.CDLL:
    root = Path(__file__).parents[2]
    sources = [Path(__file__).with_name("simulated_sizes.cpp"), root / "native" / "codec" / "huffman.cpp"]
    return build_library(sources, [root / "native", root / "kernels"])
