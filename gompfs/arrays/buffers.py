"""Compresses and decompresses buffers in memory, with the codecs of archives, on the CPU or a GPU.

A compressed buffer has 16 bytes: the magic number, a version, three zeros, and the size of the content (u64, little
endian). Then follow blocks as in an archive (docs/format.md), each with its header, until the content is complete.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gompfs.arrays.caller_memory import device_memory, device_number, host_bytes, host_memory
from gompfs.codec import BLOCK_HEADER_SIZE, MAX_EXPANSION, BlockStatus, Codec, CodecOptions, parse_block_header
from gompfs.codec.codecs import DEFAULT_BLOCK_SIZE, DEFAULT_LEVEL, MIN_BLOCK_SIZE
from gompfs.codec.constants import MAX_BLOCK_SIZE
from gompfs.engine import Engine, select_engine
from gompfs.engine.selection import select_device
from gompfs.errors import ArchiveFormatError, CorruptBlockError, OptionError
from gompfs.options import GpuOptions

if TYPE_CHECKING:
    from gompfs.gpu.device.arrays import Array

_HEADER = struct.Struct("<4sB3sQ")
_MAGIC, _VERSION, _RESERVED = b"GBUF", 1, bytes(3)
_CODECS = (Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE)


class BufferCodec:
    """Compresses and decompresses buffers. Thread-safe, and picklable.

    `codec` is `gompresso-bit` (smaller) or `gompresso-byte` (faster), `level` 1 (fastest) to 8 (smallest). Buffers are
    cut into blocks of `block_size` bytes, which threads or a GPU process at once. `device` is `cpu`, or `cuda:0` for
    the CUDA device 0: then buffers of that device or of the host are compressed on it, except at the highest levels,
    and decompressed into its memory. Either decompresses what the other has compressed. `num_threads` limits the
    threads of the host (0: one per core).

    Raises OptionError (a ValueError) for other values.
    """

    def __init__(
        self,
        codec: str = "gompresso-bit",
        level: int = DEFAULT_LEVEL,
        *,
        block_size: int = DEFAULT_BLOCK_SIZE,
        device: str = "cpu",
        num_threads: int = 0,
    ) -> None:
        chosen = Codec.from_label(codec)
        if chosen not in _CODECS:
            raise OptionError(f"{codec} cannot compress buffers; use {' or '.join(each.label for each in _CODECS)}")
        if not MIN_BLOCK_SIZE <= block_size <= MAX_BLOCK_SIZE or block_size & (block_size - 1):
            limits = f"{MIN_BLOCK_SIZE} and {MAX_BLOCK_SIZE}"
            raise OptionError(f"block size {block_size} is not a power of two between {limits}")
        self._options = CodecOptions(chosen, level)
        self._number = device_number(device)
        self.codec, self.level, self.block_size = codec, level, block_size
        self.device = device
        self._num_threads = num_threads
        self._engines: dict[int, Engine] = {}  # by process: a forked child cannot use the GPU of its parent

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.codec, self.level, self.block_size, self.device, self._num_threads)

    def compress(self, data: Any) -> bytes:
        """Returns a compressed buffer, in host memory. `data` is any contiguous buffer or array, also one on a GPU."""
        content = host_bytes(data)
        size = len(content)
        blocks = self._engine.encode_blocks(content, self.block_size, self._options) if size else []
        return b"".join([_HEADER.pack(_MAGIC, _VERSION, _RESERVED, size), *(block.data for block in blocks)])

    def decompress(self, data: Any, out: Any = None) -> Array:
        """Returns the content of a compressed buffer, as an array of bytes of NumPy, or of CuPy on a GPU.

        `data` is any contiguous buffer or array. With `out`, a buffer or array on the device of this codec, the content
        is written to its first bytes, which are returned.

        Raises CorruptBlockError for a damaged block, ArchiveFormatError (a ValueError) for other damage, and ValueError
        if `out` is too small.
        """
        blocks, sizes = _split(host_bytes(data))
        content, statuses = self._decode(blocks, sizes, out)
        for number, status in enumerate(statuses):
            if status != BlockStatus.OK:
                raise CorruptBlockError(BlockStatus(status).reason, block=number)
        return content

    def _decode(self, blocks: Sequence[memoryview], sizes: Sequence[int], out: Any) -> tuple[Array, Sequence[int]]:
        """Returns the content, and a BlockStatus for each block."""
        size = sum(sizes)
        if self._number is not None:
            return self._decode_on_device(blocks, sizes, out)
        content = np.empty(size, np.uint8) if out is None else host_memory(out, size)
        return content, self._engine.decode_blocks(blocks, content.data, sizes=sizes)

    def _decode_on_device(
        self, blocks: Sequence[memoryview], sizes: Sequence[int], out: Any
    ) -> tuple[Array, Sequence[int]]:
        from gompfs.gpu.decode.buffers import decode_to_array
        from gompfs.gpu.device.caller_arrays import allocate, as_stream

        number, size = self._number or 0, sum(sizes)
        content = allocate(size, number, as_stream(None, number)) if out is None else device_memory(out, number, size)
        device = select_device(number, self._engine, GpuOptions(resident="off"))
        return content, decode_to_array(device, blocks, sizes, content, self._engine.num_threads).tolist()

    @property
    def _engine(self) -> Engine:
        process = os.getpid()
        if process not in self._engines:
            name = "cpu" if self._number is None else f"gpu:{self._number}"
            self._engines[process] = select_engine(name, self._num_threads)
        return self._engines[process]


def _make(codec: str, level: int, block_size: int, device: str, num_threads: int) -> BufferCodec:
    return BufferCodec(codec, level, block_size=block_size, device=device, num_threads=num_threads)


def _split(data: memoryview) -> tuple[list[memoryview], list[int]]:
    """Returns the blocks of a compressed buffer, and the size of the content of each.

    Raises ArchiveFormatError, and CorruptBlockError for a block without a valid header.
    """
    if len(data) < _HEADER.size:
        raise ArchiveFormatError("the buffer ends inside its header")
    magic, version, reserved, total = _HEADER.unpack_from(data)
    if (magic, reserved) != (_MAGIC, _RESERVED):
        raise ArchiveFormatError("not a buffer that gompfs has compressed")
    if version != _VERSION:
        raise ArchiveFormatError(f"a compressed buffer of version {version}, which this release does not know")
    blocks: list[memoryview] = []
    sizes: list[int] = []
    at, size = _HEADER.size, 0
    while at < len(data):
        if size % MIN_BLOCK_SIZE:
            raise ArchiveFormatError("a block that is not the last ends early")
        try:
            header = parse_block_header(data[at:])
        except ArchiveFormatError:
            raise CorruptBlockError(BlockStatus.BAD_HEADER.reason, block=len(blocks)) from None
        if header.uncompressed_size > MAX_EXPANSION * header.payload_size:
            raise CorruptBlockError("the block is too small for its content", block=len(blocks))
        end = at + BLOCK_HEADER_SIZE + header.payload_size
        blocks.append(data[at:end])
        sizes.append(header.uncompressed_size)
        size += header.uncompressed_size
        at = end
    if at != len(data) or size != total:
        raise ArchiveFormatError(f"the buffer has {size} of {total} bytes: it was cut off or changed")
    return blocks, sizes
