"""How a batch of blocks is divided among several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.spread import cut_evenly

if TYPE_CHECKING:
    from gompfs.gpu.decode.device import Device

LEAST_SHARE = 8 << 20
"""A device gets no share of fewer bytes of output, which would take it as long as this many."""


def share_blocks(
    facts: NDArray[np.void], sizes: NDArray[np.unsignedinteger], devices: Sequence[Device], next_device: Device
) -> list[tuple[Device, NDArray[np.intp]]]:
    """Divides a batch of blocks, given by records of FACTS and sizes. Returns the indexes that each device decodes.

    A block whose payload stays on a device is decoded there. The others are cut into runs of equal size, one for each
    device; if they are too few for that, `next_device` gets them.
    """
    if len(devices) == 1:
        return [(devices[0], np.arange(facts.size))]
    owners = np.full(facts.size, -1, np.int64)
    for number, device in enumerate(devices):
        owners[(owners < 0) & (device.store.find(facts) != 0)] = number
    left = np.flatnonzero(owners < 0)
    if int(sizes[left].sum()) < LEAST_SHARE * len(devices):
        owners[left] = devices.index(next_device)
    else:
        for number, run in enumerate(cut_evenly(sizes[left], len(devices))):
            owners[left[run]] = number
    shares = ((device, np.flatnonzero(owners == number)) for number, device in enumerate(devices))
    return [(device, indexes) for device, indexes in shares if indexes.size]


def share_stripes(numbers: NDArray[np.uint64], block_size: int, num_devices: int) -> list[tuple[int, NDArray[np.intp]]]:
    """Divides a batch of an archive's blocks by their numbers. Returns the number of each device, and its indexes.

    A block always belongs to the same device, so that its payload and the head of its part stay there. So do the
    blocks of LEAST_SHARE bytes of the stream.
    """
    if num_devices == 1:
        return [(0, np.arange(numbers.size))]
    owners = numbers // np.uint64(max(LEAST_SHARE // block_size, 1)) % np.uint64(num_devices)
    shares = ((number, np.flatnonzero(owners == number)) for number in range(num_devices))
    return [(number, indexes) for number, indexes in shares if indexes.size]
