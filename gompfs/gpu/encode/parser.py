"""Parses blocks on a device: runs the kernels of kernels/encode that cut blocks into sequences.

The sequences equal those of the CPU (`gompfs._native.codec.parse_sequences`): at all levels of gompresso-bit, and at 1
to 5 of gompresso-byte, without dependency elimination.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gompfs._native.codec import ParserSettings
from gompfs.codec import Codec, CodecOptions
from gompfs.gpu.device.arrays import Array, ArrayDevice, Tile
from gompfs.gpu.encode.backward_parser import BackwardBatch, parse_backwards

_MAX_NARROW_BLOCK = 1 << 16  # these, as in kernels/shared/match_costs.h
_NARROW_HASH_BITS = 16
_WIDE_HASH_BITS = 17
_SHORT_HASH_BITS = 15
LINK_THREADS = 256
LINK_CLAIMS = 8192  # shared memory of link_positions besides a table, in bytes
_TABLE_BYTES = 1 << 16  # of the part of a hash table that one CTA of link_positions has
TEXT_PADDING = 32  # as in find_matches.cu
_ITEMS_ALIGNED = 8  # as in parse_batch.cuh
SUM_TILE = Tile(1, num_threads=256, shared_bytes=9264)
FIND_THREADS = 1024
QUEUE_BYTES = 1024  # of a warp of find_matches
_WIDE_FIND_THREADS = 256
SEGMENT_THREADS = 512  # these three, as in walk_segments.cu
SEGMENT_BYTES = 16
SEGMENT_BYTES_PER_CTA = 128
_LEAST_SEGMENT = 128  # walks need some 30 bytes to meet
_MORE_STEPS = 16  # that a walk can store after its segment


class ParsedBlocks(NamedTuple):
    """The sequences of a batch of blocks, in device memory."""

    sequences: Array
    """uint64, as kernels/shared/packed_sequence.h packs them: those of block i begin at i * max_sequences."""
    num_sequences: Array
    """uint32, a number for each block."""
    max_sequences: int


def can_parse(options: CodecOptions) -> bool:
    """Returns whether `Parser` has the parser of this codec and level."""
    if options.dependency_elimination or options.strict_sources:
        return False
    if options.codec is not Codec.GOMPRESSO_BYTE:
        return options.codec is Codec.GOMPRESSO_BIT
    return ParserSettings(options.codec, options.level).backward_chain_length == 0


def most_sequences(block_size: int, codec: Codec) -> int:
    """Returns the largest number of sequences that a block can have.

    A sequence with a match stands for at least 3 bytes (gompresso-byte: 4), and a sequence without a match for more,
    unless it is the last sequence of the block.
    """
    return block_size // ParserSettings(codec, 1).min_match_length + 1


class Parser:
    """Parses blocks with the kernels of one device."""

    def __init__(self, device: ArrayDevice) -> None:
        """Uses `device`, which must be entered for each call of `parse`."""
        self._device = device

    def parse(self, content: Array, content_size: int, block_size: int, options: CodecOptions) -> ParsedBlocks:
        """Cuts content into blocks of `block_size` bytes (the last may be shorter), and each block into sequences.

        `content` (uint8, in device memory) has at least 32 bytes more than `content_size`, and its address is a
        multiple of 16. `block_size` is a multiple of 16 if there are several blocks, and at most 1 MiB. Needs 7 to 21
        bytes of device memory for each byte of content, and up to 77 to parse backwards.
        """
        return _Batch(self._device, content, content_size, block_size, options).run()


def _find_bytes(num_threads: int) -> int:
    """Returns the shared memory of a CTA of find_matches, without the text and the links."""
    return 16 + num_threads // 32 * QUEUE_BYTES


class _Batch:
    """The arrays of a batch of blocks."""

    def __init__(
        self, device: ArrayDevice, content: Array, content_size: int, block_size: int, options: CodecOptions
    ) -> None:
        self._device = device
        self._xp = device.xp
        self._options = options
        self._settings = ParserSettings(options.codec, options.level)
        self._is_bit = options.codec is Codec.GOMPRESSO_BIT
        self._is_backward = self._settings.backward_chain_length != 0
        self._finds_short = self._is_bit and self._settings.finds_short
        self._content = (content, np.uint64(content_size), np.uint32(block_size))
        self._block_size = block_size
        self._num_blocks = -(-content_size // block_size)
        self._num_items = self._num_blocks * (block_size // _ITEMS_ALIGNED + 1) * _ITEMS_ALIGNED
        find_bytes = -(-block_size // 16) * 48 + TEXT_PADDING + _find_bytes(FIND_THREADS)
        self._is_narrow = block_size <= _MAX_NARROW_BLOCK and find_bytes <= device.shared_memory
        self._kind = "narrow" if self._is_narrow else "wide"
        self._find_tile = (
            Tile(1, FIND_THREADS, find_bytes)
            if self._is_narrow
            else Tile(1, _WIDE_FIND_THREADS, _find_bytes(_WIDE_FIND_THREADS))
        )

    def run(self) -> ParsedBlocks:
        """Runs the kernels one after another."""
        sums = self._sum_costs()
        links, short_links = self._link()
        if self._is_backward:
            matches = self._find(links, short_links, sums)
            return self._search_backwards(links, short_links, sums, matches)
        return self._walk_segments(links, short_links, sums)

    def _empty(self, is_used: bool, dtype: type[np.unsignedinteger]) -> Array:
        """Returns an array with an item for each position, or none if it is not used."""
        return self._xp.empty(self._num_items if is_used else 1, dtype)

    def _no_sequences(self) -> ParsedBlocks:
        """Returns memory for the sequences of all blocks."""
        max_sequences = most_sequences(self._block_size, self._options.codec)
        sequences = self._xp.empty(self._num_blocks * max_sequences, np.uint64)
        return ParsedBlocks(sequences, self._xp.empty(self._num_blocks, np.uint32), max_sequences)

    def _launch(self, source: str, kernel: str, num_ctas: int, tile: Tile, *arguments: object) -> None:
        self._device.launch(f"encode/{source}", kernel, num_ctas, *arguments, tile=tile)

    def _sum_costs(self) -> Array:
        sums = self._empty(self._is_bit, np.uint16)
        if self._is_bit:
            self._launch("sum_literal_costs", "sum_literal_costs", self._num_blocks, SUM_TILE, *self._content, sums)
        return sums

    def _link(self) -> tuple[Array, Array]:
        dtype = np.uint16 if self._is_narrow else np.uint32
        links, short_links = self._empty(True, dtype), self._empty(self._finds_short, dtype)
        hash_bits = _NARROW_HASH_BITS if self._block_size <= _MAX_NARROW_BLOCK else _WIDE_HASH_BITS
        table_bytes = min(_TABLE_BYTES, self._device.shared_memory - LINK_CLAIMS)
        table_bits = (table_bytes // np.dtype(dtype).itemsize).bit_length() - 1
        num_tables = 1 << max(hash_bits - table_bits, 0)
        num_short_tables = 1 << max(_SHORT_HASH_BITS - table_bits, 0) if self._finds_short else 0
        num_ctas = self._num_blocks * (num_tables + num_short_tables)
        tile = Tile(1, LINK_THREADS, LINK_CLAIMS + (np.dtype(dtype).itemsize << table_bits))
        shape = map(np.uint32, (num_tables, num_short_tables, table_bits))
        self._launch("link_positions", f"link_{self._kind}", num_ctas, tile, *self._content, *shape, links, short_links)
        return links, short_links

    def _find(self, links: Array, short_links: Array, sums: Array) -> Array:
        matches = self._empty(True, np.uint64)
        settings = self._settings
        effort = (settings.backward_chain_length, settings.backward_nice_length)
        rules = map(np.uint32, (*effort, settings.max_match_length, settings.max_match_offset))
        self._launch(
            *("find_matches", f"find_matches_{self._kind}", self._num_blocks, self._find_tile, *self._content),
            *(links, short_links, sums, *rules, matches),
        )
        return matches

    def _search_backwards(self, links: Array, short_links: Array, sums: Array, matches: Array) -> ParsedBlocks:
        parsed = self._no_sequences()
        parse_backwards(self._device, BackwardBatch(self._content, links, short_links, sums, matches, *parsed))
        return parsed

    def _walk_segments(self, links: Array, short_links: Array, sums: Array) -> ParsedBlocks:
        parsed = self._no_sequences()
        num_threads = min(max(self._block_size // _LEAST_SEGMENT // 32, 1) * 32, SEGMENT_THREADS)
        segment_size = -(-self._block_size // num_threads)
        steps_per_segment = segment_size // self._settings.min_match_length + _MORE_STEPS
        steps = self._xp.empty(self._num_blocks * num_threads * steps_per_segment, np.uint64)
        shared_bytes = SEGMENT_BYTES_PER_CTA + SEGMENT_BYTES * num_threads
        if self._is_narrow:
            shared_bytes += -(-self._block_size // 16) * 16 + TEXT_PADDING
        tile = Tile(1, num_threads, shared_bytes)
        kernel = f"walk_segments_{self._kind}"
        numbers = map(np.uint32, (parsed.max_sequences, steps_per_segment))
        self._launch(
            *("walk_segments", kernel, self._num_blocks, tile, *self._content, links, short_links, sums),
            *(self._walk_settings(), np.uint32(self._is_bit), parsed.sequences, parsed.num_sequences, steps, *numbers),
        )
        return parsed

    def _walk_settings(self) -> Array:
        """Returns WalkSettings of position_walk.cuh."""
        settings = self._settings
        fields = (
            *(settings.chain_length, settings.nice_length, settings.max_match_length, settings.max_match_offset),
            *(self._finds_short, settings.lazy_steps, settings.skips, settings.max_literal_length),
            settings.later_ends_later,
        )
        return self._device.upload(np.array(fields, np.uint32))
