"""The interface through which a GPU gets the compressed blocks of an archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gompfs.codec import BlockStatus

if TYPE_CHECKING:
    from gompfs._native.parts import SymbolTable
    from gompfs.codec.stored_head import StoredHead
    from gompfs.gpu.heads import HeadStore

STAGED = np.dtype(
    [("status", "<u4"), ("codec", "<u4"), ("payload_size", "<u4"), ("uncompressed_size", "<u4"),
     ("content_xxh3", "<u8"), ("block_xxh3", "<u8")]
)  # fmt: skip
"""What the header of a block says, if its BlockStatus is OK; else zeros (StagedBlock in native/blocks)."""


class BlockSymbols(NamedTuple):
    """What some blocks need to be decoded: heads of parts, or the dictionary. None of them is twice in the list.

    `indexes` has an index in the list for each block, or -1; `statuses` a BlockStatus, which is not OK if what the
    block needs is known to be damaged; it is then None in the list.
    """

    symbols: Sequence[SymbolTable | StoredHead | None]
    indexes: NDArray[np.int64]
    statuses: NDArray[np.uint8]

    def of(self, chosen: NDArray[np.intp]) -> BlockSymbols:
        """Returns what the blocks with these indexes need."""
        needed, indexes = np.unique(self.indexes[chosen], return_inverse=True)
        num_without = int(np.count_nonzero(needed < 0))
        symbols = [self.symbols[number] for number in needed[num_without:].tolist()]
        return BlockSymbols(symbols, indexes.astype(np.int64) - num_without, self.statuses[chosen])


class BlockSource(Protocol):
    """The blocks of an archive's stream, by their numbers. `uncompressed_sizes` and so on have one value for each."""

    compressed_sizes: NDArray[np.unsignedinteger]
    uncompressed_sizes: NDArray[np.unsignedinteger]

    def stage(self, numbers: NDArray[np.uint64], targets: NDArray[np.uint64], out: memoryview) -> NDArray[np.void]:
        """Reads blocks, header and payload, to their targets in `out`, and checks them. Returns STAGED records."""

    def symbols(self, numbers: NDArray[np.uint64]) -> BlockSymbols:
        """Returns what blocks need to be decoded."""

    def decode(self, numbers: NDArray[np.uint64], out: memoryview, *, verify: bool) -> Sequence[BlockStatus]:
        """Decodes blocks on the host into `out`, one after another. Returns the status of each.

        `verify` also compares decoded bytes with their checksums.
        """


def load_heads(store: HeadStore, symbols: BlockSymbols) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Returns the device address of each block's head or dictionary, or 0, and a BlockStatus for each.

    The address of a sound one is 0 if it does not fit beside those of other blocks.
    """
    present = [number for number, each in enumerate(symbols.symbols) if each is not None]
    addresses = np.zeros(len(symbols.symbols) + 1, np.uint64)  # the last is for blocks that need nothing
    statuses = np.zeros(len(symbols.symbols) + 1, np.uint8)
    if present:
        loaded = store.load(each for each in symbols.symbols if each is not None)
        addresses[present], statuses[present] = loaded
    return addresses[symbols.indexes], np.maximum(statuses[symbols.indexes], symbols.statuses)
