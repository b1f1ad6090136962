"""The word rules of the C++ core, compared with the reference in Python and with coreutils."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.grammar import split_words
from plain_grammars import counts_of, plain_grammar_of, texts_of
from word_rules import ONE_WORD_PER_LINE

from gompfs._native import text as _text
from gompfs._native.text import PlainText
from gompfs.model import WORD_RULES
from gompfs.text.word_characters import WORD_RULE_KINDS

each_rule = pytest.mark.parametrize("words", WORD_RULES)
# Bytes at the bounds of the classes of characters, and longer runs than the 64 bytes that the core reads at once.
bounds = st.sampled_from([bytes([byte]) for byte in b"\0\x08\t\r\x0e !'/09:@AZ[_`az{\x7f\x80\xff"])
runs = st.builds(lambda byte, times: byte * times, bounds, st.integers(1, 150))
any_text = st.lists(st.one_of(bounds, runs, st.binary(max_size=80)), max_size=20).map(b"".join)


def words_of(texts: list[bytes], words: str) -> list[list[bytes]]:
    """Returns the words that the C++ core finds in each text."""
    grammar = plain_grammar_of(list(enumerate(texts, 1)), words)
    found = dict(texts_of(grammar))
    return [found.get(ino, []) for ino in range(1, len(texts) + 1)]


@each_rule
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(any_text, min_size=1, max_size=5))
def test_any_bytes(words: str, texts: list[bytes]) -> None:
    assert words_of(texts, words) == [split_words(text, words) for text in texts]


@each_rule
def test_every_byte_at_every_position(words: str) -> None:
    """Each byte between letters and between separators, at positions among 64 bytes; some bytes at all of them."""
    for around in (b"a", b" ", b"_", b"\xc3"):
        texts = [
            around * at + bytes([byte]) + around * (70 - at)
            for byte in range(256)
            for at in (range(70) if byte in b"a _\n\xc3\xff" else (0, 1, 15, 16, 31, 32, 47, 48, 62, 63, 64, 69))
        ]
        assert words_of(texts, words) == [split_words(text, words) for text in texts]


@pytest.mark.parametrize("words", ONE_WORD_PER_LINE)
def test_words_are_those_of_coreutils(words: str) -> None:
    rng = random.Random(words)
    pieces = [b"spinlock_t", b";", b" ", b"\n", b"->", "é".encode(), b"it's", b"x" * 70, b"0x7f", b"\x1f", b"\xff"]
    text = rng.randbytes(200_000) + b"".join(rng.choices(pieces, k=100_000))
    script = rf"{ONE_WORD_PER_LINE[words]} | sed '/^$/d' | sort | uniq -c"
    environment = {**os.environ, "LC_ALL": "C"}
    lines = subprocess.run(["sh", "-c", script], input=text, stdout=subprocess.PIPE, check=True, env=environment).stdout
    expected = Counter({word: int(count) for count, word in (line.split(b" ", 1) for line in _stripped(lines))})
    assert expected.total() > 10_000
    assert counts_of(plain_grammar_of([(1, text)], words)) == expected


def _stripped(lines: bytes) -> list[bytes]:
    """Returns lines of `uniq -c` without the spaces before the count."""
    return [line.lstrip(b" ") for line in lines.split(b"\n") if line]


def test_numbers_of_word_rules() -> None:
    """The C++ core and the kernels use the indexes in WORD_RULES as numbers."""
    assert [WORD_RULE_KINDS[name].value for name in WORD_RULES] == list(range(len(WORD_RULES)))
    assert len(WORD_RULE_KINDS) == len(WORD_RULES)


def test_a_bitmap_is_for_letters_only() -> None:
    for rule, bitmap in ((_text.WordRule.LETTERS, b""), (_text.WordRule.IDENTIFIERS, b"\1")):
        with pytest.raises(ValueError, match="bitmap"):
            PlainText(rule, bitmap, 1)
