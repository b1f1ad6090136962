"""The interface through which a GPU gets the compressed blocks of an archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gompfs.codec import BlockStatus

if TYPE_CHECKING:
    from gompfs._native.text import SymbolTable
    from gompfs.codec.stored_head import StoredHead
    from gompfs.gpu.decode.head_store import HeadStore


class BlockSymbols(NamedTuple):
    """The heads of parts, or the dictionary, that some blocks need to be decoded. `symbols` lists each of them once.

    For each block, `indexes` has the index of its head or dictionary in `symbols`, or -1 if it needs none. `statuses`
    has a BlockStatus for each block: if the head or dictionary is damaged, it is not OK, and `symbols` has None.
    """

    symbols: Sequence[SymbolTable | StoredHead | None]
    indexes: NDArray[np.int64]
    statuses: NDArray[np.uint8]


class BlockSource(Protocol):
    """Blocks that a GPU can decode, such as the blocks of an archive's stream. Each column has one value for each
    block."""

    compressed_sizes: NDArray[np.unsignedinteger]
    uncompressed_sizes: NDArray[np.unsignedinteger]
    parts: NDArray[np.int64]
    """The number of the part that a block is in, if blocks of this part need a head or the dictionary; else -1."""
    num_parts: int
    """The number of these parts."""

    @property
    def facts(self) -> NDArray[np.void] | None:
        """The facts in the headers of all blocks (FACTS), if they are known before the blocks are read.

        A block with another status than OK is damaged.
        """

    def begin_staging(
        self, numbers: NDArray[np.uint64], targets: NDArray[np.uint64], out: memoryview
    ) -> Callable[[], NDArray[np.void]]:
        """Begins to read blocks, header and payload, to their targets in `out`, and to check them.

        Returns a function that waits until all is done, and returns records of FACTS. Records of damaged blocks have a
        status, and zeros.
        """

    def symbols(self, numbers: NDArray[np.uint64]) -> BlockSymbols:
        """Returns the heads and the dictionary that blocks need to be decoded."""

    def decode(self, numbers: NDArray[np.uint64], out: memoryview, *, verify: bool) -> Sequence[BlockStatus]:
        """Decodes blocks on the host into `out`, one after another. Returns the status of each.

        `verify` also compares decoded bytes with their checksums.
        """


def load_heads(store: HeadStore, symbols: BlockSymbols) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Returns the device address of each block's head or dictionary, or 0, and a BlockStatus for each.

    The address of a sound head is 0 if device memory is too small for it beside the heads of the other blocks.
    """
    present = [number for number, each in enumerate(symbols.symbols) if each is not None]
    addresses = np.zeros(len(symbols.symbols) + 1, np.uint64)  # the last is for blocks that need nothing
    statuses = np.zeros(len(symbols.symbols) + 1, np.uint8)
    if present:
        loaded = store.load(each for each in symbols.symbols if each is not None)
        addresses[present], statuses[present] = loaded
    return addresses[symbols.indexes], np.maximum(statuses[symbols.indexes], symbols.statuses)


class KnownHeads:
    """Device addresses of the heads of a source's parts, as long as a store keeps them."""

    def __init__(self, store: HeadStore, source: BlockSource) -> None:
        self._store = store
        self._source = source
        self._num_losses = store.num_losses
        self._addresses = np.zeros(source.num_parts + 1, np.uint64)  # the last is for blocks that need nothing

    def load(self, numbers: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.bool_]]:
        """Returns addresses and statuses as `load_heads` does, and for which blocks there is no space."""
        statuses = np.zeros(numbers.size, np.uint8)
        if not self._source.num_parts:
            return np.zeros(numbers.size, np.uint64), statuses, np.zeros(numbers.size, np.bool_)
        parts = self._source.parts.take(numbers.view(np.int64))
        self._forget_lost()
        heads = self._addresses.take(parts)
        is_missing = (heads == 0) & (parts >= 0)
        if is_missing.any():  # this load may drop heads that are known: load those of all blocks
            heads, statuses = load_heads(self._store, self._source.symbols(numbers))
            self._forget_lost()
            is_missing = (heads == 0) & (parts >= 0) & (statuses == BlockStatus.OK)
            is_loaded = heads != 0
            self._addresses[parts[is_loaded]] = heads[is_loaded]
        return heads, statuses, is_missing

    def _forget_lost(self) -> None:
        if self._num_losses != self._store.num_losses:
            self._num_losses = self._store.num_losses
            self._addresses.fill(0)
