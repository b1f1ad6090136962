"""What every engine does: whole batches of blocks in, one status per block out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xxhash import xxh3_64_intdigest

from gompfs.codec import BlockHeader, BlockStatus, CodecOptions, EncodedBlock, check_block
from gompfs.codec.block import Buffer


class Engine(Protocol):
    """A way to run the codecs. Methods may be called by several threads at once."""

    @property
    def name(self) -> str:
        """`reference`, `cpu` or `gpu`."""

    @property
    def reason(self) -> str:
        """Why this engine was chosen, for people."""

    @property
    def num_threads(self) -> int:
        """Host threads that one batch may use."""

    def encode_blocks(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """Cut `stream` into blocks of `block_size` bytes (the last may be shorter) and compress each.

        A block that does not shrink comes back as `stored`.
        """

    def decode_blocks(
        self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool = False
    ) -> list[BlockStatus]:
        """Decode whole blocks (header and payload) one after another into `out`, a writable byte view.

        Block i lands behind the uncompressed sizes of the blocks before it; a block whose header cannot be
        read takes no place. Damage never raises: the block's status says what is wrong, and its place in
        `out` is zeros. `verify` also checks the decoded bytes against their checksum.
        Raises ValueError when `out` is too small.
        """


def check_batch(
    blocks: Sequence[Buffer], out: memoryview
) -> tuple[list[BlockHeader | None], list[BlockStatus], list[int]]:
    """Headers, statuses and places in `out` (bytes) of a batch whose payloads are still undecoded."""
    headers: list[BlockHeader | None] = []
    statuses: list[BlockStatus] = []
    places: list[int] = []
    place = 0
    for block in blocks:
        header, status = check_block(block)
        headers.append(header)
        statuses.append(status)
        places.append(place)
        place += header.uncompressed_size if header else 0
    if place > len(out):
        raise ValueError(f"the blocks hold {place} bytes, the output only {len(out)}")
    return headers, statuses, places


def settle_batch(
    headers: Sequence[BlockHeader | None],
    statuses: list[BlockStatus],
    places: Sequence[int],
    out: memoryview,
    *,
    verify: bool,
) -> list[BlockStatus]:
    """Zero the places of damaged blocks; with `verify`, check the decoded bytes of the others first."""
    if not verify and not any(statuses):
        return statuses
    for index, header in enumerate(headers):
        if header is None or (statuses[index] is BlockStatus.OK and not verify):
            continue
        content = out[places[index] : places[index] + header.uncompressed_size]
        if statuses[index] is BlockStatus.OK and xxh3_64_intdigest(content) != header.content_xxh3:
            statuses[index] = BlockStatus.BAD_CONTENT
        if statuses[index] is not BlockStatus.OK:
            content[:] = bytes(len(content))
    return statuses
