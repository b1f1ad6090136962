"""The interfaces of devices: one computes with arrays, by an array library and kernels; one also decodes blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gompfs.gpu.decode.block_source import BlockSource

Array = Any
"""An array of the device's library: `cupy.ndarray`, or `numpy.ndarray` in tests."""


@dataclass(frozen=True)
class Tile:
    """The work of one CTA in a launch that has one CTA per tile of items.

    `shared_bytes` is its dynamic shared memory.
    """

    num_items: int
    num_threads: int
    shared_bytes: int = 0


class ArrayDevice(Protocol):
    """A device that computes with arrays. Use it as a context manager; one thread at a time can be inside."""

    @property
    def name(self) -> str:
        """The device's name, as text for users."""

    @property
    def memory(self) -> int:
        """The bytes of device memory that one computation may use."""

    @property
    def shared_memory(self) -> int:
        """The most shared memory of a CTA, in bytes."""

    @property
    def xp(self) -> Any:
        """The array library, restricted to what NumPy and CuPy have in common."""

    def upload(self, array: NDArray[Any]) -> Array:
        """Returns a copy in device memory."""

    def download(self, array: Array, *, pinned: bool = False) -> NDArray[Any]:
        """Returns a copy in host memory. Waits until the copy is complete.

        A copy to `pinned` memory takes a tenth of the time, but CuPy keeps that memory for later copies.
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
        """Starts a kernel of `kernels/SOURCE.cu`, or of SOURCE.cu if `source` is an absolute path.

        - By default the kernel has a thread per item. If there are many items, each thread processes several.
        - With `one_cta`, it is a single CTA of the maximum size.
        - With `tile`, it has one CTA per `tile.num_items` items.

        Arguments are contiguous arrays and NumPy scalars. None is passed as a null pointer, and a Python integer as 64
        bits.
        """

    def reserve(self, num_bytes: int) -> None:
        """Lets arrays of this size stay on the device besides `memory`, or no longer if it is negative."""

    def synchronize(self) -> None:
        """Waits for everything that was started."""

    def __enter__(self) -> ArrayDevice:
        """Waits until no other thread uses the device, and reserves it for this thread."""

    def __exit__(self, *_: object) -> None:
        """Frees the device memory and lets other threads use the device."""


class DecodedText(NamedTuple):
    """Blocks in an array on the device (uint8), and the offset of each.

    Bytes of the array that belong to no block are undefined, and so are those of damaged blocks. A block begins
    directly after the block before it if that has a multiple of 32 bytes, else at the next multiple of 32.
    """

    text: Array
    offsets: NDArray[np.uint64]
    statuses: Callable[[], NDArray[np.uint8]]
    """Waits for the device, and returns a BlockStatus for each block."""


class TextDecoder(Protocol):
    """Decodes blocks of one source into the memory of a device."""

    def decode(self, numbers: NDArray[np.uint64]) -> DecodedText:
        """Queues the decoding of blocks by ascending numbers; threads of the host read and check them.

        Payloads that stay in device memory are not read again. Raises errors of reading, MemoryError if the device has
        too little memory for the text, and EngineUnavailableError if it has too little for decoding.
        """


class TextDevice(ArrayDevice, Protocol):
    """An ArrayDevice that also decodes blocks."""

    def decoder(self, source: BlockSource) -> TextDecoder:
        """Returns a decoder for blocks of `source`. It is used by one thread at a time."""


def as_argument(value: object) -> object:
    """Converts an argument of a launch: a Python integer becomes 64 bits wide, None becomes a null pointer."""
    return np.uint64(value or 0) if value is None or isinstance(value, int) else value
