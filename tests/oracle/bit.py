"""Readable decoder of gompresso-bit (docs/format.md; Gompresso, Sitaridi et al. 2016, section 3).

gompresso-bit-dictionary has more offset symbols, which stand for addresses in the dictionary (docs/format.md).
"""

from __future__ import annotations

import struct

from oracle.constants import (
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
    NUM_DICTIONARY_SYMBOLS,
    NUM_LENGTH_SYMBOLS,
    NUM_LITERAL_SYMBOLS,
    NUM_MATCH_CLASSES,
    NUM_OFFSET_SYMBOLS,
    NUM_SUB_BLOCKS,
    NUM_TOKEN_SYMBOLS,
    OFFSET_SYMBOL_REPEAT,
)
from oracle.sequences import DecodedPayload, PayloadError, Sequence
from oracle.streams import BitReader, CanonicalCode, SubBlocks, read_sub_blocks

_HEADER = struct.Struct("<BBBBIIIII")


def read_bit_payload(payload: bytes, uncompressed_size: int, dictionary: bytes | None = None) -> DecodedPayload:
    """Returns the sequences and literals of a payload, which is of gompresso-bit-dictionary if there is a dictionary.

    Raises PayloadError if it is invalid.
    """
    if len(payload) < BIT_HEADER_SIZE + BIT_PADDING:
        raise PayloadError("the payload ends inside its header")
    flags, group_size_log2, *widths, num_sequences, num_literals, base, literal_base, codes_size = _HEADER.unpack_from(
        payload
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
    literal_code, token_code, offset_code = _read_codes(
        payload[BIT_HEADER_SIZE:stream_start], NUM_OFFSET_SYMBOLS + (NUM_DICTIONARY_SYMBOLS if dictionary else 0)
    )
    if (num_literals and literal_code.is_empty) or (num_sequences and token_code.is_empty):
        raise PayloadError("there are items, but no codewords for them")
    stream = payload[stream_start : len(payload) - BIT_PADDING]
    sequence_blocks, literal_blocks = read_sub_blocks(stream, [(base, widths[0]), (literal_base, widths[1])])
    sequences = _read_sequences(sequence_blocks, num_sequences, token_code, offset_code)
    literals = bytes(literal_blocks.read_array(num_literals, literal_code.read))
    literal_blocks.check_ends()
    return DecodedPayload(bool(flags), group_size_log2, sequences, literals, dictionary or b"")


def _read_codes(code_lengths: bytes, num_offset_symbols: int) -> tuple[CanonicalCode, CanonicalCode, CanonicalCode]:
    """Returns the codes of literals, tokens and offsets.

    Their code lengths are stored one after another, Huffman-coded themselves.
    """
    bits = BitReader(code_lengths)
    length_code = CanonicalCode([bits.take(LENGTH_FIELD_BITS) for _ in range(NUM_LENGTH_SYMBOLS)], MAX_LENGTH_BITS)
    count = NUM_LITERAL_SYMBOLS + NUM_TOKEN_SYMBOLS + num_offset_symbols
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


def _read_sequences(
    sub_blocks: SubBlocks, num_sequences: int, token_code: CanonicalCode, offset_code: CanonicalCode
) -> list[Sequence]:
    """Returns the sequences. NUM_SUB_BLOCKS consecutive sequences, one of each sub-block, are a row."""
    sequences: list[Sequence] = []
    last_offset = 0

    def read_sequence(bits: BitReader) -> None:
        nonlocal last_offset
        if len(sequences) % NUM_SUB_BLOCKS == 0:
            last_offset = 0  # an offset repeats only an offset of the same row
        literal_class, match_class = divmod(token_code.read(bits), NUM_MATCH_CLASSES)
        literal_length = LITERAL_CLASS_BASE[literal_class] + bits.take(LITERAL_CLASS_EXTRA_BITS[literal_class])
        if match_class == 0:
            sequences.append(Sequence(literal_length, 0, 0))
            return
        match_length = MATCH_CLASS_BASE[match_class] + bits.take(MATCH_CLASS_EXTRA_BITS[match_class])
        symbol = offset_code.read(bits)
        if symbol >= NUM_OFFSET_SYMBOLS:  # last_offset stays: it is never an address
            address = _read_address(bits, symbol - NUM_OFFSET_SYMBOLS)
            sequences.append(Sequence(literal_length, match_length, -1 - address))
            return
        last_offset = _read_offset(bits, symbol) or last_offset
        if last_offset == 0:
            raise PayloadError("the first match of a row repeats an offset")
        sequences.append(Sequence(literal_length, match_length, last_offset))

    sub_blocks.read_array(num_sequences, read_sequence)
    sub_blocks.check_ends()
    return sequences


def _read_offset(bits: BitReader, symbol: int) -> int:
    """Returns a match offset, or 0 if the previous offset is repeated."""
    if symbol == OFFSET_SYMBOL_REPEAT:
        return 0
    num_extra_bits, half = divmod(symbol - 1, 2)
    return ((2 + half) << num_extra_bits) - 1 + bits.take(num_extra_bits)


def _read_address(bits: BitReader, symbol: int) -> int:
    """Returns an address in the dictionary; `symbol` is counted from the first one of the dictionary."""
    num_extra_bits, quarter = divmod(symbol, 4)
    return ((4 + quarter) << num_extra_bits) - 4 + bits.take(num_extra_bits)
