"""What decodes blocks into its own memory, and computes with their content there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gompfs.codec.block import Buffer
from gompfs.engine.array_device import Array, ArrayDevice


class TextDevice(ArrayDevice, Protocol):
    """An ArrayDevice that decodes blocks too."""

    def decode_blocks(self, blocks: Sequence[Buffer]) -> tuple[Array, NDArray[np.uint64], NDArray[np.uint8]]:
        """Decode whole blocks into an array of the device (uint8).

        Gives it, the place of each block there, and a BlockStatus for each; other bytes mean nothing. A block comes
        right behind the one before, if that has a multiple of 32 bytes. Raises MemoryError.
        """
