"""Grammars of both builders, compared with the oracle in plain Python."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from grammars import BUILDERS, build, build_in_pieces, check, counts_of, make_text, texts_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gompfs.grammar import GrammarBuilder
from gompfs.grammar.reference import split_words
from gompfs.model import WORD_RULES

MIB = 1 << 20

pytestmark = [pytest.mark.parametrize("builder", BUILDERS), pytest.mark.parametrize("words", WORD_RULES)]

# Few words, so that digrams repeat. Characters include those that separate words, or seem to, under a rule.
few_words = st.lists(st.sampled_from([b"a", b"b", b"ab", b"it's", b"_", b" ", b" ", b"\n", b", ", b"\0"])).map(b"".join)
runs = st.lists(st.tuples(st.sampled_from([b"a ", b"b ", b"c d "]), st.integers(1, 12))).map(
    lambda pairs: b"".join(word * times for word, times in pairs)
)
surrogates = "\ud800\udc80".encode("utf-8", "surrogatepass")
valid = [character.encode() for character in "é\u2019\U0001d4b3\x85\xa0\u3000\0x \x1c\r"]
invalid = [b"\xff", b"\xc3", b"\xa9", b"\xe2\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", surrogates]
odd_bytes = st.lists(st.sampled_from(valid + invalid)).map(b"".join)
contents = st.one_of(few_words, runs, odd_bytes, st.binary(max_size=200), st.text(max_size=100).map(str.encode))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(contents, max_size=6), data=st.data())
def test_any_files(builder: str, words: str, texts: list[bytes], data: st.DataObject) -> None:
    """Also with the same bytes in pieces of any size, and with counts that exclude some files."""
    files = [(3 * index + 2, text) for index, text in enumerate(texts)]
    section = build(files, builder, words)
    grammar = check(section, files, builder, words)
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=5))
    assert build_in_pieces(files, itertools.cycle(sizes), builder, words) == section
    excluded = data.draw(st.sets(st.integers(0, 3 * len(files) + 2)))
    kept = [content for ino, content in files if ino not in excluded]
    expected = Counter(word for content in kept for word in split_words(content, words))
    assert counts_of(grammar, sorted(excluded, reverse=True)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_seeded_text(builder: str, words: str, seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.choice((0, 1, 100, 3000, 20_000)) for _ in range(39)]
    files = [(ino, make_text(rng.randrange(6), size, 50 * 4**seed)) for ino, size in enumerate(sizes, 1)]
    rng.shuffle(files)  # inode numbers may be in any order
    section = build(files, builder, words)
    grammar = check(section, files, builder, words)
    assert len(section) < sum(len(content) for _, content in files)
    for number in (1, 2, 20):
        excluded = [ino for ino, _ in files[:number]]
        expected = Counter(word for _, content in files[number:] for word in split_words(content, words))
        assert counts_of(grammar, excluded, num_threads=2) == expected
    assert counts_of(grammar, range(40)) == {}


def test_no_files(builder: str, words: str) -> None:
    grammar = check(build([], builder, words), [], builder, words)
    assert list(grammar.parts()) == []
    assert check(b"".join(GrammarBuilder(builder, words).finish()), [], builder, words).num_words == 0


def test_files_without_words(builder: str, words: str) -> None:
    files = [(1, b""), (2, b" \n\t"), (3, b""), (4, b"\v\f\r" * 1000)]
    grammar = check(build(files, builder, words), files, builder, words)
    assert texts_of(grammar) == [(1, []), (2, []), (3, []), (4, [])]
    mixed = [(5, b"one"), *files, (6, b"one"), (7, b"")]
    check(build(mixed, builder, words), mixed, builder, words)


def test_words_never_span_files(builder: str, words: str) -> None:
    files = [(1, b"wor"), (2, b"d wor"), (3, b""), (4, b"d"), (5, "é".encode()[:1]), (6, "é".encode()[1:])]
    check(build(files, builder, words), files, builder, words)
    assert build_in_pieces(files, itertools.repeat(1), builder, words) == build(files, builder, words)


def test_large_inode_numbers(builder: str, words: str) -> None:
    files = [(2**61, b"a"), (1, b"b"), (2**62 - 1, b"c"), (2, b"d"), (2**61, b"e")]
    check(build(files, builder, words), files, builder, words)


def test_a_huge_word(builder: str, words: str) -> None:
    """A word of 2 MB twice, one that differs in its last byte, and one with a few bytes more."""
    word = b"x" * 2 * MIB
    files = [(1, b"start " + word + b" end " + word + b"y"), (2, word[:-1] + b"z"), (3, word), (4, b"start end")]
    section = build(files, builder, words)
    check(section, files, builder, words)
    assert build_in_pieces(files, itertools.cycle((999_999, 1, 65_536)), builder, words) == section


def test_prefixes_longer_than_their_length_field(builder: str, words: str) -> None:
    stems = [b"p" * length for length in (253, 254, 255, 256, 257, 300, 600)]
    text = b" ".join(stem + tail for tail in (b"", b"a", b"b", b"ba", b"\x7f" * 300) for stem in stems)
    files = [(1, text), (2, text[::-1]), (3, text)]
    check(build(files, builder, words), files, builder, words)


@pytest.mark.parametrize("num_words", [1, 2, 255, 256, 257, 511, 512, 513, 1024, 5000])
def test_word_lists_around_their_restarts(builder: str, words: str, num_words: int) -> None:
    vocabulary = [b"%05d" % number for number in range(num_words)]
    random.Random(num_words).shuffle(vocabulary)
    files = [(1, b" ".join(vocabulary)), (2, b"\n".join(sorted(vocabulary)))]
    for num_threads in (1, 4):
        check(build(files, builder, words, num_threads), files, builder, words)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 7, 8, 9, 15, 64, 1000, 65_537])
def test_runs_of_one_word(builder: str, words: str, length: int) -> None:
    files = [(1, b"a " * length), (2, b"b " + b"a " * length + b"b a"), (3, b"a " * (length - 1))]
    check(build(files, builder, words), files, builder, words)


def test_equal_files(builder: str, words: str) -> None:
    text = make_text(1, 50_000)
    files = [(ino, text) for ino in range(1, 30)]
    section = build(files, builder, words)
    check(section, files, builder, words)
    assert len(section) < 2 * len(build(files[:1], builder, words))


def test_words_of_any_bytes(builder: str, words: str) -> None:
    """NUL, invalid UTF-8, all single bytes, and all pairs of bytes."""
    pairs = b" ".join(bytes(pair) for pair in itertools.product(range(256), repeat=2))
    files = [(1, bytes(range(256)) * 3), (2, pairs), (3, random.Random(3).randbytes(200_000)), (4, b"\0" * 5000)]
    check(build(files, builder, words), files, builder, words)


def test_memoryviews_are_accepted_like_bytes(builder: str, words: str) -> None:
    text = make_text(2, 5000)
    files = [(1, text), (2, text)]
    assert build([(1, bytearray(text)), (2, memoryview(text))], builder, words) == build(files, builder, words)
