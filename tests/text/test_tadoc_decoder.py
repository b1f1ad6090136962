"""The readable decoder of gompresso-tadoc returns what the builder wrote, for all kinds of tokens and grammars."""

from __future__ import annotations

import itertools
import random
import struct

import pytest
from both_decoders import decode_tadoc, read_block, read_head, read_words
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.constants import MAX_EXPANSION_SIZE, NUM_CLASSES
from oracle.numbers import class_base, class_of, num_extra_bits
from oracle.tadoc import join_root
from payloads import CORPUS
from tadoc_builder import BuiltPart, GlobalTokens, build_part, common_tokens
from tadoc_grammar import MAX_LEVEL, Grammar, Piece, Rule, Symbol, Token, make_grammar, tokens_of

WORD_RULES = ("identifiers", "whitespace", "letters")
ALICE = (CORPUS / "carroll" / "alice29.txt").read_bytes()


def check(part: BuiltPart, global_tokens: GlobalTokens) -> None:
    """Decodes the head, and each block with the head alone, and compares everything with what was written."""
    words = read_words(global_tokens.section())
    decoded = read_head(part.head, len(part.pool), words)
    assert decoded.pool == part.pool
    assert decoded.rules == part.rules
    blocks = []
    for payload, content in zip(part.blocks, part.contents, strict=True):
        assert decode_tadoc(payload, len(content), decoded) == content
        blocks.append(read_block(payload, len(content), decoded))
    assert join_root(blocks) == part.root


def some_global_tokens(tokens: list[Symbol], rng: random.Random) -> GlobalTokens:
    """Returns global tokens: some of those of a part, and others, in random order."""
    found = [token for token in dict.fromkeys(tokens) if isinstance(token, Token) and token.content]
    chosen = [token for token in found if rng.random() < 0.4]
    words = [token.content for token in chosen if token.is_word] + [b"unused%d" % index for index in range(300)]
    separators = [token.content for token in chosen if not token.is_word] + [b"\x00unused"]
    rng.shuffle(words)
    rng.shuffle(separators)
    return GlobalTokens(words, separators)


PIECES = (b"a", b"ab", b"abc", b" ", b"  ", b"\n", b"; ", b"x_", b"\xc3\xa9", b"the ")
TEXT = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
    st.lists(st.sampled_from(PIECES)).map(b"".join),
)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(TEXT, min_size=1, max_size=4), st.sampled_from(WORD_RULES), st.integers(1, 40), st.integers(0, 20),
    st.integers(1, 4), st.integers(0, 1 << 32),
)  # fmt: skip
def test_round_trip(
    files: list[bytes], word_rule: str, block_size: int, max_rules: int, max_level: int, seed: int
) -> None:
    rng = random.Random(seed)
    pieces = [Piece(content) for content in files]
    tokens = tokens_of(pieces, word_rule)
    if tokens:
        global_tokens = some_global_tokens(tokens, rng) if seed % 3 else GlobalTokens()
        grammar = make_grammar(tokens, max_rules, max_level)
        chosen = rng if seed % 2 else None
        check(build_part(pieces, global_tokens, block_size=block_size, rng=chosen, grammar=grammar), global_tokens)


@pytest.mark.parametrize("word_rule", WORD_RULES)
def test_text(word_rule: str) -> None:
    pieces = [Piece(ALICE[:9000]), Piece(ALICE[9000:20000])]
    grammar = make_grammar(tokens_of(pieces, word_rule), 150)
    assert max(grammar.levels()) >= 2
    for rng in (None, random.Random(1)):
        global_tokens = some_global_tokens(tokens_of(pieces, word_rule), random.Random(2)) if rng else GlobalTokens()
        check(build_part(pieces, global_tokens, block_size=4096, rng=rng, grammar=grammar), global_tokens)


def test_the_parts_of_a_segment() -> None:
    """Three parts, the second and third of which begin inside a file, and the words that two of them use."""
    starts = [0, ALICE.index(b"Rabbit"), ALICE.index(b"Rabbit", 5000), 9000]
    pieces = [Piece(ALICE[first:last], last == starts[-1]) for first, last in itertools.pairwise(starts)]
    tokens = [tokens_of([piece]) for piece in pieces]
    global_tokens = common_tokens(tokens)
    assert b"Alice" in global_tokens.words[:60]
    assert b" " in global_tokens.separators, "at the ends of the first two parts, where it is not implied"
    parts = [build_part([piece], global_tokens, block_size=1000) for piece in pieces]
    for part in parts:
        check(part, global_tokens)
    assert b"".join(content for part in parts for content in part.contents) == ALICE[: starts[-1]]


def test_token_bytes_are_compressed() -> None:
    """The fields at offset 20 and 24 are the size of the token bytes, and their stored size."""
    part = build_part([Piece(ALICE[:20000])], grammar=Grammar(tokens_of([Piece(ALICE[:20000])]), []))
    size, stored_size = struct.unpack_from("<II", part.head, 20)
    assert stored_size < size * 3 // 4
    check(part, GlobalTokens())


def test_a_part_in_the_middle_of_a_file() -> None:
    """The first part ends with a separator, which is not implied; the second one has no beginning of a file."""
    for content, ends_file in ((b"one two ", False), (b"three\n", False), (b"four", True)):
        part = build_part([Piece(content, ends_file)])
        check(part, GlobalTokens())
        assert read_head(part.head, len(part.pool), read_words(GlobalTokens().section())).has_splitter == ends_file


def test_a_part_with_a_single_symbol() -> None:
    part = build_part([Piece(b"\n" * 40, ends_file=False)], block_size=16)
    check(part, GlobalTokens())
    assert [len(block) for block in part.blocks] == [12 + 4 + 1 + 8] * 3, "one bit each"
    assert part.root == [0]
    assert part.rules == []


def test_a_part_of_global_tokens_only() -> None:
    """Arrays 0, 1 and 6 are empty, and there are no token bytes."""
    global_tokens = GlobalTokens([b"a", b"b"], [b"\n"])
    part = build_part([Piece(b"a b a b\na b a b\n")], global_tokens)
    check(part, global_tokens)
    assert not any(part.head[index] for index in (0, 8, 20, 24))


def test_symbols_reach_over_many_blocks() -> None:
    """A word, a separator and a rule, each longer than two blocks, and splitters where blocks end."""
    long = b"w" * 70
    text = (long + b" " + b"\n" * 65 + b"a b c d e f g h i j k l m n o p q r s t u v w x y z ") * 2
    for cut in range(60, 69):
        pieces = [Piece(text[:cut]), Piece(text[cut:])]
        grammar = make_grammar(tokens_of(pieces), 60)
        check(build_part(pieces, block_size=32, grammar=grammar), GlobalTokens())


@pytest.mark.parametrize("word_size", [2, 3, 4, 5])
@pytest.mark.parametrize("after", [b" ", b"  ", b"\n", b""])
def test_the_space_of_a_word_at_the_end_of_a_block(word_size: int, after: bytes) -> None:
    """It is content and in both blocks, or it is taken away by the separator or the end of a file that follows."""
    word = b"w" * word_size
    pieces = [Piece(word + after + b"x")] if after else [Piece(word), Piece(b"next")]
    for block_size in range(1, 8):
        check(build_part(pieces, block_size=block_size), GlobalTokens())


def test_longest_tokens_and_rules() -> None:
    """Expansions of 65,535 bytes: a local word, a local separator, global ones, and a rule."""
    word, separator = b"w" * 65534, b"." * 65535
    for global_tokens in (GlobalTokens(), GlobalTokens([word], [separator])):
        check(build_part([Piece(word + separator)], global_tokens, block_size=1 << 20), global_tokens)
    half = Token(b"h" * 32767, True)
    grammar = Grammar([Rule(0), Rule(0)], [[Token(b"!" * 32767, False), half]])
    grammar.root.append(Token(b"?", False))
    content = (b"!" * 32767 + b"h" * 32767) * 2 + b"?"
    check(build_part([Piece(content, ends_file=False)], block_size=1 << 14, grammar=grammar), GlobalTokens())
    assert MAX_EXPANSION_SIZE == len(separator) == len(word + b" ") == 2 * 32767 + 1


def test_the_most_levels() -> None:
    rules: list[list[Symbol]] = [[Token(b"a", True), Token(b"b", True)]]
    rules += [[Rule(index), Token(b"c", True)] for index in range(MAX_LEVEL - 1)]
    grammar = Grammar([Rule(MAX_LEVEL - 1), Token(b"\n", False)], rules)
    part = build_part([Piece(b"a b" + b" c" * (MAX_LEVEL - 1) + b"\n", ends_file=False)], grammar=grammar)
    check(part, GlobalTokens())
    assert grammar.levels()[-1] == MAX_LEVEL


def test_global_words_of_all_ranges_of_numbers() -> None:
    separators = [b"." * (1 + number) for number in range(99)]
    global_tokens = GlobalTokens([b"word%d" % number for number in range(70_000)], separators)
    numbers = [0, 1, 255, 256, 4095, 4096, 4097, 65535, 65536, 69_999]
    content = b" ".join(global_tokens.words[number] for number in numbers) + b"." * 99 + b"x.x" + b"." * 50
    part = build_part([Piece(content)], global_tokens)
    check(part, global_tokens)
    decoded = read_head(part.head, len(part.pool), read_words(global_tokens.section()))
    assert decoded.global_words == numbers
    assert decoded.global_separators == [0, 49, 98]


def test_prefixes_of_global_words() -> None:
    """Prefixes have at most 255 bytes, and every 256th word has none."""
    global_tokens = GlobalTokens([b"p" * 254 + b"%d" % number + b"s" * 300 for number in range(600)] + [b"p" * 254])
    words = read_words(global_tokens.section())
    assert [words.word(number) for number in (600, 511, 512, 0, 3)] == [
        global_tokens.words[number] for number in (600, 511, 512, 0, 3)
    ]
    section = global_tokens.section()
    assert [section[8 + number] for number in (0, 255, 256, 600)] == [0, 255, 0, 254]


def test_local_words_share_long_prefixes() -> None:
    words = [b"p" * 3000 + b"%03d" % number for number in range(40)]
    check(build_part([Piece(b" ".join(words) + b" " + b"p" * 2000)]), GlobalTokens())


def test_classes_of_numbers() -> None:
    """Each class begins after the last number of the class before it."""
    assert [class_base(number_class) for number_class in range(6)] == [0, 1, 2, 4, 6, 10]
    for number_class in range(NUM_CLASSES):
        first, size = class_base(number_class), 1 << num_extra_bits(number_class)
        assert class_of(first) == class_of(first + size - 1) == number_class
        assert class_base(number_class + 1) == first + size
    assert class_base(NUM_CLASSES) == (1 << 32) - 2
