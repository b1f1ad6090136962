"""Damaged gompresso-tadoc: each check of the readable decoder is reached by a section, head or block that breaks it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest
from both_decoders import decode_tadoc, frame, head_of_global_tokens, read_block, read_head, read_words
from oracle.constants import (
    MAX_BLOCK_SIZE,
    MAX_EXPANSION_SIZE,
    MAX_HEAD_PAYLOAD,
    MAX_POOL_SIZE,
    MAX_SIZE_WIDTH,
    NUM_CLASSES,
)
from oracle.sequences import PayloadError
from oracle.tadoc import Part
from tadoc_builder import BuiltPart, GlobalTokens, HeadPlan, build_block, build_part
from tadoc_grammar import Grammar, Piece, Rule, Symbol, Token

from gompfs._native.text import WordRule, read_segment_grammar
from gompfs.codec import Codec

GLOBAL = GlobalTokens([b"shared", b"word"], [b"\n"])
WORDS = read_words(GLOBAL.section())
PIECES = [
    Piece(b"ab abc ab abc; ab abc ab abc; shared ab abc\nab x; ab x; shared"),
    Piece(b"ab\n  abc ab abc"),
]


def sample() -> BuiltPart:
    """Symbols: 0 splitter, 1 `ab`, 2 `abc`, 3 `x`, 4 `shared`, 5 `\\n  `, 6 `; `, 7 `\\n`, then the rules 8 (`ab abc`)
    and 9 (`ab x; `) of level 1, and 10 (8 8 6) of level 2. In the order of their ranks: 8 1 4 10 0 9 2 5 6 7 3.
    """
    return build_part(PIECES, GLOBAL)


def part() -> Part:
    built = sample()
    return read_head(built.head, len(built.pool), WORDS)


def test_the_sample() -> None:
    assert part().symbols_by_rank == [8, 1, 4, 10, 0, 9, 2, 5, 6, 7, 3]
    assert part().rules == [[1, 2], [1, 3, 6], [8, 8, 6]]


class HeadCase(NamedTuple):
    """A head that is refused with this message: the plan is changed, fields of the header are overwritten."""

    message: str
    change: Callable[[HeadPlan], object] = lambda plan: None
    codes: dict[int, list[int]] | None = None
    header: tuple[tuple[str, int, int], ...] = ()
    pool_size_change: int = 0


def put(array: int, *items: int) -> Callable[[HeadPlan], object]:
    return lambda plan: plan.arrays.__setitem__(array, list(items))


def token_bytes(content: bytes) -> Callable[[HeadPlan], object]:
    return lambda plan: setattr(plan, "token_bytes", content)


def levels(*sizes: int) -> Callable[[HeadPlan], object]:
    return lambda plan: setattr(plan, "level_sizes", list(sizes))


def rank_code(*lengths: int) -> Callable[[HeadPlan], object]:
    return lambda plan: setattr(plan, "rank_code", list(lengths))


def numbers_that_wrap(plan: HeadPlan) -> None:
    """The numbers of global words are 0, 2^32 - 2 and 2^32; all of class 2 or 5, so that all ranks are right."""
    plan.arrays[2] = [0, (1 << 32) - 3, 1]
    plan.arrays[7] = [2, 5, 5]


def first_ranks_that_wrap(plan: HeadPlan) -> None:
    """The first ranks of the two rules of level 1 are 2^32 - 3 and 2^32 + 1."""
    plan.arrays[11] = [(1 << 32) - 3, 4, 0]


TOO_MANY = "the head has impossible numbers of symbols"
FLAGS = "the head has an unknown flag or impossible sizes"
TOKEN_SIZE = "the token bytes have an impossible size"
NO_FIT = "the token bytes and codes do not fit into the head"
NO_RANK = "no symbol has this rank"
BAD_RANKS = "a class has more or fewer symbols than it has ranks"
NOT_LOWER = "a rule uses a symbol that is not of a lower level"
NO_CODE = "the code lengths do not form a prefix code"
UNFILLED = "the separators do not fill their text"
PREFIX = "a word shares more bytes than the word before it has"
ENDS_AFTER = "a sub-block ends after the end of the stream"
NO_WORD = "there is no global word of that number"
HEADS = {
    "2^20 symbols": HeadCase(TOO_MANY, header=(("I", 0, (1 << 20) - 8),)),
    "symbols whose number wraps": HeadCase(TOO_MANY, header=(("I", 0, (1 << 32) - 5),)),
    "more low global words than global words": HeadCase(TOO_MANY, header=(("H", 32, 2),)),
    "more low and middle global words than global words": HeadCase(TOO_MANY, header=(("H", 34, 1),)),
    "splitter 2": HeadCase(FLAGS, header=(("B", 39, 2),)),
    "width": HeadCase(FLAGS, header=(("B", 38, MAX_SIZE_WIDTH + 1),)),
    "token bytes larger than their size": HeadCase(TOKEN_SIZE, header=(("I", 20, 2),)),
    "token bytes of more than a pool": HeadCase(TOKEN_SIZE, header=(("I", 20, MAX_POOL_SIZE + 1),)),
    "codes after the end": HeadCase(NO_FIT, header=(("H", 36, 65535),)),
    "token bytes after the end": HeadCase(NO_FIT, header=(("I", 20, 1 << 20), ("I", 24, 1 << 20))),
    "token bytes that cannot be decoded": HeadCase("the payload ends inside its header", header=(("I", 20, 99),)),
    "base": HeadCase(ENDS_AFTER, header=(("I", 28, 50),)),
    "base that wraps": HeadCase(ENDS_AFTER, header=(("I", 28, (1 << 32) - 1),)),
    "levels with fewer rules": HeadCase("the levels have more or fewer rules than the part", levels(2)),
    "levels with more rules": HeadCase("the levels have more or fewer rules than the part", levels(2, 2)),
    "no levels": HeadCase("the levels have more or fewer rules than the part", levels()),
    "a level of 2^21 rules": HeadCase("a level has too many rules", levels(1 << 21)),
    "63 lengths": HeadCase("a class code has too many lengths", rank_code(1, *[0] * (NUM_CLASSES - 1), 1)),
    "a codeword of 12 bits": HeadCase("a codeword is too long", codes={0: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12]}),
    "an incomplete code": HeadCase(NO_CODE, codes={0: [1, 0, 2]}),
    "a code with too many codewords": HeadCase(NO_CODE, codes={0: [1, 1, 1]}),
    "a single codeword of 2 bits": HeadCase(NO_CODE, codes={5: [2]}),
    "an empty code of numbers": HeadCase("a symbol has no codeword", codes={0: []}),
    "an empty code of classes": HeadCase("a symbol has no codeword", codes={9: []}),
    "a first word with a prefix": HeadCase(PREFIX, put(0, 1, 2, 0)),
    "a prefix longer than the word before": HeadCase(PREFIX, put(0, 0, 3, 0)),
    "a prefix of 2^32 - 3": HeadCase(PREFIX, put(0, 0, (1 << 32) - 3, 0)),
    "an empty word": HeadCase("a word is empty", token_bytes(b" abc x \n  ; ")),
    "a word without end": HeadCase("the text of the words ends inside a word", token_bytes(b"ab c x\n\n\n\n;\n")),
    "more token bytes": HeadCase(UNFILLED, token_bytes(b"ab c x \n  ; !")),
    "fewer token bytes": HeadCase(UNFILLED, token_bytes(b"ab c x \n  ;")),
    "a separator of 2^32 - 2 bytes": HeadCase(UNFILLED, put(1, 2, (1 << 32) - 3)),
    "no such global word": HeadCase(NO_WORD, put(2, 2)),
    "no such global word: wrapped": HeadCase(NO_WORD, numbers_that_wrap),
    "no such global separator": HeadCase("there is no global separator of that number", put(5, 1)),
    "a class with too many symbols": HeadCase(BAD_RANKS, put(6, 1, 4, 4)),
    "a class with too few symbols": HeadCase(BAD_RANKS, put(6, 1, 5, 5)),
    "the highest class with too many symbols": HeadCase(BAD_RANKS, put(9, 0, 0, 0)),
    "class 61": HeadCase(BAD_RANKS, put(6, 1, 4, 61)),
    "a rule with more symbols than bytes": HeadCase(
        "the rules have more symbols than the pool has bytes", put(10, 1 << 20, 1, 1)
    ),
    "a rule with 2^32 - 1 symbols": HeadCase(
        "the rules have more symbols than the pool has bytes", put(10, (1 << 32) - 3, 1, 1)
    ),
    "more items than bits": HeadCase("an array has more items than bits", put(10, 35, 1, 1)),
    "an item too many": HeadCase("a stream ends inside a number", put(10, 1, 1, 1)),
    "an item that is not read": HeadCase("a sub-block does not end where its size says", put(10, 0, 0, 1)),
    "a first rank that no symbol has": HeadCase(NO_RANK, put(11, 1, 0, 11)),
    "first ranks that wrap": HeadCase(NO_RANK, first_ranks_that_wrap),
    "a rank that no symbol has": HeadCase(NO_RANK, put(12, 11, 10, 8, 0, 8), codes={12: [3, 3, 3, 3, 3, 3, 2]}),
    "a rule of itself": HeadCase(NOT_LOWER, put(12, 0, 10, 8, 0, 8)),
    "a rule of the same level": HeadCase(NOT_LOWER, put(12, 6, 10, 0, 0, 8)),
    "a rule of a higher level": HeadCase(NOT_LOWER, put(12, 3, 10, 8, 0, 8)),
    "a rule that begins with itself": HeadCase(NOT_LOWER, put(11, 0, 1, 0)),
    "a rule with a splitter": HeadCase("a rule has a splitter", put(12, 4, 10, 8, 0, 8)),
    "a rule that begins with a splitter": HeadCase("a rule has a splitter", put(11, 1, 3, 0)),
    "a larger pool": HeadCase("the expansions are shorter than the pool", pool_size_change=1),
    "a smaller pool": HeadCase("the expansions are longer than the pool", pool_size_change=-1),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_head(name: str) -> None:
    case = HEADS[name]
    built = sample()
    case.change(built.plan)
    head = bytearray(built.plan.write(codes=case.codes))
    for kind, position, value in case.header:
        struct.pack_into(f"<{kind}", head, position, value)
    with pytest.raises(PayloadError, match=f"^{re.escape(case.message)}$"):
        read_head(bytes(head), len(built.pool) + case.pool_size_change, WORDS)


def test_sizes_of_heads() -> None:
    built = sample()
    end = len(built.head)
    sizes = [(47, 62), (MAX_HEAD_PAYLOAD + 1, 62), (end, 0), (end, MAX_POOL_SIZE + 1)]
    for payload_size, pool_size in sizes:
        with pytest.raises(PayloadError, match=r"^the head has an impossible size$"):
            read_head(built.head[:payload_size].ljust(payload_size, b"\0"), pool_size, WORDS)


def test_a_pool_without_bytes() -> None:
    """A head whose only symbol is a splitter has no other fault."""
    arrays: list[list[int]] = [[] for _ in range(13)]
    arrays[8] = [0]
    head = HeadPlan(arrays, b"", [], [1], True).write()
    with pytest.raises(PayloadError, match=r"^the head has an impossible size$"):
        read_head(head, 0, WORDS)
    with pytest.raises(PayloadError, match=r"^the expansions are shorter than the pool$"):
        read_head(head, 1, WORDS)


def test_fields_that_are_not_filled() -> None:
    built = sample()
    codes_start = 40 + len(built.plan.token_bytes)
    (codes_size,) = struct.unpack_from("<H", built.head, 36)
    codes_end = codes_start + codes_size
    longer = bytearray(built.head[:codes_end] + b"\0" + built.head[codes_end:])
    struct.pack_into("<H", longer, 36, codes_size + 1)
    shorter = bytearray(built.head[: codes_end - 1] + built.head[codes_end:])
    struct.pack_into("<H", shorter, 36, codes_size - 1)
    cases = [
        (bytes(longer), "the codes do not fill their field"),
        (bytes(shorter), "a stream ends inside a number"),
        (built.head + b"\0", "the sub-blocks do not fill the stream"),
        (built.head[:-1], ENDS_AFTER),
    ]
    for head, message in cases:
        with pytest.raises(PayloadError, match=f"^{message}$"):
            read_head(head, len(built.pool), WORDS)


LONG = [
    [Piece(b"w" * 65535)],
    [Piece(b"." * 65536, ends_file=False)],
]


@pytest.mark.parametrize("pieces", LONG)
def test_tokens_that_are_too_long(pieces: list[Piece]) -> None:
    built = build_part(pieces, block_size=1 << 20)
    with pytest.raises(PayloadError, match=r"^the expansion of a symbol is too long$"):
        read_head(built.head, len(built.pool), WORDS)


def doubling(num_levels: int) -> BuiltPart:
    """Each rule is the one below it, twice. The last one has 2^(number of levels) words."""
    rules: list[list[Symbol]] = [[Token(b"a", True)] * 2]
    rules += [[Rule(index)] * 2 for index in range(num_levels - 1)]
    grammar = Grammar([Rule(num_levels - 1), Token(b"\n", False)], rules)
    return build_part([Piece(b" ".join([b"a"] * 2**num_levels) + b"\n", False)], grammar=grammar)


def test_rules_that_are_too_long() -> None:
    built = doubling(14)
    assert read_head(built.head, len(built.pool), WORDS).pool == built.pool
    built = doubling(15)
    with pytest.raises(PayloadError, match=r"^the expansion of a symbol is too long$"):
        read_head(built.head, len(built.pool), WORDS)


class BlockCase(NamedTuple):
    """A block of the sample part that is refused with this message."""

    message: str
    symbols: tuple[int, ...] = (1, 2)
    size: int = 6
    skip: int = 0
    header: tuple[tuple[str, int, int], ...] = ()
    cut: int = 0
    added: bytes = b""


IMPOSSIBLE = "the payload has an impossible size"
NO_SYMBOLS = "the payload has no symbols, impossible sizes or an unknown flag"
AFTER_END = "a symbol begins after the end of the block"
TOO_SHORT = "the symbols are shorter than the block"
BEFORE = "the first symbol ends before the block begins"
BLOCKS = {
    "size 0": BlockCase("the block has an impossible size", size=0),
    "size above the largest": BlockCase("the block has an impossible size", size=MAX_BLOCK_SIZE + 1),
    "a payload of 19 bytes": BlockCase(IMPOSSIBLE, cut=-19),
    "a payload of 65 bytes more than the content": BlockCase(IMPOSSIBLE, added=bytes(53)),
    "no symbols": BlockCase(NO_SYMBOLS, header=(("I", 0, 0),)),
    "width 25": BlockCase(NO_SYMBOLS, header=(("B", 10, 25),)),
    "reserved": BlockCase(NO_SYMBOLS, header=(("B", 11, 1),)),
    "base": BlockCase(ENDS_AFTER, header=(("I", 4, (1 << 32) - 1),)),
    "a byte cut off": BlockCase(ENDS_AFTER, cut=-1),
    "a byte more": BlockCase("the sub-blocks do not fill the stream", added=b"\0"),
    "more symbols": BlockCase("a stream ends inside a number", header=(("I", 0, 3),)),
    "2^32 - 1 symbols": BlockCase("an array has more items than bits", header=(("I", 0, (1 << 32) - 1),)),
    "fewer symbols": BlockCase("a sub-block does not end where its size says", header=(("I", 0, 1),)),
    "a splitter first": BlockCase(BEFORE, (0, 1), 2),
    "all of the first symbol before the block": BlockCase(BEFORE, (1, 2), 3, skip=3),
    "skip above all": BlockCase(BEFORE, skip=65535),
    "a word after the end": BlockCase(AFTER_END, (1, 2), 3),
    "a separator at the end": BlockCase(AFTER_END, (1, 6), 2),
    "a word after a splitter after the end": BlockCase(AFTER_END, (1, 0, 2), 2),
    "the last byte is missing": BlockCase(TOO_SHORT, (1, 2), 8),
    "a splitter takes the last byte": BlockCase(TOO_SHORT, (1, 2, 0), 7),
    "skip and a separator take the last byte": BlockCase(TOO_SHORT, (1, 6), 3, skip=2),
}  # fmt: skip


def write_block(case: BlockCase, sound: Part, code: list[int]) -> bytes:
    ranks = [sound.symbols_by_rank.index(symbol) for symbol in case.symbols]
    payload = bytearray(build_block(ranks, case.skip, code))
    for kind, position, value in case.header:
        struct.pack_into(f"<{kind}", payload, position, value)
    kept = len(payload) + case.cut if case.cut > -19 else -case.cut
    return bytes(payload[:kept]) + case.added


@pytest.mark.parametrize("name", BLOCKS)
def test_block(name: str) -> None:
    case, sound = BLOCKS[name], part()
    with pytest.raises(PayloadError, match=f"^{re.escape(case.message)}$"):
        decode_tadoc(write_block(case, sound, sample().plan.rank_code), case.size, sound)


@pytest.mark.parametrize(("skip", "is_sound"), [(2, True), (0, False), (1, False), (4, False), (65535, False)])
def test_statistics_of_a_symbol_in_two_blocks(skip: int, is_sound: bool) -> None:
    """Statistics refuse a block whose first symbol is not the rest of the last symbol of the block before."""
    code, size = sample().plan.rank_code, len(b"ab ab")
    first = write_block(BlockCase("", (1, 2), size), part(), code)
    second = write_block(BlockCase("", (2, 0), 1, skip), part(), code)
    pieces = [frame(Codec.HEAD, sample().head, len(sample().pool))]
    pieces += [frame(Codec.GOMPRESSO_TADOC, first, size), frame(Codec.GOMPRESSO_TADOC, second, 1)]
    file = b"".join(pieces)
    starts = [0, *accumulate(map(len, pieces))]

    def column(kind: str, *values: int) -> bytes:
        return struct.pack(f"<{len(values)}{kind}", *values)

    parts = (
        lambda at, count: file[at : at + count], size,
        column("Q", 0), column("Q", size + 1), column("Q", 0), column("I", starts[1]), column("Q", 0), (b"",),
        column("Q", *starts[1:3]), column("I", *map(len, pieces[1:])),
    )  # fmt: skip
    extents = column("Q", 5, 0, 0, size + 1)
    with nullcontext() if is_sound else pytest.raises(ValueError, match="a part of its text is damaged"):
        read_segment_grammar(parts, extents, GLOBAL.section(), 1000, WordRule.IDENTIFIERS, b"", 1)


def test_a_rank_of_a_block_that_no_symbol_has() -> None:
    built = sample()
    payload = build_block([13], 0, built.plan.rank_code)
    with pytest.raises(PayloadError, match=f"^{NO_RANK}$"):
        read_block(payload, 20, part())


@pytest.mark.parametrize(
    ("symbols", "size", "skip", "content"),
    [
        ((1, 0, 0, 0), 2, 0, b"ab"),
        ((8, 0, 0), 2, 0, b"ab"),
        ((1, 0, 0, 6), 3, 0, b"ab;"),
        ((1, 6), 2, 2, b"; "),
        ((1, 2), 4, 2, b" abc"),
        ((2,), 4, 0, b"abc "),
        ((2,), 3, 0, b"abc"),
        ((10,), 5, 3, b"abc a"),
    ],
)  # fmt: skip
def test_blocks_that_are_accepted(symbols: tuple[int, ...], size: int, skip: int, content: bytes) -> None:
    """Readers need not notice splitters without a file, nor a first symbol of which nothing is left."""
    sound = part()
    payload = write_block(BlockCase("", symbols, size, skip), sound, sample().plan.rank_code)
    assert decode_tadoc(payload, size, sound) == content
    assert decode_tadoc(payload[:-8] + b"\xff" * 8, size, sound) == content


def test_heads_that_are_accepted() -> None:
    """Readers need not notice words out of order or twice, short prefixes, low levels, and numbers in other arrays."""
    plan = sample().plan
    plan.arrays[0] = [0, 0, 1]
    plan.token_bytes = b"x ab b \n  ; "
    plan.arrays[2], plan.arrays[4] = [], [0]
    plan.arrays[11][2], plan.arrays[12] = 1, [6, 10, 8, 10, 10]  # level 2 is words only
    pool = b"x ab ab shared \n  ; \nx ab x ab; x ab ab "
    assert read_head(plan.write(), len(pool), WORDS).pool == pool


SECTIONS = {
    "header": (b"\0" * 7, "the section of words ends inside its header"),
    "prefixes": (struct.pack("<II", 9, 0) + b"\0" * 8, "the section of words ends inside its lengths of prefixes"),
    "2^32 - 1 words": (b"\xff" * 8 + b"a " * 9, "the section of words ends inside its lengths of prefixes"),
    "words": (struct.pack("<II", 2, 0) + b"\0\0a b", "the text of the words ends inside a word"),
    "lengths": (struct.pack("<II", 1, 2) + b"\0a \1\0\1", "the section of words ends inside its lengths of separators"),
    "2^32 - 1 separators": (
        struct.pack("<Ii", 0, -1) + b"\1\0;", "the section of words ends inside its lengths of separators",
    ),
    "separators": (struct.pack("<II", 0, 2) + b"\1\0\1\0;", UNFILLED),
    "more": (struct.pack("<II", 1, 0) + b"\0a !", UNFILLED),
    "an empty separator": (struct.pack("<II", 0, 2) + b"\1\0\0\0;", UNFILLED),
    "an empty word": (struct.pack("<II", 1, 0) + b"\0 ", "a word is empty"),
    "a prefix of the first word": (struct.pack("<II", 1, 0) + b"\1a ", PREFIX),
    "a prefix longer than the word before": (struct.pack("<II", 2, 0) + b"\0\3ab c ", PREFIX),
    "a prefix of word 256": (struct.pack("<II", 257, 0) + b"\0" * 256 + b"\1" + b"a " * 257, PREFIX),
}  # fmt: skip


@pytest.mark.parametrize("name", SECTIONS)
def test_section_of_words(name: str) -> None:
    section, message = SECTIONS[name]
    with pytest.raises(PayloadError, match=f"^{message}$"):
        read_words(section)


@pytest.mark.parametrize("size", [MAX_EXPANSION_SIZE - 1, MAX_EXPANSION_SIZE, MAX_EXPANSION_SIZE + 1, 200_000])
def test_a_long_word_in_the_section(size: int) -> None:
    """If a word is too long for heads, only the heads that refer to it are damaged."""
    long = GlobalTokens([b"shared", b"s" * size, b"word"], [b"\n"])
    words = read_words(long.section())
    assert read_head(head_of_global_tokens([0, 2], [0]), 13, words).pool == b"shared word \n"
    head = head_of_global_tokens([0, 1], [0])
    if size < MAX_EXPANSION_SIZE:
        assert len(read_head(head, size + 9, words).pool) == size + 9
    else:
        with pytest.raises(PayloadError, match=r"^the expansion of a symbol is too long$"):
            read_head(head, size + 9, words)


def test_an_empty_section_of_words() -> None:
    words = read_words(bytes(8))
    assert words.num_words == 0
    assert words.separators == []


def test_every_check_has_a_case() -> None:
    """Each message of the decoder is expected somewhere above."""
    modules = ("tadoc", "head", "expansion", "numbers", "words", "streams")
    sources = [Path(find_spec(f"oracle.{module}").origin).read_text() for module in modules]
    messages = re.findall(r'PayloadError\("([^"]+)"\)', "".join(sources))
    assert len(messages) == "".join(sources).count("raise PayloadError")
    tests = Path(__file__).read_text()
    assert [message for message in messages if f'"{message}"' not in tests and f"^{message}$" not in tests] == []
