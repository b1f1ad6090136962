"""Buffers and arrays of callers, and the names of devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gompfs.errors import OptionError

if TYPE_CHECKING:
    from gompfs.gpu.device.arrays import Array


def device_number(device: str) -> int | None:
    """Returns the number of a CUDA device, or None for `cpu`. Raises OptionError for another name."""
    if device == "cpu":
        return None
    found = re.fullmatch("cuda(?::([0-9]+))?", device, re.ASCII)
    if found is None:
        raise OptionError(f"unknown device {device!r}; use cpu, cuda or cuda:NUMBER")
    return int(found[1] or 0)


def host_memory(out: Any, size: int) -> NDArray[np.uint8]:
    """Returns the first `size` bytes of a buffer to write to: a NumPy array, a tensor, or an object with a buffer.

    Raises ValueError if it is read-only, not contiguous or too small, and TypeError if it is not a buffer.
    """
    array = _as_array(out)
    if not array.flags.writeable or not array.flags.c_contiguous:
        raise ValueError("the buffer must be writable and contiguous")
    if array.nbytes < size:
        raise ValueError(f"the buffer has {array.nbytes} bytes, the content has {size}")
    return array.reshape(-1).view(np.uint8)[:size]


def device_memory(out: Any, number: int, size: int) -> Array:
    """Returns the first `size` bytes of an array on the CUDA device `number` to write to.

    Raises ValueError if it is on another device, not contiguous or too small, TypeError if it is on none.
    """
    from gompfs.gpu.device.caller_arrays import as_bytes

    memory = as_bytes(out, number)
    if memory.size < size:
        raise ValueError(f"the buffer has {memory.size} bytes, the content has {size}")
    return memory[:size]


def host_bytes(data: Any) -> memoryview:
    """Returns the bytes of a contiguous buffer or array; without a copy, unless it is on a GPU.

    Raises ValueError if it is not contiguous, TypeError if it is no buffer.
    """
    if hasattr(data, "__cuda_array_interface__"):
        from gompfs.gpu.device.caller_arrays import download

        return download(data).data
    array = _as_array(data)
    if not array.flags.c_contiguous:
        raise ValueError("the buffer must be contiguous")
    return array.reshape(-1).view(np.uint8).data


def _as_array(buffer: Any) -> NDArray[Any]:
    """Returns an array with the memory of a buffer."""
    if hasattr(buffer, "__array_interface__") or hasattr(buffer, "__array__"):
        return np.asarray(buffer)
    return np.frombuffer(buffer, np.uint8)
