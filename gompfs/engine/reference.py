"""The reference engine: the readable Python decoders of gompfs.codec, one block at a time."""

from __future__ import annotations

from collections.abc import Sequence

from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.codec.reference import PayloadError, decode_payload
from gompfs.engine.base import check_batch, settle_batch
from gompfs.errors import EngineUnavailableError


class ReferenceEngine:
    """Slow and plain; what the other engines are tested against. It decodes only."""

    name = "reference"
    reason = "asked for"
    num_threads = 1

    def encode_blocks(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """Raises EngineUnavailableError: there is no reference encoder."""
        raise EngineUnavailableError("the reference engine only decodes; pack with --engine cpu")

    def decode_blocks(
        self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool = False
    ) -> list[BlockStatus]:
        """See Engine.decode_blocks."""
        headers, statuses, places = check_batch(blocks, out)
        for index, header in enumerate(headers):
            if header is None or statuses[index] is not BlockStatus.OK:
                continue
            payload = memoryview(blocks[index])[BLOCK_HEADER_SIZE:]
            try:
                content = decode_payload(header.codec, bytes(payload), header.uncompressed_size)
            except PayloadError:
                statuses[index] = BlockStatus.BAD_PAYLOAD
                continue
            out[places[index] : places[index] + header.uncompressed_size] = content
        return settle_batch(headers, statuses, places, out, verify=verify)
