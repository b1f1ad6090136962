"""The result of `read_many`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gompfs.gpu.device.arrays import Array


class Arrays:
    """Files, or ranges of files, one after another in one array of bytes.

    `data` is that array: of NumPy, or of CuPy on a GPU. Item i is `data[offsets[i] : offsets[i + 1]]`, which is what
    indexing returns, without a copy. `offsets` is a NumPy array (int64) of one more element than there are items.

    Other libraries take the whole as an array without a copy: `numpy.asarray`, `torch.as_tensor`, `cupy.asarray`, or
    `from_dlpack` of any of them.
    """

    def __init__(
        self,
        data: Array,
        offsets: NDArray[np.int64],
        device: str = "cpu",
        wait: Callable[[], None] | None = None,
        stream: AbstractContextManager[Any] | None = None,
    ) -> None:
        """`wait` waits for the data of a GPU, and raises an error if some are damaged.

        They are complete for work on `stream`, a stream of CuPy.
        """
        self.data = data
        self.offsets = offsets
        self.device = device
        """Where the data are: `cpu`, or `cuda:0` for the CUDA device 0."""
        self._wait = wait
        self._on_stream = nullcontext() if stream is None else stream

    def wait(self) -> Arrays:
        """Wait until the data are complete, and return this object. Raises CorruptBlockError.

        Needed only after `read_many` with a stream: other calls wait.
        """
        if self._wait is not None:
            self._wait()
        return self

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, index: int) -> Array:
        """Returns the bytes of one item, as a view."""
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} items, not one of number {index}")
        return self.data[self.offsets[number] : self.offsets[number + 1]]

    def __iter__(self) -> Iterator[Array]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} items, {self.offsets[-1]} bytes, {self.device}>"

    def __dlpack__(self, **arguments: Any) -> Any:
        with self._on_stream:  # the consumer's stream will wait for it
            return self.data.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.data.__dlpack_device__()
        return device

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = self.data.__array_interface__  # arrays of CuPy have none
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        with self._on_stream:  # it is part of the interface
            interface: dict[str, Any] = self.data.__cuda_array_interface__  # arrays of NumPy have none
        return interface
