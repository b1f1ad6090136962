"""Many files, or ranges of them, as one array of bytes, in host memory or in that of a GPU; and buffers."""

from __future__ import annotations

from gompfs.arrays.buffers import BufferCodec
from gompfs.arrays.reader import ArrayReader
from gompfs.arrays.result import Arrays

__all__ = ["ArrayReader", "Arrays", "BufferCodec"]
