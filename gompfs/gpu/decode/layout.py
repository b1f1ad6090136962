"""How blocks are laid out in memory, and cut into slices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PAYLOAD_ALIGNMENT = 16
OUTPUT_ALIGNMENT = 32


def lay_out(sizes: NDArray[np.integer], alignment: int) -> tuple[NDArray[np.uint64], int]:
    """Returns offsets for pieces of these sizes in a row, each at a multiple of `alignment`, and the total size."""
    padded = -(-sizes.astype(np.int64) // alignment) * alignment
    ends = np.cumsum(padded)
    return (ends - padded).astype(np.uint64), int(ends[-1]) if ends.size else 0


def slice_ends(total: int, slice_bytes: int, first_bytes: int) -> NDArray[np.uint64]:
    """Returns where the slices end when `total` bytes of output are cut.

    If they fit in `slice_bytes`, there is one slice. Otherwise the first has `first_bytes`, and each other is twice as
    large as the one before, up to `slice_bytes`.
    """
    size = slice_bytes if total <= slice_bytes else min(first_bytes, slice_bytes)
    ends = [size]
    while ends[-1] < total:
        size = min(2 * size, slice_bytes)
        ends.append(ends[-1] + size)
    return np.array(ends, np.uint64)
