"""Launches the kernels that encode blocks, check the result, and move the payloads together.

A batch is the content of blocks in device memory, without gaps: block i begins at i * block_size, and all blocks but
the last have block_size bytes. gompfs/gpu/encode/parser.py gives its sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gompfs.codec import Codec, CodecOptions
from gompfs.gpu.device.arrays import Array, ArrayDevice, Tile
from gompfs.gpu.device.kernel_sources import SHARED_BYTES
from gompfs.gpu.encode.parser import ParsedBlocks

NUM_WARPS = 4
"""The warps of a CTA: kEncodeWarps of kernels/encode/batch.cuh, and as many for decoding."""
ALIGNMENT = 16
"""Block sizes, and the offsets of payloads, are multiples of this number of bytes."""
READABLE = 256
"""Decoders may read this many bytes past a payload, and past the content."""

_KERNELS = {Codec.GOMPRESSO_BIT: "bit", Codec.GOMPRESSO_BYTE: "byte"}
_THREADS = 32 * NUM_WARPS


@dataclass(frozen=True)
class BlockBatch:
    """The content of blocks, in device memory: an array of bytes with space for READABLE bytes after the content."""

    content: Array
    content_size: int
    block_size: int

    @property
    def num_blocks(self) -> int:
        """The number of blocks; the last may be shorter than the others."""
        return -(-self.content_size // self.block_size)


@dataclass(frozen=True)
class Payloads:
    """The payloads of a batch, in device memory: payload i begins at i * stride of `data`.

    `sizes[i]` (u32) is 0 for a block that is stored, because its payload would not be smaller than its content, or that
    failed. `statuses[i]` (u8) is 1 for a block that failed: the CPU has to encode it.
    """

    data: Array
    sizes: Array
    statuses: Array
    stride: int


def payload_bytes(block_size: int, num_blocks: int) -> int:
    """Returns the size in bytes of `Payloads.data`."""
    return -(-block_size // ALIGNMENT) * ALIGNMENT * num_blocks + READABLE


def encode_payloads(
    device: ArrayDevice,
    batch: BlockBatch,
    parsed: ParsedBlocks,
    options: CodecOptions,
    data: Array,
    scratch: Array,
) -> Payloads:
    """Writes sequences as payloads of `options.codec` to `data`, which has `payload_bytes` bytes.

    `scratch` has as many bytes as the content, and is overwritten.
    """
    stride = -(-batch.block_size // ALIGNMENT) * ALIGNMENT
    num_blocks = batch.num_blocks
    payloads = Payloads(data, device.xp.empty(num_blocks, np.uint32), device.xp.empty(num_blocks, np.uint8), stride)
    kernel = f"encode_{_KERNELS[options.codec]}"
    literals = (scratch,) if options.codec is Codec.GOMPRESSO_BIT else ()
    flags = options.dependency_elimination | options.group_size_log2 << 8
    numbers = (batch.block_size, parsed.max_sequences, stride, flags)
    device.launch(
        f"encode/{kernel}", kernel, num_blocks,
        batch.content, batch.content_size, parsed.sequences, parsed.num_sequences,
        data, payloads.sizes, payloads.statuses, *literals, *map(np.uint32, numbers),
        tile=Tile(1, _THREADS, _shared_bytes(f"encode/{kernel}")),
    )  # fmt: skip
    return payloads


def check_payloads(
    device: ArrayDevice, batch: BlockBatch, payloads: Payloads, options: CodecOptions, scratch: Array
) -> None:
    """Decodes all payloads to `scratch`, with the kernel of the decoder, and compares them with the content.

    A block that differs gets the size 0 and the status 1. `scratch` has READABLE more bytes than the content.
    """
    xp, num_blocks = device.xp, batch.num_blocks
    numbers = xp.arange(num_blocks, dtype=np.uint64)
    offsets = numbers * np.uint64(batch.block_size)
    content_sizes = xp.minimum(batch.content_size - offsets, np.uint64(batch.block_size)).astype(np.uint32)
    decoded = xp.empty(num_blocks, np.uint8)
    kernel = f"decode_{_KERNELS[options.codec]}"
    device.launch(
        f"codec/{kernel}", kernel, num_blocks,
        payloads.data, numbers * np.uint64(payloads.stride), payloads.sizes, scratch, offsets, content_sizes, decoded,
        xp.zeros(1, np.uint32), np.uint32(num_blocks),
        tile=Tile(NUM_WARPS, _THREADS, _shared_bytes(f"codec/{kernel}")),
    )  # fmt: skip
    device.launch(
        "encode/check", "check_blocks", num_blocks,
        batch.content, batch.content_size, scratch, decoded, payloads.sizes, payloads.statuses,
        np.uint32(batch.block_size), tile=Tile(1, _THREADS),
    )  # fmt: skip


def gather_payloads(device: ArrayDevice, payloads: Payloads, packed: Array) -> None:
    """Copies the payloads to `packed` one after another, each at a multiple of ALIGNMENT."""
    padded = -(-payloads.sizes.astype(np.int64) // ALIGNMENT) * ALIGNMENT
    offsets = (device.xp.cumsum(padded) - padded).astype(np.uint64)
    device.launch(
        "encode/check", "gather_payloads", payloads.sizes.size,
        payloads.data, payloads.sizes, offsets, packed, np.uint32(payloads.stride), tile=Tile(1, _THREADS),
    )  # fmt: skip


def _shared_bytes(kernel: str) -> int:
    common, per_warp = SHARED_BYTES[kernel]
    return common + NUM_WARPS * per_warp
