"""Readable decoder of the head of a part of gompresso-tadoc (docs/format.md).

A head gives the symbols of a part: words, separators and rules, what each of them expands to, and the code in which
blocks refer to them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice

from oracle.bit import read_bit_payload
from oracle.constants import (
    BIT_PADDING,
    HEAD_HEADER_SIZE,
    MAX_HEAD_PAYLOAD,
    MAX_LEVEL_SIZE_BITS,
    MAX_PART_SYMBOLS,
    MAX_POOL_SIZE,
    MAX_SIZE_WIDTH,
    NUM_HEAD_ARRAYS,
    NUM_LEVELS_BITS,
)
from oracle.expansion import Expansions
from oracle.numbers import ClassCode, rank_symbols, read_class_code, symbol_of_rank
from oracle.sequences import PayloadError
from oracle.streams import BitReader, SubBlocks, read_sub_blocks
from oracle.words import GlobalWords, cut_separators, split_words

_HEADER = struct.Struct("<8I3H2B")


@dataclass(frozen=True)
class Part:
    """The symbols of a part of text, numbered in the order of the fields below."""

    has_splitter: bool
    num_local_words: int
    global_words: list[int]
    """Numbers of words of the section `words`."""
    num_local_separators: int
    global_separators: list[int]
    """Numbers of separators of the section `words`."""
    level_sizes: list[int]
    """How many rules each level has, from level 1 on."""
    rules: list[list[int]]
    """The symbols of each rule, by symbol number."""
    symbols_by_rank: list[int]
    expansions: Expansions
    code: ClassCode
    """The code of ranks in rules and blocks."""

    @property
    def pool(self) -> bytes:
        """The expansions of all symbols, in the order of their numbers."""
        return b"".join(self.expansions.contents)

    def is_splitter(self, symbol: int) -> bool:
        """Returns whether a symbol stands for the end of a file."""
        return self.has_splitter and symbol == 0


@dataclass(frozen=True)
class _Header:
    num_local_words: int
    num_global_words: int
    num_local_separators: int
    num_global_separators: int
    num_rules: int
    token_bytes_size: int
    stored_token_bytes_size: int
    base: int
    num_low_global_words: int
    num_middle_global_words: int
    codes_size: int
    width: int
    splitter: int

    @property
    def num_high_global_words(self) -> int:
        return self.num_global_words - self.num_low_global_words - self.num_middle_global_words

    def check(self, payload_size: int) -> None:
        counts = (self.num_local_words, self.num_global_words, self.num_local_separators, self.num_global_separators)
        if sum(counts) + self.num_rules + self.splitter >= MAX_PART_SYMBOLS or self.num_high_global_words < 0:
            raise PayloadError("the head has impossible numbers of symbols")
        if self.splitter > 1 or self.width > MAX_SIZE_WIDTH:
            raise PayloadError("the head has an unknown flag or impossible sizes")
        if self.stored_token_bytes_size > self.token_bytes_size or self.token_bytes_size > MAX_POOL_SIZE:
            raise PayloadError("the token bytes have an impossible size")
        if HEAD_HEADER_SIZE + self.stored_token_bytes_size + self.codes_size + BIT_PADDING > payload_size:
            raise PayloadError("the token bytes and codes do not fit into the head")


@dataclass(frozen=True)
class _Arrays:
    """Arrays 0 to 9 of the stream. They give the words and separators, and the class of each symbol."""

    prefix_lengths: list[int]
    separator_lengths: list[int]
    global_words: list[int]
    global_separators: list[int]
    classes: list[int]


def read_head(payload: bytes, pool_size: int, words: GlobalWords) -> Part:
    """Returns the part that a head describes. `pool_size` is the uncompressed size in the header of the head.

    Raises PayloadError if the head is invalid, or if its pool has another size.
    """
    if not HEAD_HEADER_SIZE + BIT_PADDING <= len(payload) <= MAX_HEAD_PAYLOAD or not 0 < pool_size <= MAX_POOL_SIZE:
        raise PayloadError("the head has an impossible size")
    header = _Header(*_HEADER.unpack_from(payload))
    header.check(len(payload))
    codes_start = HEAD_HEADER_SIZE + header.stored_token_bytes_size
    stream_start = codes_start + header.codes_size
    token_bytes = _read_token_bytes(payload[HEAD_HEADER_SIZE:codes_start], header.token_bytes_size)
    level_sizes, codes = _read_codes(payload[codes_start:stream_start], header.num_rules)
    (stream,) = read_sub_blocks(payload[stream_start : len(payload) - BIT_PADDING], [(header.base, header.width)])
    arrays = _read_arrays(stream, header, codes)
    symbols_by_rank = rank_symbols(arrays.classes)
    rules = _read_rules(stream, codes, level_sizes, symbols_by_rank, pool_size)
    stream.check_ends()
    if header.splitter and any(0 in rule for rule in rules):
        raise PayloadError("a rule has a splitter")
    suffixes, words_end = split_words(token_bytes, 0, header.num_local_words)
    separators = cut_separators(token_bytes[words_end:], arrays.separator_lengths)
    expansions = Expansions(pool_size)
    if header.splitter:
        expansions.add_splitter()
    for word in _local_words(arrays.prefix_lengths, suffixes):
        expansions.add_word(word)
    for number in arrays.global_words:
        expansions.add_word(words.word(number))
    for separator in (*separators, *map(words.separator, arrays.global_separators)):
        expansions.add_separator(separator)
    for rule in rules:
        expansions.add_rule(rule)
    expansions.check_pool()
    return Part(
        bool(header.splitter), header.num_local_words, arrays.global_words, header.num_local_separators,
        arrays.global_separators, level_sizes, rules, symbols_by_rank, expansions, codes[-1],
    )  # fmt: skip


def _read_token_bytes(stored: bytes, size: int) -> bytes:
    return stored if len(stored) == size else read_bit_payload(stored, size).expand(size)


def _read_codes(codes: bytes, num_rules: int) -> tuple[list[int], list[ClassCode]]:
    """Returns the number of rules of each level, and the class code of each array."""
    bits = BitReader(codes)
    level_sizes = [_read_level_size(bits) for _ in range(bits.take(NUM_LEVELS_BITS))]
    if sum(level_sizes) != num_rules:
        raise PayloadError("the levels have more or fewer rules than the part")
    class_codes = [read_class_code(bits) for _ in range(NUM_HEAD_ARRAYS)]
    if -(-bits.position // 8) != len(codes):
        raise PayloadError("the codes do not fill their field")
    return level_sizes, class_codes


def _read_level_size(bits: BitReader) -> int:
    num_bits = 0
    while bits.take(1):
        num_bits += 1
        if num_bits > MAX_LEVEL_SIZE_BITS:
            raise PayloadError("a level has too many rules")
    return (1 << num_bits) + bits.take(num_bits)


def _read_arrays(stream: SubBlocks, header: _Header, codes: list[ClassCode]) -> _Arrays:
    """Reads arrays 0 to 9."""
    numbers = [code.read_number for code in codes]
    classes = [code.read_class for code in codes]
    prefix_lengths = stream.read_array(header.num_local_words, numbers[0])
    separator_lengths = [1 + number for number in stream.read_array(header.num_local_separators, numbers[1])]
    global_words = _ascending(
        [
            *stream.read_array(header.num_low_global_words, numbers[2]),
            *stream.read_array(header.num_middle_global_words, numbers[3]),
            *stream.read_array(header.num_high_global_words, numbers[4]),
        ]
    )
    global_separators = _ascending(stream.read_array(header.num_global_separators, numbers[5]))
    local_word_classes = stream.read_array(header.num_local_words, classes[6])
    global_word_classes = stream.read_array(header.num_global_words, classes[7])
    num_others = header.splitter + header.num_local_separators + header.num_global_separators
    others = stream.read_array(num_others, classes[8])
    rule_classes = stream.read_array(header.num_rules, classes[9])
    return _Arrays(
        prefix_lengths, separator_lengths, global_words, global_separators,
        [
            *others[: header.splitter], *local_word_classes, *global_word_classes, *others[header.splitter :],
            *rule_classes,
        ],
    )  # fmt: skip


def _ascending(differences: list[int]) -> list[int]:
    """Returns numbers that ascend: each difference is that to the number before, minus 1."""
    return [total - 1 for total in accumulate(difference + 1 for difference in differences)]


def _local_words(prefix_lengths: list[int], suffixes: list[bytes]) -> Iterator[bytes]:
    """Yields the local words one by one, because they could have more bytes together than any pool."""
    previous = b""
    for prefix_length, suffix in zip(prefix_lengths, suffixes, strict=True):
        if prefix_length > len(previous):
            raise PayloadError("a word shares more bytes than the word before it has")
        previous = previous[:prefix_length] + suffix
        if not previous:
            raise PayloadError("a word is empty")
        yield previous


def _read_rules(
    stream: SubBlocks, codes: list[ClassCode], level_sizes: list[int], symbols_by_rank: list[int], pool_size: int
) -> list[list[int]]:
    """Reads arrays 10 to 12, and returns the symbols of each rule."""
    num_rules = sum(level_sizes)
    lengths = [2 + number for number in stream.read_array(num_rules, codes[10].read_number)]
    if sum(lengths) > pool_size:
        raise PayloadError("the rules have more symbols than the pool has bytes")
    differences = iter(stream.read_array(num_rules, codes[11].read_number))
    other_ranks = iter(stream.read_array(sum(lengths) - num_rules, codes[12].read_number))
    rules: list[list[int]] = []
    level_start = len(symbols_by_rank) - num_rules
    for level_size in level_sizes:
        for first_rank in accumulate(islice(differences, level_size)):
            ranks = [first_rank, *islice(other_ranks, lengths[len(rules)] - 1)]
            symbols = [symbol_of_rank(symbols_by_rank, rank) for rank in ranks]
            if max(symbols) >= level_start:
                raise PayloadError("a rule uses a symbol that is not of a lower level")
            rules.append(symbols)
        level_start += level_size
    return rules
