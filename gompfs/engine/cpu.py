"""The CPU engine: the C++ core of kernels/cpu on all cores, with the GIL released."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gompfs import _codec
from gompfs.codec import BlockStatus, Codec, CodecOptions, EncodedBlock, build_block
from gompfs.codec.block import Buffer
from gompfs.engine.base import check_batch, settle_batch


class CpuEngine:
    """Compresses and decompresses blocks on host threads; one block is one thread's work."""

    name = "cpu"

    def __init__(self, num_threads: int = 0, reason: str = "asked for") -> None:
        """Use `num_threads` threads, or one per available core when it is 0."""
        self.num_threads = num_threads or len(os.sched_getaffinity(0))
        self.reason = reason

    def encode_blocks(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """See Engine.encode_blocks."""
        encoded = _codec.encode_blocks(
            stream, block_size, options.codec, options.level, options.dependency_elimination, self.num_threads
        )
        view = memoryview(stream).cast("B")
        blocks = []
        for index, payload in enumerate(encoded):
            content = view[index * block_size : (index + 1) * block_size]
            codec = options.codec if payload is not None else Codec.STORED
            blocks.append(build_block(codec, content if payload is None else payload, content))
        return blocks

    def decode_blocks(
        self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool = False
    ) -> list[BlockStatus]:
        """See Engine.decode_blocks."""
        headers, statuses, places = check_batch(blocks, out)
        work = [
            (index, header.codec, blocks[index], places[index], header.uncompressed_size)
            for index, header in enumerate(headers)
            if header is not None and statuses[index] is BlockStatus.OK
        ]
        if work:
            indexes, codecs, sources, targets, sizes = zip(*work, strict=True)
            failed = _codec.decode_blocks(codecs, sources, out, targets, sizes, self.num_threads)
            for position in failed:
                statuses[indexes[position]] = BlockStatus.BAD_PAYLOAD
        return settle_batch(headers, statuses, places, out, verify=verify)
