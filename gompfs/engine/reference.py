"""The reference engine: it runs the readable Python decoders of gompfs.codec, one block at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xxhash import xxh3_64_intdigest

from gompfs.codec import BLOCK_HEADER_SIZE, BlockHeader, BlockStatus, Codec, CodecOptions, EncodedBlock, check_block
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.codec.reference import PayloadError, decode_payload
from gompfs.codec.reference_tadoc import Part, decode_tadoc
from gompfs.errors import EngineUnavailableError

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary
    from gompfs.engine.base import PartSymbols


class ReferenceEngine:
    """A slow and simple engine that the other engines are tested against. It only decodes."""

    name = "reference"
    batch_bytes = encode_batch_bytes = 1 << 20
    num_encode_batches = 1
    num_reencoded = 0
    accelerator = None
    reason = "asked for"
    num_threads = 1

    def __init__(self) -> None:
        self.decode_work = {self.name: DecodeWork()}

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """See Engine.decodes_on_cpu. Returns False: the C++ threads use another decoder than this engine."""
        return False

    def opens_heads(self, num_bytes: int) -> bool:
        """See Engine.opens_heads."""
        return False

    def allocate(self, size: int) -> memoryview:
        """See Engine.allocate."""
        return memoryview(bytearray(size))

    def encode_blocks(
        self, stream: Buffer, block_size: int, options: CodecOptions, dictionary: Dictionary | None = None
    ) -> list[EncodedBlock]:
        """Raises EngineUnavailableError: there is no reference encoder."""
        raise EngineUnavailableError("the reference engine only decodes; pack with --engine cpu")

    def decode_blocks(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        *,
        sizes: Sequence[int] | None = None,
        symbols: Sequence[PartSymbols | None] | None = None,
        verify: bool = False,
    ) -> list[BlockStatus]:
        """See Engine.decode_blocks."""
        parts = [None] * len(blocks) if symbols is None else cast("Sequence[Part | bytes | None]", symbols)
        if len(parts) != len(blocks):
            raise ValueError("each block needs the symbols of its part")
        with self.decode_work[self.name].batch(len(blocks), len(out)):
            return self._decode(blocks, out, sizes, parts, verify=verify)

    def _decode(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        sizes: Sequence[int] | None,
        parts: Sequence[Part | bytes | None],
        *,
        verify: bool,
    ) -> list[BlockStatus]:
        headers, statuses = _check_headers(blocks, sizes, parts)
        contents = _cut(out, sizes or [header.uncompressed_size if header else 0 for header in headers])
        for index, (header, content, part) in enumerate(zip(headers, contents, parts, strict=True)):
            if header is None or statuses[index] is not BlockStatus.OK:
                continue
            payload = bytes(memoryview(blocks[index])[BLOCK_HEADER_SIZE:])
            try:
                content[:] = (
                    decode_tadoc(payload, header.uncompressed_size, part)
                    if isinstance(part, Part)
                    else decode_payload(header.codec, payload, header.uncompressed_size, part)
                )
            except PayloadError:
                statuses[index] = BlockStatus.BAD_PAYLOAD
            else:
                if verify and xxh3_64_intdigest(content) != header.content_xxh3:
                    statuses[index] = BlockStatus.BAD_CONTENT
        for content, status in zip(contents, statuses, strict=True):
            if status is not BlockStatus.OK:
                content[:] = bytes(len(content))
        return statuses


def _check_headers(
    blocks: Sequence[Buffer], sizes: Sequence[int] | None, parts: Sequence[Part | bytes | None]
) -> tuple[list[BlockHeader | None], list[BlockStatus]]:
    """Returns the header (None if unreadable) and the status of each block, after its checksum was compared."""
    if sizes is not None and len(sizes) != len(blocks):
        raise ValueError("each block needs a size")
    headers: list[BlockHeader | None] = []
    statuses: list[BlockStatus] = []
    for index, (block, part) in enumerate(zip(blocks, parts, strict=True)):
        header, status = check_block(block)
        has_size = header is None or sizes is None or header.uncompressed_size == sizes[index]
        if not (has_size and (header is None or _is_allowed(header.codec, part))):
            header, status = None, BlockStatus.BAD_HEADER
        headers.append(header)
        statuses.append(status)
    return headers, statuses


def _is_allowed(codec: Codec, part: Part | bytes | None) -> bool:
    """Returns whether a block may have the codec, with the part that has its symbols, the dictionary, or neither."""
    if part is None:
        return codec <= Codec.GOMPRESSO_BIT
    if isinstance(part, Part):
        return codec is Codec.GOMPRESSO_TADOC
    return codec in {Codec.STORED, Codec.GOMPRESSO_BIT_DICTIONARY}


def _cut(out: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    """Returns consecutive parts of `out`. Raises ValueError if it is too small."""
    ends = list(itertools.accumulate(sizes))
    if sum(sizes) > len(out):
        raise ValueError(f"the blocks hold {sum(sizes)} bytes, the output only {len(out)}")
    return [out[end - size : end] for end, size in zip(ends, sizes, strict=True)]
