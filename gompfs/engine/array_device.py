"""What computes with arrays beside decoding: an array library and kernels of kernels/cuda."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = Any
"""An array of a device's library: `cupy.ndarray`, or in tests `numpy.ndarray`. Its mypy type is the library's."""


@dataclass(frozen=True)
class Tile:
    """What one CTA does of the items of a launch that has a CTA for each tile of them."""

    num_items: int
    num_threads: int
    shared_bytes: int = 0


class ArrayDevice(Protocol):
    """A device that computes with arrays. One thread at a time uses it, inside of `with`."""

    @property
    def name(self) -> str:
        """What it is, for people."""

    @property
    def memory(self) -> int:
        """How many bytes of its memory one computation may take."""

    @property
    def xp(self) -> Any:
        """The array library: what NumPy and CuPy have in common."""

    def upload(self, array: NDArray[Any]) -> Array:
        """A copy in the device's memory."""

    def download(self, array: Array, *, pinned: bool = False) -> NDArray[Any]:
        """A copy in the host's memory; waits for it.

        In pinned memory it takes a tenth of the time, but that is kept for later copies.
        """

    def launch(
        self,
        source: str,
        kernel: str,
        num_items: int,
        *arguments: object,
        one_cta: bool = False,
        tile: Tile | None = None,
    ) -> None:
        """Start a kernel of `kernels/cuda/SOURCE.cu`.

        It has threads for `num_items`, which take several each if there are many; or it is one CTA, as large as it
        may be; or it has a CTA for each `tile` of them. Arguments are arrays, each contiguous, and NumPy scalars;
        None is a null pointer.
        """

    def synchronize(self) -> None:
        """Wait for all that was started."""

    def __enter__(self) -> ArrayDevice:
        """Use it, alone."""

    def __exit__(self, *_: object) -> None:
        """Give its memory back."""


def as_argument(value: object) -> object:
    """A kernel's argument as launches take it: numbers of Python are 64 bits wide, None is a null pointer."""
    return np.uint64(value or 0) if value is None or isinstance(value, int) else value
