"""Codecs of C libraries, called through ctypes into memory that exists already: what a C program would get from them.

ctypes releases the GIL during a call, so that threads of Python decode at the same time. For blocks of
megabytes, the microsecond or two that a call takes beside the library does not matter.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_int, c_size_t, c_ulong, c_void_p
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

Compress = Callable[[int, int, int, int], int]
"""Compresses (source, size) to (target, capacity), all addresses and sizes; returns the compressed size, or 0."""

Decompress = Callable[[int, int, int, int], bool]
"""Decompresses (source, size) to (target, size of the content); returns whether that worked."""

_ROOM = 1 << 16  # bytes that compressed content may have more than the content


@dataclass(frozen=True)
class LibraryCodec:
    """A codec of a C library at one level."""

    name: str
    compress: Compress
    decompress: Decompress


class CompressedBlocks:
    """Content in blocks that a codec has compressed, and memory to decode them into."""

    def __init__(self, codec: LibraryCodec, content: bytes, block_size: int, executor: ThreadPoolExecutor) -> None:
        """Compresses all blocks on the threads of `executor`. Raises ValueError if the library fails."""
        self._codec = codec
        self._executor = executor
        self._content = np.frombuffer(content, np.uint8)
        self._starts = range(0, len(content), block_size)
        self._block_size = block_size
        self._blocks = list(executor.map(self._compress, self._starts))
        self.compressed_size = sum(block.size for block in self._blocks)
        self._output = np.zeros(len(content), np.uint8)

    def decode(self) -> None:
        """Decodes all blocks. Raises ValueError if the library fails."""
        if not all(self._executor.map(self._decode, range(len(self._blocks)))):
            raise ValueError(f"{self._codec.name} failed to decode a block")

    def is_right(self) -> bool:
        """Returns whether the last decode produced the content."""
        return np.array_equal(self._output, self._content)

    def _compress(self, start: int) -> NDArray[np.uint8]:
        block = self._content[start : start + self._block_size]
        target = np.empty(block.size + block.size // 4 + _ROOM, np.uint8)
        size = self._codec.compress(block.ctypes.data, block.size, target.ctypes.data, target.size)
        if size == 0:
            raise ValueError(f"{self._codec.name} failed to compress a block")
        return target[:size].copy()

    def _decode(self, number: int) -> bool:
        start = self._starts[number]
        size = min(self._block_size, self._output.size - start)
        block = self._blocks[number]
        return self._codec.decompress(block.ctypes.data, block.size, self._output.ctypes.data + start, size)


def library_codecs(names: Sequence[str]) -> dict[str, LibraryCodec | None]:
    """Returns codecs by name and level, such as zstd-3; None for a library that is not installed."""
    return {name: _codec(name) for name in names}


def _codec(name: str) -> LibraryCodec | None:
    family, _, level = name.partition("-")
    file, make = _FAMILIES[family]
    path = ctypes.util.find_library(file)
    if path is None:
        return None
    compress, decompress = make(ctypes.CDLL(path), int(level or 0))
    return LibraryCodec(name, compress, decompress)


def _function(library: ctypes.CDLL, name: str, result: type | None, *arguments: type) -> Callable[..., int]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function  # type: ignore[no-any-return]


def _lz4(library: ctypes.CDLL, level: int) -> tuple[Compress, Decompress]:
    fast = _function(library, "LZ4_compress_default", c_int, c_void_p, c_void_p, c_int, c_int)
    high = _function(library, "LZ4_compress_HC", c_int, c_void_p, c_void_p, c_int, c_int, c_int)
    decode = _function(library, "LZ4_decompress_safe", c_int, c_void_p, c_void_p, c_int, c_int)

    def compress(source: int, size: int, target: int, capacity: int) -> int:
        return high(source, target, size, capacity, level) if level else fast(source, target, size, capacity)

    return compress, lambda source, size, target, content: decode(source, target, size, content) == content


def _snappy(library: ctypes.CDLL, _: int) -> tuple[Compress, Decompress]:
    encode = _function(library, "snappy_compress", c_int, c_void_p, c_size_t, c_void_p, c_void_p)
    decode = _function(library, "snappy_uncompress", c_int, c_void_p, c_size_t, c_void_p, c_void_p)

    def compress(source: int, size: int, target: int, capacity: int) -> int:
        found = c_size_t(capacity)
        return 0 if encode(source, size, target, ctypes.addressof(found)) else found.value

    def decompress(source: int, size: int, target: int, content: int) -> bool:
        found = c_size_t(content)
        return decode(source, size, target, ctypes.addressof(found)) == 0 and found.value == content

    return compress, decompress


def _zlib(library: ctypes.CDLL, level: int) -> tuple[Compress, Decompress]:
    encode = _function(library, "compress2", c_int, c_void_p, c_void_p, c_void_p, c_ulong, c_int)
    decode = _function(library, "uncompress", c_int, c_void_p, c_void_p, c_void_p, c_ulong)

    def compress(source: int, size: int, target: int, capacity: int) -> int:
        found = c_ulong(capacity)
        return 0 if encode(target, ctypes.addressof(found), source, size, level) else found.value

    def decompress(source: int, size: int, target: int, content: int) -> bool:
        found = c_ulong(content)
        return decode(target, ctypes.addressof(found), source, size) == 0 and found.value == content

    return compress, decompress


def _zstd(library: ctypes.CDLL, level: int) -> tuple[Compress, Decompress]:
    encode = _function(library, "ZSTD_compress", c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_int)
    decode = _function(library, "ZSTD_decompress", c_size_t, c_void_p, c_size_t, c_void_p, c_size_t)
    is_error = _function(library, "ZSTD_isError", ctypes.c_uint, c_size_t)

    def compress(source: int, size: int, target: int, capacity: int) -> int:
        found = encode(target, capacity, source, size, level)
        return 0 if is_error(found) else found

    return compress, lambda source, size, target, content: decode(target, content, source, size) == content


def _libdeflate(library: ctypes.CDLL, level: int) -> tuple[Compress, Decompress]:
    pointers = (c_void_p, c_void_p, c_size_t, c_void_p, c_size_t)
    open_encoder = _function(library, "libdeflate_alloc_compressor", c_void_p, c_int)
    close_encoder = _function(library, "libdeflate_free_compressor", None, c_void_p)
    encode = _function(library, "libdeflate_deflate_compress", c_size_t, *pointers)
    open_decoder = _function(library, "libdeflate_alloc_decompressor", c_void_p)
    close_decoder = _function(library, "libdeflate_free_decompressor", None, c_void_p)
    decode = _function(library, "libdeflate_deflate_decompress", c_int, *pointers, c_void_p)

    def use(start: Callable[[], int], stop: Callable[[int], int], work: Callable[[int], int]) -> int:
        state = start()
        try:
            return work(state)
        finally:
            stop(state)

    def compress(source: int, size: int, target: int, capacity: int) -> int:
        arguments = (source, size, target, capacity)
        return use(partial(open_encoder, level), close_encoder, lambda state: encode(state, *arguments))

    def decompress(source: int, size: int, target: int, content: int) -> bool:
        arguments = (source, size, target, content, None)
        return use(open_decoder, close_decoder, lambda state: decode(state, *arguments)) == 0

    return compress, decompress


_FAMILIES: dict[str, tuple[str, Callable[[ctypes.CDLL, int], tuple[Compress, Decompress]]]] = {
    "lz4": ("lz4", _lz4),
    "snappy": ("snappy", _snappy),
    "zlib": ("z", _zlib),
    "zstd": ("zstd", _zstd),
    "libdeflate": ("deflate", _libdeflate),
}
