"""Copies to and from pinned memory (native/gpu). The GIL is released."""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def copy_runs(
    source: Buffer,
    target: Buffer,
    source_offsets: NDArray[np.uint64],
    target_offsets: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
    num_threads: int,
) -> None:
    """Copies runs of bytes from `source` to `target` on several threads. All three columns are in bytes.

    The runs must not overlap in the target. Raises ValueError, before anything is copied, if a run is not inside both.
    """
