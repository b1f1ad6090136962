"""Readable decoder of gompresso-bit (docs/format.md; Gompresso, Sitaridi et al. 2016, section 3)."""

from __future__ import annotations

import struct
from collections.abc import Sequence as Items

from gompfs.codec.constants import (
    BIT_HEADER_SIZE,
    BIT_PADDING,
    FLAG_DEPENDENCY_ELIMINATION,
    LENGTH_FIELD_BITS,
    LENGTH_SYMBOL_MANY_ZEROS,
    LENGTH_SYMBOL_REPEAT,
    LENGTH_SYMBOL_ZEROS,
    LITERAL_CLASS_BASE,
    LITERAL_CLASS_EXTRA_BITS,
    MATCH_CLASS_BASE,
    MATCH_CLASS_EXTRA_BITS,
    MAX_GROUP_SIZE_LOG2,
    MAX_LENGTH_BITS,
    MAX_LITERAL_BITS,
    MAX_OFFSET_BITS,
    MAX_SIZE_WIDTH,
    MAX_TOKEN_BITS,
    MIN_GROUP_SIZE_LOG2,
    NUM_LENGTH_SYMBOLS,
    NUM_LITERAL_SYMBOLS,
    NUM_MATCH_CLASSES,
    NUM_OFFSET_SYMBOLS,
    NUM_SUB_BLOCKS,
    NUM_TOKEN_SYMBOLS,
    OFFSET_SYMBOL_REPEAT,
)
from gompfs.codec.sequences import DecodedPayload, PayloadError, Sequence

_HEADER = struct.Struct("<BBBBIIIII")


class BitReader:
    """Reads a stream of bits, the lowest bit of each byte first, up to bit number `end`."""

    def __init__(self, stream: bytes, start: int = 0, end: int | None = None) -> None:
        self._bits = int.from_bytes(stream, "little")
        self.position = start
        self.end = len(stream) * 8 if end is None else end

    def peek(self, count: int) -> int:
        """Returns the next `count` bits without advancing. Bits after the end of the stream read as zeros."""
        return self._bits >> self.position & ((1 << count) - 1)

    def take(self, count: int) -> int:
        """Returns the next `count` bits and advances. Raises PayloadError if fewer are left."""
        value = self.peek(count)
        self.position += count
        if self.position > self.end:
            raise PayloadError("a stream ends inside a number")
        return value


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


def read_bit_payload(payload: bytes, uncompressed_size: int) -> DecodedPayload:
    """Returns the sequences and literals of a payload. Raises PayloadError if it is invalid."""
    if len(payload) < BIT_HEADER_SIZE + BIT_PADDING:
        raise PayloadError("the payload ends inside its header")
    flags, group_size_log2, *widths, num_sequences, num_literals, base, literal_base, codes_size = (
        _HEADER.unpack_from(payload)
    )
    if flags > FLAG_DEPENDENCY_ELIMINATION or max(widths) > MAX_SIZE_WIDTH:
        raise PayloadError("the payload has unknown flags or impossible sizes")
    if not MIN_GROUP_SIZE_LOG2 <= group_size_log2 <= MAX_GROUP_SIZE_LOG2:
        raise PayloadError("the payload has impossible groups")
    if num_literals > uncompressed_size or num_sequences > uncompressed_size + (1 << group_size_log2):
        raise PayloadError("the payload has more items than the block has bytes")
    stream_start = BIT_HEADER_SIZE + codes_size
    if stream_start > len(payload) - BIT_PADDING:
        raise PayloadError("the code lengths do not fit into the payload")
    literal_code, token_code, offset_code = _read_codes(payload[BIT_HEADER_SIZE:stream_start])
    if (num_literals and literal_code.is_empty) or (num_sequences and token_code.is_empty):
        raise PayloadError("there are items, but no codewords for them")
    stream = payload[stream_start : len(payload) - BIT_PADDING]
    sequence_places, literal_places = _read_places(stream, (base, literal_base), widths)
    return DecodedPayload(
        bool(flags),
        group_size_log2,
        _read_sequences(stream, sequence_places, num_sequences, token_code, offset_code),
        _read_literals(stream, literal_places, num_literals, literal_code),
    )


def _read_codes(code_lengths: bytes) -> tuple[CanonicalCode, CanonicalCode, CanonicalCode]:
    """Returns the codes of literals, tokens and offsets.

    Their code lengths are stored one after another, Huffman-coded themselves.
    """
    bits = BitReader(code_lengths)
    length_code = CanonicalCode([bits.take(LENGTH_FIELD_BITS) for _ in range(NUM_LENGTH_SYMBOLS)], MAX_LENGTH_BITS)
    count = NUM_LITERAL_SYMBOLS + NUM_TOKEN_SYMBOLS + NUM_OFFSET_SYMBOLS
    lengths: list[int] = []
    while len(lengths) < count:
        symbol = length_code.read(bits)
        if symbol == LENGTH_SYMBOL_REPEAT:
            lengths += [lengths[-1] if lengths else 0] * (3 + bits.take(2))
        elif symbol == LENGTH_SYMBOL_ZEROS:
            lengths += [0] * (3 + bits.take(3))
        elif symbol == LENGTH_SYMBOL_MANY_ZEROS:
            lengths += [0] * (11 + bits.take(7))
        else:
            lengths.append(symbol)
    if len(lengths) != count or -(-bits.position // 8) != len(code_lengths):
        raise PayloadError("the code lengths do not fill their field")
    tokens_end = NUM_LITERAL_SYMBOLS + NUM_TOKEN_SYMBOLS
    return (
        CanonicalCode(lengths[:NUM_LITERAL_SYMBOLS], MAX_LITERAL_BITS),
        CanonicalCode(lengths[NUM_LITERAL_SYMBOLS:tokens_end], MAX_TOKEN_BITS),
        CanonicalCode(lengths[tokens_end:], MAX_OFFSET_BITS),
    )


def _read_places(stream: bytes, bases: tuple[int, int], widths: list[int]) -> list[list[tuple[int, int]]]:
    """Returns the start and end, in bits, of each sub-block of sequences, and of each sub-block of literals."""
    bits = BitReader(stream)
    position = NUM_SUB_BLOCKS * sum(widths)
    ranges: list[list[tuple[int, int]]] = []
    for base, width in zip(bases, widths, strict=True):
        ranges.append([])
        for _ in range(NUM_SUB_BLOCKS):
            end = position + base + bits.peek(width)
            bits.position += width
            if end > len(stream) * 8:
                raise PayloadError("a sub-block ends after the end of the stream")
            ranges[-1].append((position, end))
            position = end
    if -(-position // 8) != len(stream):
        raise PayloadError("the sub-blocks do not fill the stream")
    return ranges


def _readers(stream: bytes, ranges: list[tuple[int, int]]) -> list[BitReader]:
    """Returns a reader per sub-block. It may read past its sub-block; _check_ends detects that."""
    return [BitReader(stream, start) for start, _ in ranges]


def _check_ends(readers: list[BitReader], ranges: list[tuple[int, int]]) -> None:
    if any(reader.position != end for reader, (_, end) in zip(readers, ranges, strict=True)):
        raise PayloadError("a sub-block does not end where its size says")


def _read_literals(
    stream: bytes, ranges: list[tuple[int, int]], num_literals: int, code: CanonicalCode
) -> bytes:
    """Returns the literals. Literal i is the next one of sub-block i % NUM_SUB_BLOCKS."""
    readers = _readers(stream, ranges)
    literals = bytes(code.read(readers[index % NUM_SUB_BLOCKS]) for index in range(num_literals))
    _check_ends(readers, ranges)
    return literals


def _read_sequences(
    stream: bytes,
    ranges: list[tuple[int, int]],
    num_sequences: int,
    token_code: CanonicalCode,
    offset_code: CanonicalCode,
) -> list[Sequence]:
    """Returns the sequences. Sequence i is the next one of sub-block i % NUM_SUB_BLOCKS.

    NUM_SUB_BLOCKS consecutive sequences are a row.
    """
    readers = _readers(stream, ranges)
    sequences = []
    last_offset = 0
    for index in range(num_sequences):
        bits = readers[index % NUM_SUB_BLOCKS]
        if index % NUM_SUB_BLOCKS == 0:
            last_offset = 0  # an offset repeats only an offset of the same row
        literal_class, match_class = divmod(token_code.read(bits), NUM_MATCH_CLASSES)
        literal_length = LITERAL_CLASS_BASE[literal_class] + bits.take(LITERAL_CLASS_EXTRA_BITS[literal_class])
        if match_class == 0:
            sequences.append(Sequence(literal_length, 0, 0))
            continue
        match_length = MATCH_CLASS_BASE[match_class] + bits.take(MATCH_CLASS_EXTRA_BITS[match_class])
        last_offset = _read_offset(bits, offset_code) or last_offset
        if last_offset == 0:
            raise PayloadError("the first match of a row repeats an offset")
        sequences.append(Sequence(literal_length, match_length, last_offset))
    _check_ends(readers, ranges)
    return sequences


def _read_offset(bits: BitReader, code: CanonicalCode) -> int:
    """Returns a match offset, or 0 if the previous offset is repeated."""
    symbol = code.read(bits)
    if symbol == OFFSET_SYMBOL_REPEAT:
        return 0
    num_extra_bits, half = divmod(symbol - 1, 2)
    return ((2 + half) << num_extra_bits) - 1 + bits.take(num_extra_bits)
