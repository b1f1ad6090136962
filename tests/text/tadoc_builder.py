"""Writes gompresso-tadoc from docs/format.md: the section `words`, heads of parts, and blocks.

With a random generator, every choice that the format leaves is made at random; without one, the choice is that of a
small payload. Decoders must accept all of them.
"""

from __future__ import annotations

import heapq
import itertools
import random
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from oracle.constants import (
    BIT_PADDING,
    CLASS_LENGTH_BITS,
    MAX_CLASS_BITS,
    NUM_CLASS_LENGTHS_BITS,
    NUM_CLASSES,
    NUM_HEAD_ARRAYS,
    NUM_LEVELS_BITS,
    TADOC_MAX_OVERHEAD,
    WORD_RESTART,
)
from oracle.numbers import class_base, class_of, num_extra_bits
from payload_builder import Bits, codewords, deal_out, random_code, to_bytes
from payloads import encode
from tadoc_grammar import SPLITTER, Grammar, Piece, Rule, Symbol, Token, make_grammar, tokens_of

from gompfs.codec import Codec

Random = random.Random | None


@dataclass
class GlobalTokens:
    """The words and separators of the section `words`, in order."""

    words: list[bytes] = field(default_factory=list)
    separators: list[bytes] = field(default_factory=list)

    def section(self) -> bytes:
        prefix_lengths = bytearray()
        suffixes = []
        for number, word in enumerate(self.words):
            before = self.words[number - 1] if number % WORD_RESTART else b""
            prefix_lengths.append(min(shared_length(before, word), 255))
            suffixes.append(word[prefix_lengths[-1] :] + b" ")
        lengths = struct.pack(f"<{len(self.separators)}H", *map(len, self.separators))
        counts = struct.pack("<II", len(self.words), len(self.separators))
        return b"".join((counts, prefix_lengths, *suffixes, lengths, *self.separators))


def common_tokens(parts: Iterable[Iterable[Symbol]]) -> GlobalTokens:
    """Returns the words and separators that two or more parts use, those of most parts first. A part is its tokens."""
    uses = Counter(token for tokens in parts for token in set(tokens) if isinstance(token, Token) and token.content)
    common = sorted((-count, token) for token, count in uses.items() if count > 1)
    return GlobalTokens(
        [token.content for _, token in common if token.is_word],
        [token.content for _, token in common if not token.is_word],
    )


@dataclass
class BlockPlan:
    """The symbols of a block, the bytes of the first one that the block before has, and the size of the block."""

    skip: int
    symbols: list[Symbol]
    size: int


@dataclass
class BuiltPart:
    """The payloads of a part, and what they must decode to."""

    plan: HeadPlan
    head: bytes
    pool: bytes
    blocks: list[bytes]
    contents: list[bytes]
    root: list[int]
    rules: list[list[int]]


def build_part(
    pieces: Sequence[Piece],
    global_tokens: GlobalTokens | None = None,
    *,
    block_size: int = 1 << 14,
    rng: Random = None,
    grammar: Grammar | None = None,
    word_rule: str = "identifiers",
) -> BuiltPart:
    """Returns a part that holds these pieces of files. The grammar is a simple one if none is given."""
    grammar = grammar or make_grammar(tokens_of(pieces, word_rule))
    text = b"".join(piece.content for piece in pieces)
    symbols = PartSymbols(grammar, global_tokens or GlobalTokens())
    plans = cut_blocks(grammar, text, block_size)
    ranks = [[symbols.rank[symbol] for symbol in plan.symbols] for plan in plans]
    rules = [[symbols.rank[symbol] for symbol in grammar.rules[rule.index]] for rule in symbols.rules]
    others = [rank for body in rules for rank in body[1:]]
    contents = [text[start : start + block_size] for start in range(0, len(text), block_size)]
    rank_classes = [class_of(rank) for rank in itertools.chain(others, *ranks)]
    rank_code = make_code(rank_classes, rng)
    blocks = build_blocks(plans, ranks, rank_code, rng)
    if any(len(block) > len(content) + TADOC_MAX_OVERHEAD for block, content in zip(blocks, contents, strict=True)):
        rank_code = make_code(rank_classes, None)
        blocks = build_blocks(plans, ranks, rank_code, None)
    plan = plan_head(symbols, rules, rank_code, rng)
    return BuiltPart(
        plan,
        plan.write(rng),
        symbols.pool(),
        blocks,
        contents,
        [symbols.number[symbol] for symbol in grammar.root],
        [[symbols.number[symbol] for symbol in grammar.rules[rule.index]] for rule in symbols.rules],
    )


class PartSymbols:
    """The symbols of a part in the order of their numbers, with their classes and ranks."""

    def __init__(self, grammar: Grammar, global_tokens: GlobalTokens) -> None:
        self.grammar = grammar
        uses = Counter(symbol for body in (grammar.root, *grammar.rules) for symbol in body)
        word_numbers = {word: number for number, word in enumerate(global_tokens.words)}
        separator_numbers = {separator: number for number, separator in enumerate(global_tokens.separators)}
        words = [symbol.content for symbol in uses if isinstance(symbol, Token) and symbol.is_word]
        separators = [
            symbol.content
            for symbol in uses
            if isinstance(symbol, Token) and not symbol.is_word and symbol is not SPLITTER
        ]
        self.has_splitter = SPLITTER in uses
        self.local_words = sorted(word for word in words if word not in word_numbers)
        self.global_words = sorted(word_numbers[word] for word in words if word in word_numbers)
        self.local_separators = sorted(separator for separator in separators if separator not in separator_numbers)
        self.global_separators = sorted(separator_numbers[item] for item in separators if item in separator_numbers)
        frequent = [*uses, *(rule for rule in map(Rule, range(len(grammar.rules))) if rule not in uses)]
        frequent.sort(key=lambda symbol: -uses[symbol])
        self.class_of = {symbol: class_of(rank) for rank, symbol in enumerate(frequent)}
        self.rank: dict[Symbol, int] = {}
        self._next_rank = {number_class: class_base(number_class) for number_class in range(NUM_CLASSES)}
        for token in self._tokens(global_tokens):
            self._add(token)
        self.rules: list[Rule] = []
        self.level_sizes: list[int] = []
        self._add_rules()
        self.number = {symbol: number for number, symbol in enumerate(self.rank)}

    def _tokens(self, global_tokens: GlobalTokens) -> Iterable[Token]:
        if self.has_splitter:
            yield SPLITTER
        for word in (*self.local_words, *map(global_tokens.words.__getitem__, self.global_words)):
            yield Token(word, True)
        for item in (*self.local_separators, *map(global_tokens.separators.__getitem__, self.global_separators)):
            yield Token(item, False)

    def _add(self, symbol: Symbol) -> None:
        number_class = self.class_of[symbol]
        self.rank[symbol] = self._next_rank[number_class]
        self._next_rank[number_class] += 1

    def _add_rules(self) -> None:
        by_level: dict[int, list[Rule]] = {}
        for index, level in enumerate(self.grammar.levels()):
            by_level.setdefault(level, []).append(Rule(index))
        for _, rules in sorted(by_level.items()):
            rules.sort(key=lambda rule: self.rank[self.grammar.rules[rule.index][0]])
            self.rules += rules
            self.level_sizes.append(len(rules))
            for rule in rules:
                self._add(rule)

    def classes(self, first: int, last: int) -> list[int]:
        return [self.class_of[symbol] for symbol in list(self.rank)[first:last]]

    def pool(self) -> bytes:
        return b"".join(map(self.expansion, self.rank))

    def expansion(self, symbol: Symbol) -> bytes:
        tokens = list(self.grammar.tokens(symbol))
        spaced = zip(tokens, [*tokens[1:], None], strict=True)
        return b"".join(
            token.content + b" " * (token.is_word and (after is None or after.is_word)) for token, after in spaced
        )


def cut_blocks(grammar: Grammar, text: bytes, block_size: int) -> list[BlockPlan]:
    """Cuts the root into blocks. A symbol belongs to each block in which it has bytes; a splitter to the block in which
    its file ends.
    """
    starts: list[int] = []
    position = 0
    after_word = False
    for symbol in grammar.root:
        for index, token in enumerate(grammar.tokens(symbol)):
            position += after_word and token.is_word
            if index == 0:
                # a space between words belongs to the symbol before it
                starts.append(position)
            assert text[position : position + len(token.content)] == token.content
            position += len(token.content)
            after_word = token.is_word
    assert position == len(text)
    plans = []
    for start in range(0, len(text), block_size):
        end = min(start + block_size, len(text))
        items = [
            (symbol, begin)
            for symbol, begin, after in zip(grammar.root, starts, [*starts[1:], len(text)], strict=True)
            if (start < begin <= end if symbol is SPLITTER else begin < end and after > start)
        ]
        plans.append(BlockPlan(max(0, start - items[0][1]), [symbol for symbol, _ in items], end - start))
    return plans


def build_blocks(
    plans: Sequence[BlockPlan], ranks: Sequence[Sequence[int]], rank_code: list[int], rng: Random
) -> list[bytes]:
    return [build_block(block, plan.skip, rank_code, rng) for plan, block in zip(plans, ranks, strict=True)]


def build_block(ranks: Sequence[int], skip: int, rank_code: Sequence[int], rng: Random = None) -> bytes:
    words = codewords(rank_code)
    base, width, sizes, stream = deal_out([[number_bits(rank, words) for rank in ranks]], rng)
    return struct.pack("<IIHBB", len(ranks), base, skip, width, 0) + to_bytes(sizes + stream) + bytes(BIT_PADDING)


@dataclass
class HeadPlan:
    """What a head holds, before it is coded."""

    arrays: list[list[int]]
    token_bytes: bytes
    level_sizes: list[int]
    rank_code: list[int]
    has_splitter: bool

    def write(self, rng: Random = None, codes: dict[int, list[int]] | None = None) -> bytes:
        """Returns the payload. `codes` has the class codes of some arrays; the others are made.

        A class without a codeword, which no valid head has, is written as zeros.
        """
        is_class = [6 <= array <= 9 for array in range(NUM_HEAD_ARRAYS)]
        class_codes = [
            make_code(items if coded else map(class_of, items), rng)
            for items, coded in zip(self.arrays, is_class, strict=True)
        ]
        class_codes[-1] = self.rank_code
        for array, code in (codes or {}).items():
            class_codes[array] = code
        written: list[list[Bits]] = []
        for items, coded, code in zip(self.arrays, is_class, class_codes, strict=True):
            words = dict.fromkeys(range(NUM_CLASSES), (0, MAX_CLASS_BITS)) | codewords(code)
            written.append([[words[item]] if coded else number_bits(item, words) for item in items])
        base, width, sizes, stream = deal_out(written, rng)
        codes_field = to_bytes(write_codes(self.level_sizes, class_codes, rng))
        stored = store_token_bytes(self.token_bytes, rng)
        sizes_of_arrays = [len(items) for items in self.arrays]
        header = struct.pack(
            "<8I3H2B", sizes_of_arrays[0], sum(sizes_of_arrays[2:5]), sizes_of_arrays[1], sizes_of_arrays[5],
            sizes_of_arrays[10], len(self.token_bytes), len(stored), base,
            sizes_of_arrays[2], sizes_of_arrays[3], len(codes_field), width, self.has_splitter,
        )  # fmt: skip
        return header + stored + codes_field + to_bytes(sizes + stream) + bytes(BIT_PADDING)


def plan_head(
    symbols: PartSymbols, rules: Sequence[Sequence[int]], rank_code: list[int], rng: Random = None
) -> HeadPlan:
    """Returns what the head of a part holds. `rules` are those of the part, as ranks."""
    prefix_lengths, token_bytes = write_tokens(symbols, rng)
    words_start = int(symbols.has_splitter)
    local_end = words_start + len(symbols.local_words)
    words_end = local_end + len(symbols.global_words)
    rules_start = len(symbols.rank) - len(rules)
    globals_by_size: list[list[int]] = [[], [], []]
    for number, difference in zip(symbols.global_words, differences(symbols.global_words), strict=True):
        globals_by_size[(number >= 4096) + (number >= 65536)].append(difference)
    arrays = [
        prefix_lengths,
        [len(separator) - 1 for separator in symbols.local_separators],
        *globals_by_size,
        differences(symbols.global_separators),
        symbols.classes(words_start, local_end),
        symbols.classes(local_end, words_end),
        symbols.classes(0, words_start) + symbols.classes(words_end, rules_start),
        symbols.classes(rules_start, len(symbols.rank)),
        [len(body) - 2 for body in rules],
        first_ranks(rules, symbols.level_sizes),
        [rank for body in rules for rank in body[1:]],
    ]
    return HeadPlan(arrays, token_bytes, symbols.level_sizes, rank_code, symbols.has_splitter)


def write_tokens(symbols: PartSymbols, rng: Random) -> tuple[list[int], bytes]:
    prefix_lengths = []
    token_bytes = bytearray()
    before = b""
    for word in symbols.local_words:
        shared = shared_length(before, word)
        prefix_lengths.append(rng.randint(0, shared) if rng and rng.random() < 0.2 else shared)
        token_bytes += word[prefix_lengths[-1] :] + b" "
        before = word
    return prefix_lengths, bytes(token_bytes) + b"".join(symbols.local_separators)


def shared_length(before: bytes, word: bytes) -> int:
    """Returns the length of the longest prefix that two words share."""
    return next(
        (index for index, pair in enumerate(zip(before, word, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(word)),
    )


def store_token_bytes(token_bytes: bytes, rng: Random) -> bytes:
    if rng and rng.random() < 0.3:
        return token_bytes
    codec, payload = encode(token_bytes, Codec.GOMPRESSO_BIT) if token_bytes else (Codec.STORED, b"")
    return payload if codec is Codec.GOMPRESSO_BIT else token_bytes


def write_codes(level_sizes: Sequence[int], codes: Sequence[Sequence[int]], rng: Random) -> Bits:
    bits: Bits = [(len(level_sizes), NUM_LEVELS_BITS)]
    for size in level_sizes:
        num_bits = size.bit_length() - 1
        bits += [((1 << num_bits) - 1, num_bits + 1), (size - (1 << num_bits), num_bits)]
    for code in codes:
        num_lengths = max((index + 1 for index, length in enumerate(code) if length), default=0)
        if rng and rng.random() < 0.2:
            num_lengths = rng.randint(num_lengths, NUM_CLASSES)
        bits.append((num_lengths, NUM_CLASS_LENGTHS_BITS))
        bits += [(length, CLASS_LENGTH_BITS) for length in code[:num_lengths]]
    return bits


def number_bits(number: int, words: dict[int, tuple[int, int]]) -> Bits:
    """Returns the codeword of the number's class, and the extra bits."""
    number_class = class_of(number)
    return [words[number_class], (number - class_base(number_class), num_extra_bits(number_class))]


def differences(numbers: Sequence[int]) -> list[int]:
    return [number - before - 1 for before, number in itertools.pairwise((-1, *numbers))]


def first_ranks(rules: Sequence[Sequence[int]], level_sizes: Sequence[int]) -> list[int]:
    firsts = iter([body[0] for body in rules])
    coded = []
    for size in level_sizes:
        level = list(itertools.islice(firsts, size))
        coded += [rank - before for before, rank in itertools.pairwise((0, *level))]
    return coded


def make_code(classes: Iterable[int], rng: Random) -> list[int]:
    """Returns codeword lengths of the classes: random ones, or those of a Huffman code."""
    counts = Counter(classes)
    return random_code(list(counts), NUM_CLASSES, MAX_CLASS_BITS, rng) if rng else huffman_code(counts)


def huffman_code(counts: Counter[int]) -> list[int]:
    """Returns the lengths of a Huffman code. Counts are evened out until no codeword is too long."""
    lengths = [0] * NUM_CLASSES
    if len(counts) < 2:
        for item in counts:
            lengths[item] = 1
        return lengths
    heap = [(count, item, [item]) for item, count in sorted(counts.items())]
    heapq.heapify(heap)
    while len(heap) > 1:
        count, item, items = heapq.heappop(heap)
        other_count, _, other_items = heapq.heappop(heap)
        for merged in (*items, *other_items):
            lengths[merged] += 1
        heapq.heappush(heap, (count + other_count, item, items + other_items))
    if max(lengths) <= MAX_CLASS_BITS:
        return lengths
    return huffman_code(Counter({item: count // 2 + 1 for item, count in counts.items()}))
