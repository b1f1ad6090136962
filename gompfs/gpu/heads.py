"""Heads of parts in device memory, as the kernel of gompresso-tadoc reads them (kernels/codec/tadoc_block.cuh)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from gompfs._native.parts import SymbolTable
from gompfs.codec.constants import MAX_CLASS_BITS
from gompfs.gpu.arrays import Array

_MAX_CLASSES = 64
_FIELDS_SIZE = 16
_START_SIZE = _FIELDS_SIZE + _MAX_CLASSES + (1 << MAX_CLASS_BITS)


def pack_head(symbols: SymbolTable) -> NDArray[np.uint8]:
    """Returns the symbols of a part in the layout of TadocHead: fields, class code, expansions by rank, pool."""
    expansions, pool, code = symbols.expansions, symbols.pool, symbols.code
    packed = np.zeros(packed_size(symbols), np.uint8)
    pool_offset = _START_SIZE + expansions.nbytes
    lengths, classes = (code & 255).astype(np.uint8), (code >> 24 & 255).astype(np.uint8)
    # with an empty code no rank is valid
    num_ranks = expansions.size if lengths.any() else 0
    packed[:8].view(np.uint32)[:] = num_ranks, pool_offset
    packed[_FIELDS_SIZE + classes] = lengths
    # the code may have shorter codewords, and less entries
    packed[_FIELDS_SIZE + _MAX_CLASSES : _START_SIZE] = np.tile(classes, (1 << MAX_CLASS_BITS) // classes.size)
    packed[_START_SIZE:pool_offset].view(np.uint64)[:] = expansions
    packed[pool_offset:] = pool
    return packed


def packed_size(symbols: SymbolTable) -> int:
    """Returns the size of `pack_head(symbols)` in bytes."""
    return _START_SIZE + symbols.expansions.nbytes + symbols.pool.nbytes


class HeadStore:
    """Heads that stay in device memory until newer ones need the space. For one thread at a time."""

    def __init__(self, capacity: int, upload: Callable[[NDArray[np.uint8]], Array]) -> None:
        """Keeps at most `capacity` bytes. `upload` copies bytes to an array of the device's library.

        `upload` is called after heads that it may replace were dropped, and raises MemoryError if the device has too
        little memory.
        """
        self._capacity = capacity
        self._upload = upload
        self._heads: dict[int, Array] = {}  # by the number of the symbols; last used last
        self.num_bytes = 0

    def load(self, tables: Iterable[SymbolTable]) -> NDArray[np.uint64]:
        """Returns the device address of the head of each table. Uploads those that are not in the store.

        The address is 0 for heads that do not fit beside those of the tables before. All others stay in the store until
        the next call.
        """
        addresses: dict[int, int] = {}
        numbers = []
        for table in tables:
            number = table.number
            if number not in addresses:
                addresses[number] = self._load(table, addresses)
            numbers.append(number)
        return np.array([addresses[number] for number in numbers], np.uint64)

    def _load(self, table: SymbolTable, held: dict[int, int]) -> int:
        """Returns the address of a head. It becomes the last used one, and does not replace those in `held`."""
        head = self._heads.pop(table.number, None)
        if head is None:
            if not self._make_space(packed_size(table), held):
                return 0
            try:
                head = self._upload(pack_head(table))
            except MemoryError:
                return 0
            self.num_bytes += head.nbytes
        self._heads[table.number] = head
        return int(head.data.ptr)

    def _make_space(self, size: int, held: dict[int, int]) -> bool:
        """Drops heads until `size` bytes are free. Returns False, and drops nothing, if that is not possible."""
        dropped = []
        free = self._capacity - self.num_bytes
        for number, head in self._heads.items():
            if free >= size:
                break
            if number not in held:
                dropped.append(number)
                free += head.nbytes
        if free < size:
            return False
        for number in dropped:
            self.num_bytes -= self._heads.pop(number).nbytes
        return True
