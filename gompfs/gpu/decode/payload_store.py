"""Payloads of blocks that stay in device memory."""

from __future__ import annotations

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs.codec.headers import FACTS

_SLAB_BYTES = 64 << 20


class PayloadStore:
    """Payloads that stay in device memory, found by the headers of their blocks. All of them were checked before.

    The store fills up to its capacity; it never evicts.
    """

    def __init__(self, capacity: int) -> None:
        """Makes a store of at most `capacity` bytes."""
        self._capacity = capacity
        self._allocated: list[cupy.ndarray] = []
        self._slab: cupy.ndarray | None = None  # which small payloads share
        self._used = 0  # bytes used in it
        self._rows: dict[int, int] = {}  # by checksum: the rows of the two arrays, which have space for more
        self._facts = np.zeros(0, FACTS)
        self._addresses = np.zeros(0, np.uint64)
        self.num_bytes = 0
        self.num_cleared = 0
        """How often all payloads were dropped. Addresses from before are no longer valid."""

    def __len__(self) -> int:
        """Returns the number of payloads."""
        return len(self._rows)

    def find(self, facts: NDArray[np.void]) -> NDArray[np.uint64]:
        """Returns the device address of the payload of each block, or 0 for payloads that are not in the store.

        `facts` are records of FACTS.
        """
        if not self._rows:
            return np.zeros(facts.size, np.uint64)
        rows = self._rows
        found = np.array([rows.get(checksum, -1) for checksum in facts["block_xxh3"].tolist()], np.int64)
        # the checksum of a forged header may be that of another block
        is_there = (found >= 0) & (self._facts[found] == facts)
        return np.where(is_there, self._addresses[found], np.uint64(0))

    def reserve(self, size: int) -> cupy.ndarray | None:
        """Returns device memory for payloads that will stay, or None if the store is full."""
        if size > _SLAB_BYTES // 4:  # the rest of a slab would be lost too often
            return self._allocate(size)
        if self._slab is None or self._used + size > self._slab.size:
            slab = self._allocate(max(min(_SLAB_BYTES, self._capacity - self.num_bytes), size))
            if slab is None:
                return None
            self._slab, self._used = slab, 0
        self._used += size
        return self._slab[self._used - size : self._used]

    def _allocate(self, size: int) -> cupy.ndarray | None:
        if self.num_bytes + size > self._capacity:
            return None
        try:
            self._allocated.append(cupy.empty(size, cupy.uint8))
        except cupy.cuda.memory.OutOfMemoryError:
            self._capacity = self.num_bytes
            return None
        self.num_bytes += size
        return self._allocated[-1]

    def clear(self) -> None:
        """Drops all payloads and accepts no more."""
        self.num_cleared += 1
        self._capacity = self._used = self.num_bytes = 0
        self._slab = None
        self._allocated.clear()
        self._rows.clear()
        self._facts, self._addresses = self._facts[:0], self._addresses[:0]

    def add(self, facts: NDArray[np.void], addresses: NDArray[np.uint64]) -> None:
        """Registers the payloads of sound blocks, which have arrived in memory returned by `reserve`."""
        count = len(self._rows)
        rows = self._rows
        numbers = [rows.setdefault(checksum, len(rows)) for checksum in facts["block_xxh3"].tolist()]
        if len(rows) > self._facts.size:
            more = max(len(rows), 2 * self._facts.size)
            self._facts = np.resize(self._facts, more) if count else np.zeros(more, FACTS)
            self._addresses = np.resize(self._addresses, more) if count else np.zeros(more, np.uint64)
        self._facts[numbers], self._addresses[numbers] = facts, addresses
