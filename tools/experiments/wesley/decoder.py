"""Decodes triples on a device, in the phases of the thesis."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gompfs.gpu.arrays import Array, ArrayDevice

from .serial import BadTriplesError

_SOURCE = str(Path(__file__).parents[1] / "kernels" / "triples_decode")


def decode(device: ArrayDevice, triples: Array, size: int) -> Array:
    """Returns the text of `size` bytes that triples stand for; both are bytes on the device.

    Raises BadTriplesError as `serial.decode` does, but for a number of triples that `serial.split` would refuse.

    1. Each triple says how many bytes it stands for. 2. A prefix sum tells where they begin. 3. Each byte gets a
    parent: its source, or a root for its value. 4. Each byte follows the parents to its root.
    """
    xp, count = device.xp, triples.size // 3
    sizes = xp.empty(count, np.uint32)
    device.launch(_SOURCE, "measure_triples", count, triples, count, sizes)
    ends = xp.cumsum(sizes, dtype=np.uint64)
    parents, text, num_bad = xp.empty(size, np.uint32), xp.empty(size, np.uint8), xp.zeros(1, np.uint32)
    device.launch(_SOURCE, "write_parents", count, triples, ends, count, size, parents, num_bad)
    total = int(ends[-1]) if count else 0
    may_be_longer = bool(count) and not int(triples[-3])
    if int(num_bad[0]) or not size <= total <= size + may_be_longer:
        raise BadTriplesError("the triples do not stand for a text of that size")
    device.launch(_SOURCE, "find_roots", size, parents, size, text)
    return text
