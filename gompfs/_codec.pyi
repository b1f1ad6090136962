"""Native codecs (kernels/cpu/codec). Buffers are contiguous bytes-like objects; the GIL is released."""

from collections.abc import Sequence

from typing_extensions import Buffer

def encode_blocks(
    stream: Buffer,
    block_size: int,
    codec: int,
    level: int,
    dependency_elimination: bool,
    num_threads: int,
) -> list[bytes | None]:
    """The payload of each block of `stream`; None where it would not be smaller than the block."""

def decode_blocks(
    codecs: Sequence[int],
    blocks: Sequence[Buffer],
    out: Buffer,
    targets: Sequence[int],
    uncompressed_sizes: Sequence[int],
    num_threads: int,
) -> list[int]:
    """Decode the payloads behind the headers of `blocks` into `out` at `targets`; the positions that failed."""
