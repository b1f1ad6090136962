"""Runs the comparison kernels (bit_strategies.cu, byte_strategies.cu) on blocks that stay in device memory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from pathlib import Path

import cupy
import numpy as np

from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, parse_block_header
from gompfs.gpu.kernels import SHARED_BYTES, compile_options, read_source

from .rounds import Rounds

FOLDER = Path(__file__).parent / "kernels"
BYTES_PER_WARP = 128
"""Shared memory in bytes per warp: of bit_strategies in addition to decode_bit's; all that byte_strategies needs."""

_SOURCES = {Codec.GOMPRESSO_BIT: "bit_strategies", Codec.GOMPRESSO_BYTE: "byte_strategies"}
_PREFIXES = {Codec.GOMPRESSO_BIT: "decode_bit", Codec.GOMPRESSO_BYTE: "decode_byte"}
_WARPS_PER_CTA = 4
_THREADS_PER_CTA = 32 * _WARPS_PER_CTA
_PAYLOAD_ALIGNMENT = 16
_PADDING = 256  # kernels may read this many bytes beyond a buffer
_MAX_ROUNDS = 32


class Strategy(Enum):
    """How matches are copied; the values are suffixes of the kernels' names.

    SC, MRR and DE are rules for when a lane may copy its match. JUMP replaces pointers to bytes by pointers to their
    sources, until all bytes point to literals.
    """

    SC = "sc"
    MRR = "mrr"
    DE = "de"
    JUMP = "jump"


class StrategyBlocks:
    """Blocks of one codec and one size, whose payloads stay in the memory of the current device."""

    def __init__(self, blocks: Sequence[bytes], repeats: int) -> None:
        """Upload `blocks`, all of the same codec and size, `repeats` times."""
        headers = [parse_block_header(block) for block in blocks]
        self._codec = headers[0].codec
        block_size = headers[0].uncompressed_size
        assert {(header.codec, header.uncompressed_size) for header in headers} == {(self._codec, block_size)}
        sizes = np.array([header.payload_size for header in headers], np.int64)
        padded = -(-sizes // _PAYLOAD_ALIGNMENT) * _PAYLOAD_ALIGNMENT
        ends = np.cumsum(padded)
        places = np.arange(repeats)[:, None] * ends[-1] + (ends - padded)
        payloads = b"".join(
            block[BLOCK_HEADER_SIZE:].ljust(size, b"\0") for block, size in zip(blocks, padded.tolist(), strict=True)
        )
        self._count = len(blocks) * repeats
        self._payloads = cupy.asarray(np.frombuffer(payloads * repeats + bytes(_PADDING), np.uint8))
        self._places = cupy.asarray(places.ravel().astype(np.uint64))
        self._sizes = cupy.asarray(np.tile(sizes.astype(np.uint32), repeats))
        self._output_places = cupy.asarray(np.arange(self._count, dtype=np.uint64) * np.uint64(block_size))
        self._output_sizes = cupy.asarray(np.full(self._count, block_size, np.uint32))
        self.output = cupy.zeros(self._count * block_size + _PADDING, cupy.uint8)
        self._statuses = cupy.empty(self._count, cupy.uint8)
        self._next_block = cupy.zeros(1, cupy.uint32)
        self._counters = cupy.zeros(2 + _MAX_ROUNDS, cupy.uint64)
        self._parents: cupy.ndarray | None = None

    def decode(self, strategy: Strategy) -> None:
        """Queue the decoding of all blocks into `output`, one after another, on the current stream."""
        kernel, num_resident = _load(self._codec, strategy)
        grid = min(-(-self._count // _WARPS_PER_CTA), num_resident)
        self._next_block.fill(0)
        arguments = (
            *(self._payloads, self._places, self._sizes, self.output, self._output_places, self._output_sizes),
            *(self._statuses, self._next_block, np.uint32(self._count), self._counters),
            *((self._parents_of_bytes(),) if strategy is Strategy.JUMP else ()),
        )
        kernel((grid,), (_THREADS_PER_CTA,), arguments, shared_mem=_shared_bytes(self._codec))

    def _parents_of_bytes(self) -> cupy.ndarray:
        """Returns the memory that pointer jumping needs: a word for each byte of output."""
        if self._parents is None:
            self._parents = cupy.empty(len(self.output), cupy.uint32)
        return self._parents

    def count(self, strategy: Strategy) -> Rounds:
        """Decode once into cleared memory; return the counts of rounds: of rows, or of blocks if strategy is JUMP."""
        self.output.fill(0)
        self._statuses.fill(255)
        self._counters.fill(0)
        self.decode(strategy)
        num_rows, num_rounds, *bytes_of_round = self._counters.get().tolist()
        return Rounds(num_rows, num_rounds, bytes_of_round)

    def all_decoded(self) -> bool:
        """Wait for the last decode; return whether every payload was valid."""
        return bool((self._statuses == int(BlockStatus.OK)).all())


def _shared_bytes(codec: Codec) -> int:
    """Returns the bytes of shared memory per CTA."""
    per_cta, per_warp = SHARED_BYTES["codec/decode_bit"] if codec is Codec.GOMPRESSO_BIT else (0, 0)
    return per_cta + _WARPS_PER_CTA * (per_warp + BYTES_PER_WARP)


@cache
def _load(codec: Codec, strategy: Strategy) -> tuple[cupy.RawKernel, int]:
    """Returns a kernel for the current device, and the number of its CTAs that can be resident at once."""
    options = (*compile_options(), f"-I{FOLDER}")
    module = cupy.RawModule(code=read_source(_SOURCES[codec], FOLDER), options=options, backend="nvrtc")
    kernel = module.get_function(f"{_PREFIXES[codec]}_{strategy.value}")
    shared_bytes = _shared_bytes(codec)
    kernel.max_dynamic_shared_size_bytes = shared_bytes
    num_resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        kernel.kernel.ptr, _THREADS_PER_CTA, shared_bytes
    )
    return kernel, max(int(num_resident), 1) * cupy.cuda.Device().attributes["MultiProcessorCount"]
