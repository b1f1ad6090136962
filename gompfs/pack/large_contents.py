"""Finds large files whose content is stored already.

A content is known by the hashes of its pieces, which several threads compute. So a file need only be read up to the
first piece that differs from all known contents of its size.
"""

from __future__ import annotations

from typing import NamedTuple

from gompfs._native.sources import PieceHashes, Place
from gompfs.pack.sources.base import SourceEntry, fill
from gompfs.threads import default_threads

_HASH_SIZE = 32
_MOST_AT_ONCE = 16 << 20


class _LargeContent(NamedTuple):
    hashes: bytes
    stored: tuple[Place, int]


class LargeContents:
    """The large contents that are stored: 32 bytes for each piece of them."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[_LargeContent]] = {}
        self._memory = memoryview(b"")

    def add(self, size: int, hashes: PieceHashes, place: Place, where: int) -> None:
        """Adds a content that has been hashed: a text file with its number, or bytes with their address."""
        hashes.finish()
        self._by_size.setdefault(size, []).append(_LargeContent(hashes.digests, (place, where)))

    def find(self, entry: SourceEntry) -> tuple[Place, int] | None:
        """Returns where the content of an entry that can be reopened is stored, as KnownContents.find does.

        If several contents are equal, returns the last one. Raises the errors of reading the entry.
        """
        equal = self._by_size.get(entry.size, [])
        if not equal:
            return None
        self._memory = self._memory or memoryview(bytearray(_MOST_AT_ONCE))
        position, size = 0, PieceHashes.PIECE_SIZE  # most files that differ do so in their first piece
        with entry.open() as file:
            while equal and position < entry.size:
                memory = self._memory[: min(size, entry.size - position)]
                if fill(file, memory) < len(memory):
                    return None
                first = position // PieceHashes.PIECE_SIZE * _HASH_SIZE
                hashes = PieceHashes()
                hashes.append(memory, default_threads())
                hashes.finish()
                equal = [each for each in equal if each.hashes.startswith(hashes.digests, first)]
                position, size = position + len(memory), _MOST_AT_ONCE
        return equal[-1].stored if equal else None
