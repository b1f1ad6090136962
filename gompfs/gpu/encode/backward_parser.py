"""Parses blocks backwards on a device, as native/codec/parse/bit_backward_parser.cpp does: gompresso-bit at level 8."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gompfs.codec.constants import NUM_LITERAL_SYMBOLS, NUM_OFFSET_SYMBOLS, NUM_TOKEN_SYMBOLS
from gompfs.gpu.device.arrays import Array, ArrayDevice, Tile
from gompfs.gpu.device.kernel_sources import SHARED_BYTES

NUM_SEGMENTS = 32  # these, as in kernels/shared/ways.h
NUM_PASSES = 3
_NUM_SYMBOLS = NUM_LITERAL_SYMBOLS + NUM_TOKEN_SYMBOLS + NUM_OFFSET_SYMBOLS
_CANDIDATE_THREADS = 256
_CANDIDATES_PER_THREAD = 8
COST_TILE = Tile(1, 128, SHARED_BYTES["encode/encode_bit"][0])
WAY_WARPS = 4
WAY_BYTES = 13904  # of shared memory, for each warp of find_ways
WAY_TILE = Tile(WAY_WARPS, 32 * WAY_WARPS, WAY_WARPS * WAY_BYTES)
FOLLOW_TILE = Tile(4, 128)


@dataclass(frozen=True)
class BackwardBatch:
    """The blocks of a batch, and the links and costs of their positions (see gompfs/gpu/encode/parser.py)."""

    content: tuple[Array, np.uint64, np.uint32]
    """The content, its size, and the size of a block."""
    links: Array
    short_links: Array
    sums: Array
    matches: Array
    """The best matches. They are overwritten."""
    sequences: Array
    num_sequences: Array
    max_sequences: int


def parse_backwards(device: ArrayDevice, batch: BackwardBatch) -> None:
    """Writes the sequences of all blocks. Needs 56 bytes of device memory for each byte of content."""
    _Search(device, batch).run()


class _Search:
    """The arrays of a search for the cheapest ways."""

    def __init__(self, device: ArrayDevice, batch: BackwardBatch) -> None:
        self._device = device
        self._batch = batch
        _, content_size, block_size = batch.content
        self._num_blocks = -(-int(content_size) // int(block_size))
        self._block_size = int(block_size)
        empty = device.xp.empty
        num_ways = self._num_blocks * -(-self._block_size // NUM_SEGMENTS) * NUM_SEGMENTS
        num_items = batch.matches.size
        self._candidates = empty(4 * num_items, np.uint32)
        self._choices = empty(8 * num_items, np.uint16)
        self._symbol_costs = empty(self._num_blocks * _NUM_SYMBOLS, np.uint16)
        self._ways = [(empty(num_ways, np.int32), empty(num_ways, np.uint64)) for _ in range(2)]

    def run(self) -> None:
        """Searches all blocks several times, with costs from the sequences found before."""
        self._find_candidates()
        for number in range(NUM_PASSES):
            self._estimate_costs(is_first=number == 0)
            self._find_ways(number)
            self._follow(number)

    def _launch(self, kernel: str, tile: Tile, *arguments: object, source: str | None = None, each: int = 1) -> None:
        source = f"encode/{source or kernel}"
        self._device.launch(source, kernel, self._num_blocks * each, *arguments, tile=tile)

    def _find_candidates(self) -> None:
        batch = self._batch
        kind = "narrow" if batch.links.dtype == np.uint16 else "wide"
        num_parts = -(-self._block_size // (_CANDIDATE_THREADS * _CANDIDATES_PER_THREAD))
        self._launch(
            *(f"find_candidates_{kind}", Tile(1, _CANDIDATE_THREADS), *batch.content, batch.links, batch.short_links),
            *(batch.matches, np.uint32(num_parts), self._candidates),
            source="find_candidates",
            each=num_parts,
        )

    def _estimate_costs(self, *, is_first: bool) -> None:
        batch = self._batch
        content, content_size, block_size = batch.content
        literals = batch.matches.view(np.uint8)  # working memory
        self._launch(
            *("estimate_way_costs", COST_TILE, content, content_size, batch.sequences, batch.num_sequences, literals),
            *(batch.sums, block_size, np.uint32(batch.max_sequences), np.uint32(is_first), self._symbol_costs),
        )

    def _find_ways(self, number: int) -> None:
        before, ways = self._ways[(number + 1) % 2], self._ways[number % 2]
        self._launch(
            *("find_ways", WAY_TILE, *self._batch.content, self._candidates, self._symbol_costs),
            *(*before, *ways, np.uint32(number == 0), self._choices),
        )

    def _follow(self, number: int) -> None:
        batch = self._batch
        _, content_size, block_size = batch.content
        _, repeats = self._ways[number % 2]
        self._launch(
            *("follow_ways", FOLLOW_TILE, content_size, block_size, self._choices, self._candidates, repeats),
            *(batch.sequences, batch.num_sequences, np.uint32(batch.max_sequences)),
        )
