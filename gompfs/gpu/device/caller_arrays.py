"""Memory and streams that callers of the Python interface use, of whatever library for arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
from numpy.typing import NDArray


class _StreamAt(NamedTuple):
    """The address of a stream, for libraries that know the protocol."""

    address: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


def as_stream(stream: Any, number: int) -> cupy.cuda.Stream:
    """Returns a stream of CuPy for one of another library, or for the address of one, on the CUDA device `number`.

    A stream is an object with `ptr` (CuPy), `cuda_stream` (PyTorch) or `__cuda_stream__` (others). None is the current
    stream of CuPy there. Raises TypeError for another object.
    """
    if stream is None:
        return cupy.cuda.get_current_stream(number)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        address = (protocol() if callable(protocol) else protocol)[1]
    else:
        address = getattr(stream, "ptr", getattr(stream, "cuda_stream", stream))
    if not isinstance(address, int):
        raise TypeError(f"not a CUDA stream: {stream!r}")
    if hasattr(cupy.cuda.Stream, "from_external"):  # since CuPy 14, which warns of ExternalStream
        return cupy.cuda.Stream.from_external(_StreamAt(address))
    return cupy.cuda.ExternalStream(address)


def as_bytes(out: Any, number: int) -> cupy.ndarray:
    """Returns the memory of an array on the CUDA device `number` as an array of bytes, without a copy.

    Raises ValueError if it is not contiguous or on another device, and TypeError for another object.
    """
    if not hasattr(out, "__cuda_array_interface__"):
        raise TypeError(f"an array on a CUDA device is needed, not {type(out).__name__}")
    with cupy.cuda.Device(number):
        array = cupy.asarray(out)
    if int(array.device.id) != number:
        raise ValueError(f"the array is on the CUDA device {array.device.id}, not on {number}")
    if not array.flags.c_contiguous:
        raise ValueError("the buffer must be contiguous")
    return array.reshape(-1).view(cupy.uint8)


def allocate(size: int, number: int, stream: cupy.cuda.Stream) -> cupy.ndarray:
    """Returns `size` bytes on the CUDA device `number`, for use on `stream`. Raises MemoryError."""
    with cupy.cuda.Device(number), stream:
        return cupy.empty(size, cupy.uint8)


def download(array: Any) -> NDArray[Any]:
    """Returns a copy of an array on any CUDA device in host memory, as bytes. Raises ValueError if not contiguous."""
    on_device = cupy.asarray(array)
    if not on_device.flags.c_contiguous:
        raise ValueError("the buffer must be contiguous")
    copy: NDArray[Any] = on_device.reshape(-1).view(cupy.uint8).get()
    return copy
