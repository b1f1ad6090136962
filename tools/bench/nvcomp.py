"""Runs the codecs of nvCOMP through its C interface: batches of blocks, device memory to device memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import cupy
import numpy as np

PACKAGE = "nvidia-libnvcomp-cu13"
PEERS = (("LZ4", 0), ("Snappy", 0), ("Gdeflate", 1), ("Gdeflate", 5), ("Deflate", 5), ("Zstd", 0))
"""The codecs that are measured beside ours, with their levels; 0 for a codec without levels."""


class _Options(ctypes.Structure):
    """The options of any codec, passed by value: 64 bytes that begin with the level, if the codec has levels."""

    _fields_ = (("level", ctypes.c_int), ("reserved", ctypes.c_char * 60))


class NvcompError(RuntimeError):
    """nvCOMP refused a call, or failed to compress or decode a block."""


def load_library() -> ctypes.CDLL | None:
    """Returns libnvcomp from its Python package; None if the package is not installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    path = next(file.locate() for file in files if file.name.startswith("libnvcomp.so"))
    return ctypes.CDLL(str(path))


def version() -> str:
    """Returns the version of the package."""
    return metadata.version(PACKAGE)


def label(codec: str, level: int) -> str:
    """Returns the name of a codec for tables."""
    return f"nvCOMP {codec}" + (f" {level}" if level else "")


class NvcompBatch:
    """Blocks of one size, compressed with one codec, that stay on the device; `repeats` copies of each are decoded.

    `compress` compresses the blocks again, without the copies.
    """

    def __init__(self, library: ctypes.CDLL, codec: str, level: int, blocks: Sequence[bytes], repeats: int = 1) -> None:
        """Compress `blocks` with a codec named as in nvCOMP, such as LZ4 or Gdeflate. Raises NvcompError."""
        self._library = library
        self._codec = codec
        self._sizes = cupy.asarray([len(block) for block in blocks], cupy.uint64)
        self._block_size = max(map(len, blocks))
        self._count = len(blocks)
        content = cupy.asarray(
            np.frombuffer(b"".join(block.ljust(self._block_size, b"\0") for block in blocks), np.uint8)
        )
        room = ctypes.c_size_t()
        options = self._compress_options = _Options(level)
        self._call("CompressGetMaxOutputChunkSize", ctypes.c_size_t(self._block_size), options, ctypes.byref(room))
        stride = -(-room.value // 16) * 16
        self._compressed = cupy.empty(self._count * stride, cupy.uint8)
        self._places = self._pointers(self._compressed, stride)
        self._compressed_sizes = cupy.zeros(self._count, cupy.uint64)
        self._statuses = cupy.zeros(self._count, cupy.int32)
        self._compress_memory = self._temporary("CompressGetTempSize", options)
        self._num_distinct = self._count
        self._content = content
        self._content_places = self._pointers(content, self._block_size)
        self.compress()
        self._check()
        self.compressed_size = int(self._compressed_sizes.sum())
        self._repeat(repeats)
        self.output = cupy.empty(content.size * repeats, cupy.uint8)
        self._output_places = self._pointers(self.output, self._block_size)
        self._output_sizes = cupy.zeros(self._count, cupy.uint64)
        self._options = _Options(0)
        self._temporary_memory = self._temporary("DecompressGetTempSize", self._options)

    def _repeat(self, repeats: int) -> None:
        """Make copies of all compressed blocks."""
        stride = self._compressed.size // self._count
        self._count *= repeats
        self._compressed = cupy.tile(self._compressed, repeats)
        self._places = self._pointers(self._compressed, stride)
        self._sizes = cupy.tile(self._sizes, repeats)
        self._compressed_sizes = cupy.tile(self._compressed_sizes, repeats)
        self._statuses = cupy.zeros(self._count, cupy.int32)

    def compress(self) -> None:
        """Queue the compression of all blocks."""
        temporary = self._compress_memory
        self._call(
            "CompressAsync", _pointer(self._content_places), _pointer(self._sizes), ctypes.c_size_t(self._block_size),
            ctypes.c_size_t(self._num_distinct), _pointer(temporary), ctypes.c_size_t(temporary.size),
            _pointer(self._places), _pointer(self._compressed_sizes), self._compress_options,
            _pointer(self._statuses), ctypes.c_void_p(0),
        )  # fmt: skip

    def decode(self) -> None:
        """Queue the decoding of all blocks into `output`."""
        self._call(
            "DecompressAsync", _pointer(self._places), _pointer(self._compressed_sizes), _pointer(self._sizes),
            _pointer(self._output_sizes), ctypes.c_size_t(self._count), _pointer(self._temporary_memory),
            ctypes.c_size_t(self._temporary_memory.size), _pointer(self._output_places), self._options,
            _pointer(self._statuses), ctypes.c_void_p(0),
        )  # fmt: skip

    def is_right(self) -> bool:
        """Returns whether the last decode produced the right content; raises NvcompError if a block failed."""
        self._check()
        return bool((self.output.reshape(-1, self._content.size) == self._content).all())

    def _pointers(self, memory: cupy.ndarray, stride: int) -> cupy.ndarray:
        return memory.data.ptr + cupy.arange(self._count, dtype=cupy.uint64) * stride

    def _temporary(self, function: str, options: _Options) -> cupy.ndarray:
        size = ctypes.c_size_t()
        self._call(
            function, ctypes.c_size_t(self._count), ctypes.c_size_t(self._block_size), options, ctypes.byref(size),
            ctypes.c_size_t(self._count * self._block_size), ctypes.c_void_p(0),
        )  # fmt: skip
        return cupy.empty(max(size.value, 1), cupy.uint8)

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, f"nvcompBatched{self._codec}{function}")(*arguments)
        if status != 0:
            raise NvcompError(f"{self._codec}: {function} returned status {status}")

    def _check(self) -> None:
        cupy.cuda.Device().synchronize()
        if self._statuses.any():
            raise NvcompError(f"{self._codec}: a block failed")


def _pointer(memory: cupy.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(memory.data.ptr)
