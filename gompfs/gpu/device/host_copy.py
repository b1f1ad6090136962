"""Copies between pinned memory, which a GPU reads and writes directly, and other memory of the host."""

from __future__ import annotations

import numpy as np

from gompfs._native.gpu import copy_runs
from gompfs.codec.block import Buffer


def copy_bytes(source: Buffer, target: Buffer, num_threads: int) -> None:
    """Copies all bytes of `source` to the start of `target`, on up to `num_threads` threads of the host."""
    zero, size = np.zeros(1, np.uint64), np.array([memoryview(source).nbytes], np.uint64)
    copy_runs(source, target, zero, zero, size, num_threads)
