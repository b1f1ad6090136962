"""The headers of many blocks at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gompfs import _codec
from gompfs.codec.block import Buffer

_FACTS = np.dtype(
    [("status", "<u4"), ("codec", "<u4"), ("payload_size", "<u4"), ("uncompressed_size", "<u4"), ("checksum", "<u8")]
)


def read_headers(blocks: Sequence[Buffer]) -> NDArray[np.void]:
    """A record for each block: status (BlockStatus; BAD_HEADER also where the block has not the size that its header
    says), codec, payload_size and uncompressed_size in bytes (0 where there is no header), and the checksum of its
    compressed bytes, which is not compared with them here.
    """
    return np.frombuffer(_codec.read_headers(blocks), _FACTS)
