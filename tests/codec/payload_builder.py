"""Writes payloads from docs/format.md, with a random choice wherever the format permits one.

The encoder makes one of many valid payloads for a content. Decoders must accept all of them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Collection, Sequence

from oracle.constants import (
    BIT_PADDING,
    BYTE_LITERAL_ESCAPE,
    BYTE_MATCH_ESCAPE,
    BYTE_MATCH_SHIFT,
    BYTE_MIN_MATCH_LENGTH,
    LENGTH_FIELD_BITS,
    LENGTH_SYMBOL_MANY_ZEROS,
    LENGTH_SYMBOL_REPEAT,
    LENGTH_SYMBOL_ZEROS,
    LITERAL_CLASS_BASE,
    LITERAL_CLASS_EXTRA_BITS,
    MATCH_CLASS_BASE,
    MATCH_CLASS_EXTRA_BITS,
    MAX_LENGTH_BITS,
    MAX_LITERAL_BITS,
    MAX_OFFSET_BITS,
    MAX_SIZE_WIDTH,
    MAX_TOKEN_BITS,
    NUM_DICTIONARY_SYMBOLS,
    NUM_LENGTH_SYMBOLS,
    NUM_LITERAL_SYMBOLS,
    NUM_MATCH_CLASSES,
    NUM_OFFSET_SYMBOLS,
    NUM_SUB_BLOCKS,
    NUM_TOKEN_SYMBOLS,
    OFFSET_SYMBOL_REPEAT,
)
from oracle.sequences import DecodedPayload

Bits = list[tuple[int, int]]
"""Pairs of a number and its count of bits. The first pair is stored in the lowest bits."""


def build_byte(decoded: DecodedPayload) -> bytes:
    """Returns the gompresso-byte payload of these sequences. The format leaves no choice."""
    tokens, extensions, offsets = bytearray(), bytearray(), bytearray()
    for literal_length, match_length, match_offset in decoded.sequences:
        match_code = match_length - BYTE_MIN_MATCH_LENGTH + 1 if match_length else 0
        tokens.append(min(literal_length, BYTE_LITERAL_ESCAPE) | min(match_code, BYTE_MATCH_ESCAPE) << BYTE_MATCH_SHIFT)
        if literal_length >= BYTE_LITERAL_ESCAPE:
            extensions.append(literal_length - BYTE_LITERAL_ESCAPE)
        if match_code >= BYTE_MATCH_ESCAPE:
            extensions.append(match_code - BYTE_MATCH_ESCAPE)
        offsets += match_offset.to_bytes(2, "little")
    counts = (len(tokens), len(extensions), len(decoded.literals))
    header = struct.pack("<BBHIII", decoded.dependency_elimination, decoded.group_size_log2, 0, *counts)
    return b"".join((header, offsets, tokens, extensions, decoded.literals))


def build_bit(decoded: DecodedPayload, rng: random.Random, *, must_repeat: Collection[int] = ()) -> bytes:
    """Returns a gompresso-bit payload of these sequences, with random codes, runs, widths and repeated offsets.

    If they have a dictionary, the payload is of gompresso-bit-dictionary. Sequences with numbers in `must_repeat` are
    written as if they repeated an offset, also if they do not.
    """
    num_offset_symbols = NUM_OFFSET_SYMBOLS + (NUM_DICTIONARY_SYMBOLS if decoded.dictionary else 0)
    literal_code = random_code(set(decoded.literals), NUM_LITERAL_SYMBOLS, MAX_LITERAL_BITS, rng)
    fields = [sequence_fields(*sequence) for sequence in decoded.sequences]
    repeat_offsets(decoded, fields, rng)
    for index in must_repeat:
        fields[index] = (*fields[index][:2], OFFSET_SYMBOL_REPEAT, (0, 0))
    tokens = {token for token, _, _, _ in fields}
    offsets = {symbol for _, _, symbol, _ in fields if symbol is not None}
    token_code = random_code(tokens, NUM_TOKEN_SYMBOLS, MAX_TOKEN_BITS, rng)
    offset_code = random_code(offsets, num_offset_symbols, MAX_OFFSET_BITS, rng)
    token_words, offset_words, literal_words = map(codewords, (token_code, offset_code, literal_code))
    sequence_items: list[Bits] = []
    for token, extra, symbol, offset_extra in fields:
        offset: Bits = [offset_words[symbol], offset_extra] if symbol is not None else []
        sequence_items.append([token_words[token], *extra, *offset])
    literal_items = [[literal_words[literal]] for literal in decoded.literals]
    lengths = to_bytes(write_lengths([*literal_code, *token_code, *offset_code], rng))
    base, width, sizes, stream = deal_out([sequence_items], rng)
    literal_base, literal_width, literal_sizes, literal_stream = deal_out([literal_items], rng)
    header = struct.pack(
        "<BBBBIIIII", decoded.dependency_elimination, decoded.group_size_log2, width, literal_width,
        len(decoded.sequences), len(decoded.literals), base, literal_base, len(lengths),
    )  # fmt: skip
    return header + lengths + to_bytes(sizes + literal_sizes + stream + literal_stream) + bytes(BIT_PADDING)


def deal_out(arrays: Sequence[Sequence[Bits]], rng: random.Random | None) -> tuple[int, int, Bits, Bits]:
    """Deals the items of each array out to the sub-blocks. Returns the base and width of their sizes, which are random
    with a random generator and small without one; the sizes; and the sub-blocks.
    """
    sub_blocks: list[Bits] = [[] for _ in range(NUM_SUB_BLOCKS)]
    for items in arrays:
        for index, item in enumerate(items):
            sub_blocks[index % NUM_SUB_BLOCKS] += item
    num_bits = [sum(count for _, count in bits) for bits in sub_blocks]
    base = rng.randint(0, min(num_bits)) if rng else min(num_bits)
    width = (max(num_bits) - base).bit_length()
    if rng:
        width = rng.randint(width, MAX_SIZE_WIDTH)
    return base, width, [(size - base, width) for size in num_bits], [number for bits in sub_blocks for number in bits]


def to_bytes(bits: Bits) -> bytes:
    """Concatenates the numbers. The unused bits of the last byte are zero."""
    digits = "".join(f"{value:0{count}b}"[::-1] for value, count in bits if count)
    return bytes(int(digits[place : place + 8][::-1], 2) for place in range(0, len(digits), 8))


def sequence_fields(
    literal_length: int, match_length: int, match_offset: int
) -> tuple[int, Bits, int | None, tuple[int, int]]:
    """Returns the token, its extra bits, the offset symbol (None without a match), and its extra bits."""
    literal_class = max(index for index, base in enumerate(LITERAL_CLASS_BASE) if base <= literal_length)
    match_class = max(index for index, base in enumerate(MATCH_CLASS_BASE) if base <= match_length)
    extra = [
        (literal_length - LITERAL_CLASS_BASE[literal_class], LITERAL_CLASS_EXTRA_BITS[literal_class]),
        (match_length - MATCH_CLASS_BASE[match_class], MATCH_CLASS_EXTRA_BITS[match_class]),
    ]
    token = literal_class * NUM_MATCH_CLASSES + match_class
    if match_length == 0:
        return token, extra, None, (0, 0)
    if match_offset < 0:
        address = -1 - match_offset
        num_extra_bits = (address + 4).bit_length() - 3
        first = NUM_OFFSET_SYMBOLS + 4 * num_extra_bits
        quarter, address_extra = divmod(address + 4, 1 << num_extra_bits)
        return token, extra, first + quarter - 4, (address_extra, num_extra_bits)
    num_extra_bits = (match_offset + 1).bit_length() - 2
    half = (match_offset + 1 >> num_extra_bits) & 1
    offset_extra = (match_offset + 1) & ((1 << num_extra_bits) - 1)
    return token, extra, 1 + 2 * num_extra_bits + half, (offset_extra, num_extra_bits)


def repeat_offsets(
    decoded: DecodedPayload, fields: list[tuple[int, Bits, int | None, tuple[int, int]]], rng: random.Random
) -> None:
    """Codes some of the offsets that may be repeated as repeated ones."""
    last_offset = 0
    for index, (_, match_length, match_offset) in enumerate(decoded.sequences):
        last_offset = 0 if index % NUM_SUB_BLOCKS == 0 else last_offset
        if match_length and match_offset == last_offset and rng.random() < 0.8:
            fields[index] = (*fields[index][:2], OFFSET_SYMBOL_REPEAT, (0, 0))
        last_offset = match_offset if match_offset > 0 else last_offset


def random_code(used: Collection[int], num_symbols: int, max_bits: int, rng: random.Random) -> list[int]:
    """Returns codeword lengths of a random complete code for the symbols `used` and sometimes others."""
    symbols = set(used) | set(rng.sample(range(num_symbols), rng.choice((0, 0, 1, 5))))
    if len(symbols) == 1:
        return [int(symbol in symbols) for symbol in range(num_symbols)]
    leaves = [0] if symbols else []
    while len(leaves) < len(symbols):
        depth = leaves.pop(rng.choice([index for index, depth in enumerate(leaves) if depth < max_bits]))
        leaves += [depth + 1, depth + 1]
    rng.shuffle(leaves)
    lengths = dict(zip(sorted(symbols), leaves, strict=True))
    return [lengths.get(symbol, 0) for symbol in range(num_symbols)]


def codewords(lengths: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Returns the codeword of each symbol, with its first bit lowest, and its length."""
    codeword, previous = 0, 0
    made = {}
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths) if length):
        codeword <<= length - previous
        made[symbol] = int(f"{codeword:0{length}b}"[::-1], 2), length
        codeword, previous = codeword + 1, length
    return made


def write_lengths(lengths: list[int], rng: random.Random) -> Bits:
    """Returns the code lengths as runs of random size, after the code that codes them."""
    symbols: list[tuple[int, tuple[int, int]]] = []
    place = 0
    while place < len(lengths):
        value = lengths[place]
        run = 1
        while place + run < len(lengths) and lengths[place + run] == value:
            run += 1
        repeats = value == (lengths[place - 1] if place else 0)
        taken = rng.randint(1, run) if rng.random() < 0.3 else run
        if value == 0 and taken >= 11:
            taken = min(taken, 138)
            symbols.append((LENGTH_SYMBOL_MANY_ZEROS, (taken - 11, 7)))
        elif value == 0 and taken >= 3 and rng.random() < 0.8:
            taken = min(taken, 10)
            symbols.append((LENGTH_SYMBOL_ZEROS, (taken - 3, 3)))
        elif repeats and taken >= 3:
            taken = min(taken, 6)
            symbols.append((LENGTH_SYMBOL_REPEAT, (taken - 3, 2)))
        else:
            taken = 1
            symbols.append((value, (0, 0)))
        place += taken
    code = random_code({symbol for symbol, _ in symbols}, NUM_LENGTH_SYMBOLS, MAX_LENGTH_BITS, rng)
    bits: Bits = [(length, LENGTH_FIELD_BITS) for length in code]
    words = codewords(code)
    for symbol, extra in symbols:
        bits += [words[symbol], extra]
    return bits
