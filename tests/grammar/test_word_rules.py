"""The word rules of the C++ core, compared with the reference in Python and with coreutils."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter

import numpy as np
import pytest
from grammars import BUILDERS, build, check, counts_of, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from word_rules import ONE_WORD_PER_LINE

from gompfs._native import grammar as _grammar
from gompfs.grammar import NO_RULES, Grammar, GrammarBuilder
from gompfs.grammar.grammar import WORD_RULE_KINDS
from gompfs.grammar.reference import split_words
from gompfs.model import WORD_RULES

MIB = 1 << 20

each_rule = pytest.mark.parametrize("words", WORD_RULES)
# Bytes at the bounds of the classes of characters, and longer runs than the 64 bytes that the core reads at once.
bounds = st.sampled_from([bytes([byte]) for byte in b"\0\x08\t\r\x0e !'/09:@AZ[_`az{\x7f\x80\xff"])
runs = st.builds(lambda byte, times: byte * times, bounds, st.integers(1, 150))
any_text = st.lists(st.one_of(bounds, runs, st.binary(max_size=80)), max_size=20).map(b"".join)


def words_of(texts: list[bytes], words: str) -> list[list[bytes]]:
    """Returns the words that the C++ core finds in each text."""
    builder = GrammarBuilder(NO_RULES, words, num_threads=1)
    builder.add_files(list(enumerate(texts, 1)))
    return [found for _, found in texts_of(builder.take())]


@each_rule
@settings(max_examples=300, deadline=None)
@given(texts=st.lists(any_text, min_size=1, max_size=5))
def test_any_bytes(words: str, texts: list[bytes]) -> None:
    assert words_of(texts, words) == [split_words(text, words) for text in texts]


@each_rule
def test_every_byte_at_every_position(words: str) -> None:
    """Each byte between letters and between separators, at all positions among 64 bytes."""
    for around in (b"a", b" ", b"_", b"\xc3"):
        texts = [around * at + bytes([byte]) + around * (70 - at) for byte in range(256) for at in range(70)]
        assert words_of(texts, words) == [split_words(text, words) for text in texts]


@pytest.mark.parametrize("words", ONE_WORD_PER_LINE)
@pytest.mark.parametrize("builder", BUILDERS)
def test_words_are_those_of_coreutils(words: str, builder: str) -> None:
    rng = random.Random(words)
    pieces = [b"spinlock_t", b";", b" ", b"\n", b"->", "é".encode(), b"it's", b"x" * 70, b"0x7f", b"\x1f", b"\xff"]
    text = rng.randbytes(200_000) + b"".join(rng.choices(pieces, k=100_000))
    script = rf"{ONE_WORD_PER_LINE[words]} | sed '/^$/d' | sort | uniq -c"
    environment = {**os.environ, "LC_ALL": "C"}
    lines = subprocess.run(["sh", "-c", script], input=text, stdout=subprocess.PIPE, check=True, env=environment).stdout
    expected = Counter({word: int(count) for count, word in (line.split(b" ", 1) for line in _stripped(lines))})
    assert expected.total() > 10_000
    assert counts_of(Grammar.from_bytes(build([(1, text)], builder, words))) == expected


def _stripped(lines: bytes) -> list[bytes]:
    """Returns lines of `uniq -c` without the spaces before the count."""
    return [line.lstrip(b" ") for line in lines.split(b"\n") if line]


@pytest.mark.parametrize(
    ("words", "builder"),
    [
        ("letters", "sequitur"),
        ("identifiers", "repair"),
        pytest.param("letters", "repair", marks=pytest.mark.slow),
        pytest.param("identifiers", "sequitur", marks=pytest.mark.slow),
    ],
)
def test_parts_are_cut_where_words_end(words: str, builder: str) -> None:
    """A file without whitespace is cut into parts at another separator, and never within a word."""
    rng = random.Random(words)
    text = b"".join(rng.choice((b"alpha-", b"beta+", "gamm\u00e4,".encode(), b"delta0;")) for _ in range(1_600_000))
    assert not set(text) & set(b" \t\n\v\f\r")
    files = [(1, text), (2, b"x" * (9 * MIB)), (3, b"the end")]
    grammar = check(build(files, builder, words), files, builder, words)
    assert [part.continues for part in grammar.parts()] == [False, True, False]


def test_numbers_of_word_rules() -> None:
    """The section, the C++ core and the kernels use the indexes in WORD_RULES as numbers."""
    assert [WORD_RULE_KINDS[name].value for name in WORD_RULES] == list(range(len(WORD_RULES)))
    assert len(WORD_RULE_KINDS) == len(WORD_RULES)


def test_a_bitmap_is_for_letters_only() -> None:
    for rule, bitmap in ((_grammar.WordRule.LETTERS, b""), (_grammar.WordRule.IDENTIFIERS, b"\1")):
        with pytest.raises(ValueError, match="bitmap"):
            _grammar.GrammarBuilder(_grammar.BuilderKind.REPAIR, rule, bitmap, 1)
        with pytest.raises(ValueError, match="bitmap"):
            _grammar.TextCheck(None, rule, bitmap)


@each_rule
def test_separators_in_words(words: str) -> None:
    """A byte that separates words is found wherever it is in the dictionary; other bytes are in words."""
    sound = b"x" * 63 + b"0" + b"Y" * 10
    for byte in range(256):
        is_separator = byte < 0x80 and split_words(bytes([byte]), words) == []
        for at in (0, 1, 63, 64, len(sound) - 1):
            content = np.frombuffer(sound[:at] + bytes([byte]) + sound[at + 1 :], np.uint8)
            starts = np.array([0, 7, content.size], np.uint64)
            grammar = Grammar.of_tokens((starts, content), words, np.empty(0, np.uint32))
            assert grammar.words_have_separators() == is_separator
