"""How much device memory it takes to open a head (kernels/codec/head.cuh)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from gompfs.codec.constants import (
    BIT_PADDING,
    HEAD_HEADER_SIZE,
    MAX_CLASS_BITS,
    MAX_HEAD_PAYLOAD,
    MAX_PART_SYMBOLS,
    MAX_POOL_SIZE,
    NUM_SUB_BLOCKS,
)

MAX_CLASSES = 64
FIELDS_SIZE = 16
START_SIZE = FIELDS_SIZE + MAX_CLASSES + (1 << MAX_CLASS_BITS)
"""The size of a TadocHead without its expansions and its pool."""

_COUNTS = struct.Struct("<7I8xH")  # five numbers of symbols, two sizes of token bytes, and the size of the codes
_CHUNK = 256  # the decoder of token bytes may read this far past their end


class HeadMemory(NamedTuple):
    """The number of symbols of a head, the size of the opened head (TadocHead), and the size of the workspace, in
    bytes."""

    num_symbols: int
    packed_size: int
    workspace_size: int


def head_memory(payload: memoryview, pool_size: int) -> HeadMemory | None:
    """Returns the memory that the head with this payload needs, or None if the head cannot be valid."""
    if not HEAD_HEADER_SIZE + BIT_PADDING <= len(payload) <= MAX_HEAD_PAYLOAD or not 0 < pool_size <= MAX_POOL_SIZE:
        return None
    *counts, content_size, stored_size, codes_size = _COUNTS.unpack_from(payload)
    num_splitters = payload[HEAD_HEADER_SIZE - 1]
    num_rules = counts[-1]
    num_tokens = sum(counts) - num_rules
    num_symbols = num_tokens + num_rules + num_splitters
    stream_size = len(payload) - HEAD_HEADER_SIZE - BIT_PADDING - stored_size - codes_size
    # a symbol has a class, tokens have a number more, rules two
    max_others = min(8 * stream_size - (num_symbols + num_tokens + 2 * num_rules), pool_size)
    if (
        not 0 < num_symbols < MAX_PART_SYMBOLS
        or num_splitters > 1
        or not stored_size <= content_size <= MAX_POOL_SIZE
        or max_others < 0
    ):
        return None
    num_rows = (max_others + num_rules) // NUM_SUB_BLOCKS + 2
    num_local_words, num_global_words, num_local_separators, num_global_separators, _ = counts
    num_words = (
        2 * num_local_words + num_global_words + num_local_separators + num_global_separators
        + num_symbols + num_tokens + 1 + 2 * num_rules + max_others + 3 * num_rows
    )  # fmt: skip
    copied = 0 if stored_size == content_size else content_size + _CHUNK
    workspace_size = 4 * num_words + _padded(copied) + _padded(num_symbols)
    return HeadMemory(num_symbols, START_SIZE + 8 * num_symbols + pool_size, workspace_size)


def _padded(size: int) -> int:
    return -(-size // 4) * 4
