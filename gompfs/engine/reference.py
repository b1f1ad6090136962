"""The reference engine: it runs the readable Python decoders of gompfs.codec, one block at a time."""

from __future__ import annotations

from collections.abc import Sequence

from xxhash import xxh3_64_intdigest

from gompfs.codec import BLOCK_HEADER_SIZE, BlockHeader, BlockStatus, CodecOptions, EncodedBlock, check_block
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.codec.reference import PayloadError, decode_payload
from gompfs.errors import EngineUnavailableError


class ReferenceEngine:
    """A slow and simple engine that the other engines are tested against. It only decodes."""

    name = "reference"
    batch_bytes = 1 << 20
    accelerator = None
    reason = "asked for"
    num_threads = 1

    def __init__(self) -> None:
        self.decode_work = {self.name: DecodeWork()}

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu. Returns False: the C++ threads use another decoder than this engine."""
        return False

    def allocate(self, size: int) -> memoryview:
        """See Engine.allocate."""
        return memoryview(bytearray(size))

    def encode_blocks(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """Raises EngineUnavailableError: there is no reference encoder."""
        raise EngineUnavailableError("the reference engine only decodes; pack with --engine cpu")

    def decode_blocks(self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool = False) -> list[BlockStatus]:
        """See Engine.decode_blocks."""
        with self.decode_work[self.name].batch(len(blocks), len(out)):
            return self._decode(blocks, out, verify=verify)

    def _decode(self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool) -> list[BlockStatus]:
        headers, statuses, offsets = _check_batch(blocks, out)
        for index, header in enumerate(headers):
            if header is None or statuses[index] is not BlockStatus.OK:
                continue
            payload = memoryview(blocks[index])[BLOCK_HEADER_SIZE:]
            try:
                content = decode_payload(header.codec, bytes(payload), header.uncompressed_size)
            except PayloadError:
                statuses[index] = BlockStatus.BAD_PAYLOAD
                continue
            out[offsets[index] : offsets[index] + header.uncompressed_size] = content
        return _settle_batch(headers, statuses, offsets, out, verify=verify)


def _check_batch(
    blocks: Sequence[Buffer], out: memoryview
) -> tuple[list[BlockHeader | None], list[BlockStatus], list[int]]:
    """Checks the headers and checksums of a batch before decoding.

    Returns the header (None if unreadable), the status and the offset in `out` (in bytes) of each block. Raises
    ValueError if `out` is too small.
    """
    headers: list[BlockHeader | None] = []
    statuses: list[BlockStatus] = []
    offsets: list[int] = []
    end = 0
    for block in blocks:
        header, status = check_block(block)
        headers.append(header)
        statuses.append(status)
        offsets.append(end)
        end += header.uncompressed_size if header else 0
    if end > len(out):
        raise ValueError(f"the blocks hold {end} bytes, the output only {len(out)}")
    return headers, statuses, offsets


def _settle_batch(
    headers: Sequence[BlockHeader | None],
    statuses: list[BlockStatus],
    offsets: Sequence[int],
    out: memoryview,
    *,
    verify: bool,
) -> list[BlockStatus]:
    """Fills the output of damaged blocks with zeros and returns the statuses.

    With `verify`, first compares the decoded bytes of the other blocks with their checksums.
    """
    if not verify and not any(statuses):
        return statuses
    for index, header in enumerate(headers):
        if header is None or (statuses[index] is BlockStatus.OK and not verify):
            continue
        content = out[offsets[index] : offsets[index] + header.uncompressed_size]
        if statuses[index] is BlockStatus.OK and xxh3_64_intdigest(content) != header.content_xxh3:
            statuses[index] = BlockStatus.BAD_CONTENT
        if statuses[index] is not BlockStatus.OK:
            content[:] = bytes(len(content))
    return statuses
