"""The interface of a device that decodes blocks into its own memory and computes with the decoded text there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gompfs.codec.block import Buffer
from gompfs.gpu.arrays import Array, ArrayDevice


class TextDevice(ArrayDevice, Protocol):
    """An ArrayDevice that also decodes blocks."""

    def decode_blocks(self, blocks: Sequence[Buffer]) -> tuple[Array, NDArray[np.uint64], NDArray[np.uint8]]:
        """Decodes whole blocks into an array in device memory.

        Returns that array (uint8), the offset of each block in it, and a BlockStatus per block. Bytes of the array that
        belong to no block are undefined. A block begins directly after the block before it if that has a multiple of 32
        bytes, else at the next multiple of 32.

        Raises MemoryError if the device has too little memory.
        """
