"""Runs the comparison kernels (bit_strategies.cu, byte_strategies.cu) on blocks that stay in device memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

import cupy
import numpy as np

from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, parse_block_header
from gompfs.gpu.device.kernel_sources import SHARED_BYTES, compile_options, read_source

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

    SC, MRR and DE are rules for when a lane may copy its match: up to eight bytes a step, or one byte a step.
    MRR_LAUNCHES has a kernel for each round of a batch. JUMP reoffsets pointers to bytes by pointers to their sources,
    until all bytes point to literals.
    """

    SC = "sc"
    MRR = "mrr"
    DE = "de"
    SC_BYTES = "sc_bytes"
    MRR_BYTES = "mrr_bytes"
    DE_BYTES = "de_bytes"
    MRR_LAUNCHES = "list"
    JUMP = "jump"

    @property
    def label(self) -> str:
        """The name in tables."""
        return _LABELS[self]


_LABELS = {
    Strategy.SC: "SC",
    Strategy.MRR: "MRR",
    Strategy.DE: "DE",
    Strategy.SC_BYTES: "SC, bytes",
    Strategy.MRR_BYTES: "MRR, bytes",
    Strategy.DE_BYTES: "DE, bytes",
    Strategy.MRR_LAUNCHES: "MRR, kernels",
    Strategy.JUMP: "jumping",
}


class StrategyBlocks:
    """Blocks of one codec and one size, whose payloads stay in the memory of the current device."""

    def __init__(self, blocks: Sequence[bytes], repeats: int) -> None:
        """Upload `blocks`, all of the same codec and size, `repeats` times."""
        headers = [parse_block_header(block) for block in blocks]
        self._codec = headers[0].codec
        block_size = headers[0].uncompressed_size
        assert {(header.codec, header.uncompressed_size) for header in headers} == {(self._codec, block_size)}
        self._has_elimination = all(block[BLOCK_HEADER_SIZE] & 1 for block in blocks)
        sizes = np.array([header.payload_size for header in headers], np.int64)
        padded = -(-sizes // _PAYLOAD_ALIGNMENT) * _PAYLOAD_ALIGNMENT
        ends = np.cumsum(padded)
        offsets = np.arange(repeats)[:, None] * ends[-1] + (ends - padded)
        payloads = b"".join(
            block[BLOCK_HEADER_SIZE:].ljust(size, b"\0") for block, size in zip(blocks, padded.tolist(), strict=True)
        )
        self._count = len(blocks) * repeats
        self._payloads = cupy.asarray(np.frombuffer(payloads * repeats + bytes(_PADDING), np.uint8))
        self._offsets = cupy.asarray(offsets.ravel().astype(np.uint64))
        self._sizes = cupy.asarray(np.tile(sizes.astype(np.uint32), repeats))
        self._output_offsets = cupy.asarray(np.arange(self._count, dtype=np.uint64) * np.uint64(block_size))
        self._output_sizes = cupy.asarray(np.full(self._count, block_size, np.uint32))
        self.output = cupy.zeros(self._count * block_size + _PADDING, cupy.uint8)
        self._statuses = cupy.empty(self._count, cupy.uint8)
        self._next_block = cupy.zeros(1, cupy.uint32)
        self._counters = cupy.zeros(2 + _MAX_ROUNDS, cupy.uint64)
        self._words_of_bytes: list[cupy.ndarray] = []

    def allow(self, strategy: Strategy) -> bool:
        """Return whether the payloads obey the rule that a strategy relies on."""
        return self._has_elimination or strategy not in (Strategy.DE, Strategy.DE_BYTES)

    def decode(self, strategy: Strategy) -> None:
        """Queue the decoding of all blocks into `output` on the current stream; MRR_LAUNCHES also waits for its end."""
        arguments = (
            *(self._payloads, self._offsets, self._sizes, self.output, self._output_offsets, self._output_sizes),
            *(self._statuses, self._next_block, np.uint32(self._count)),
        )
        if strategy is Strategy.MRR_LAUNCHES:
            num_listed = cupy.zeros(self._count, cupy.uint32)
            self._launch(_load(self._codec, strategy), *arguments, self._words(0), num_listed)
            self._resolve_in_rounds(num_listed)
            return
        parents = (self._words(0),) if strategy is Strategy.JUMP else ()
        self._launch(_load(self._codec, strategy), *arguments, self._counters, *parents)

    def _launch(self, kernel: _Kernel, *arguments: object) -> None:
        """Launch a kernel whose warps take one block after another."""
        self._next_block.fill(0)
        grid = min(-(-self._count // _WARPS_PER_CTA), kernel.num_resident)
        kernel.function((grid,), (_THREADS_PER_CTA,), arguments, shared_mem=kernel.shared_bytes)

    def _resolve_in_rounds(self, num_listed: cupy.ndarray) -> None:
        """Copy all matches that are listed in the first words of bytes, with a kernel for each round."""
        num_others, num_waiting = cupy.empty_like(num_listed), cupy.ones(1, cupy.uint64)
        lists, other_lists = self._words(0), self._words(1)
        num_rounds = 0
        while int(num_waiting[0]):
            num_waiting.fill(0)
            self._launch(
                _load_rounds(), self.output, self._output_offsets, self._next_block, np.uint32(self._count), lists,
                num_listed, other_lists, num_others, num_waiting,
            )  # fmt: skip
            lists, other_lists, num_listed, num_others = other_lists, lists, num_others, num_listed
            num_rounds += 1
        self._counters[:2] = cupy.asarray([1, num_rounds], cupy.uint64)

    def _words(self, number: int) -> cupy.ndarray:
        """Returns memory of a word for each byte of output, which is allocated when it is first used."""
        while len(self._words_of_bytes) <= number:
            self._words_of_bytes.append(cupy.empty(len(self.output), cupy.uint32))
        return self._words_of_bytes[number]

    def count(self, strategy: Strategy) -> Rounds:
        """Decode once into cleared memory; return the counts of rounds.

        Rounds are counted by row; by block with JUMP; and for the whole batch with MRR_LAUNCHES.
        """
        self.output.fill(0)
        self._statuses.fill(255)
        self._counters.fill(0)
        self.decode(strategy)
        num_rows, num_rounds, *bytes_of_round = self._counters.get().tolist()
        return Rounds(num_rows, num_rounds, bytes_of_round)

    def all_decoded(self) -> bool:
        """Wait for the last decode; return whether every payload was valid."""
        return bool((self._statuses == int(BlockStatus.OK)).all())


@dataclass(frozen=True)
class _Kernel:
    """A kernel, its dynamic shared memory, and the number of its CTAs that can be resident at once."""

    function: cupy.RawKernel
    shared_bytes: int
    num_resident: int


@cache
def _load(codec: Codec, strategy: Strategy) -> _Kernel:
    """Returns the kernel of a strategy for the current device."""
    per_cta, per_warp = SHARED_BYTES["codec/decode_bit"] if codec is Codec.GOMPRESSO_BIT else (0, 0)
    shared_bytes = per_cta + _WARPS_PER_CTA * (per_warp + BYTES_PER_WARP)
    return _compile(_SOURCES[codec], f"{_PREFIXES[codec]}_{strategy.value}", shared_bytes)


@cache
def _load_rounds() -> _Kernel:
    """Returns the kernel of a round of MRR_LAUNCHES for the current device."""
    return _compile("match_rounds", "resolve_round", 0)


def _compile(source: str, name: str, shared_bytes: int) -> _Kernel:
    function = _module(source).get_function(name)
    function.max_dynamic_shared_size_bytes = shared_bytes
    per_multiprocessor = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        function.kernel.ptr, _THREADS_PER_CTA, shared_bytes
    )
    num_resident = max(int(per_multiprocessor), 1) * cupy.cuda.Device().attributes["MultiProcessorCount"]
    return _Kernel(function, shared_bytes, num_resident)


@cache
def _module(source: str) -> cupy.RawModule:
    options = (*compile_options(), f"-I{FOLDER}")
    return cupy.RawModule(code=read_source(source, FOLDER), options=options, backend="nvrtc")
