"""Streams of bits as gompresso-bit and gompresso-tadoc store them: canonical codes and sub-blocks (docs/format.md)."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from typing import TypeVar

from oracle.constants import NUM_SUB_BLOCKS
from oracle.sequences import PayloadError

Item = TypeVar("Item")


class BitReader:
    """Reads a stream of bits, the lowest bit of each byte first, up to bit number `end`."""

    def __init__(self, stream: bytes, start: int = 0, end: int | None = None) -> None:
        self._stream = stream
        self.position = start
        self.end = len(stream) * 8 if end is None else end

    def take(self, count: int) -> int:
        """Returns the next `count` bits and advances. Raises PayloadError if fewer are left."""
        start, self.position = self.position, self.position + count
        if self.position > self.end:
            raise PayloadError("a stream ends inside a number")
        touched = self._stream[start // 8 : -(-self.position // 8)]
        return int.from_bytes(touched, "little") >> start % 8 & ((1 << count) - 1)


class CanonicalCode:
    """A canonical Huffman code: codewords are numbered in order of length, then of symbol.

    The stream holds the first bit of a codeword at the lowest position. A code with a single symbol of length 1 decodes
    to it whatever the bit is. An empty code decodes nothing.
    """

    def __init__(self, lengths: Items[int], max_bits: int) -> None:
        """Raises PayloadError if a length exceeds `max_bits` or the code is not complete.

        A code is complete if every string of bits begins with exactly one codeword. A single symbol of length 1 is
        accepted too.
        """
        used = [(length, symbol) for symbol, length in enumerate(lengths) if length]
        if any(length > max_bits for length, _ in used):
            raise PayloadError("a codeword is too long")
        self._single = used[0][1] if len(used) == 1 and used[0][0] == 1 else None
        if used and self._single is None and sum(1 << (max_bits - length) for length, _ in used) != 1 << max_bits:
            raise PayloadError("the code lengths do not form a prefix code")
        self._symbols: dict[tuple[int, int], int] = {}
        self._max_bits = max_bits
        codeword, previous_length = 0, 0
        for length, symbol in sorted(used):
            codeword <<= length - previous_length
            self._symbols[length, codeword] = symbol
            codeword, previous_length = codeword + 1, length
        self.is_empty = not used

    def read(self, bits: BitReader) -> int:
        """Returns the next symbol. Raises PayloadError if no codeword matches."""
        if self._single is not None:
            bits.take(1)
            return self._single
        codeword = 0
        for length in range(1, self._max_bits + 1):
            codeword = codeword << 1 | bits.take(1)
            symbol = self._symbols.get((length, codeword))
            if symbol is not None:
                return symbol
        raise PayloadError("a symbol has no codeword")


class SubBlocks:
    """One group of sub-blocks. Each array of items is dealt out to them: item i is the next one of sub-block i % 32.

    A reader of a sub-block never reads bits of the sub-block after it.
    """

    def __init__(self, readers: Items[BitReader]) -> None:
        self._readers = readers

    @property
    def num_bits(self) -> int:
        """The number of bits that are not read yet. No array can have more items."""
        return sum(reader.end - reader.position for reader in self._readers)

    def read_array(self, num_items: int, read: Callable[[BitReader], Item]) -> list[Item]:
        """Returns the next `num_items` items; `read` reads one, of a bit or more.

        Raises PayloadError if a sub-block ends before its last item.
        """
        if num_items > self.num_bits:
            raise PayloadError("an array has more items than bits")
        return [read(self._readers[index % NUM_SUB_BLOCKS]) for index in range(num_items)]

    def check_ends(self) -> None:
        """Raises PayloadError unless every sub-block is read to its end."""
        if self.num_bits != 0:
            raise PayloadError("a sub-block does not end where its size says")


def read_sub_blocks(stream: bytes, sizes: Items[tuple[int, int]]) -> list[SubBlocks]:
    """Returns a group of sub-blocks for each pair (base, width) of `sizes`.

    The stream begins with their sizes, `width` bits each, to which the base is added. Then the sub-blocks follow.
    Raises PayloadError if they do not fill the stream.
    """
    bits = BitReader(stream)
    position = NUM_SUB_BLOCKS * sum(width for _, width in sizes)
    groups = []
    for base, width in sizes:
        readers = []
        for _ in range(NUM_SUB_BLOCKS):
            end = position + base + bits.take(width)
            if end > len(stream) * 8:
                raise PayloadError("a sub-block ends after the end of the stream")
            readers.append(BitReader(stream, position, end))
            position = end
        groups.append(SubBlocks(readers))
    if -(-position // 8) != len(stream):
        raise PayloadError("the sub-blocks do not fill the stream")
    return groups
