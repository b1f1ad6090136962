"""Reads the headers of many blocks at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs._native.text import SymbolTable
from gompfs.codec.block import Buffer
from gompfs.codec.stored_head import StoredHead

FACTS = np.dtype(
    [("status", "<u4"), ("codec", "<u4"), ("payload_size", "<u4"), ("uncompressed_size", "<u4"),
     ("content_xxh3", "<u8"), ("block_xxh3", "<u8")]
)  # fmt: skip
"""What the header of a block says (BlockFacts in native/codec/block_batch.h)."""


def read_headers(
    blocks: Sequence[Buffer], symbols: Sequence[SymbolTable | StoredHead | None] | None = None
) -> NDArray[np.void]:
    """Returns one record of FACTS per block:

    - status: a BlockStatus. It is BAD_HEADER also if the block's size differs from the size in its header, for a block
      of gompresso-tadoc without the symbols of its part, for one of gompresso-bit-dictionary without its dictionary,
      and for a block of another codec with them, unless it is a stored one with a dictionary.
    - codec, payload_size, uncompressed_size: sizes in bytes; 0 if there is no valid header.
    - content_xxh3, block_xxh3: the checksums in the header. This function does not compare them with the block.
    """
    return np.frombuffer(_codec.read_headers(blocks, symbols), FACTS)
