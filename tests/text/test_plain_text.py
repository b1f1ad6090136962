"""Text that is not stored in parts, cut into words: compared with plain Python."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.grammar import split_words, word_counts
from plain_grammars import Files, counts_of, plain_grammar_of, texts_of

from gompfs._native.text import PlainText
from gompfs.model import WORD_RULES
from gompfs.text.grammar import SPLITTER, Grammar
from gompfs.text.word_characters import WORD_RULE_KINDS, word_characters

MIB = 1 << 20

each_rule = pytest.mark.parametrize("words", WORD_RULES)
few_words = st.lists(st.sampled_from([b"a", b"b", b"ab", b"it's", b"_", b" ", b" ", b"\n", b", ", b"\0"])).map(b"".join)
invalid = [b"\xff", b"\xc3", b"\xa9", b"\xe2\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", "\u00e9".encode(), b"\0"]
contents = st.one_of(few_words, st.lists(st.sampled_from(invalid)).map(b"".join), st.binary(max_size=200))


def check(grammar: Grammar, files: Files, words: str) -> None:
    """Checks that a grammar has the words of these files in their order. Files without bytes are not in it."""
    texts = [(ino, split_words(content, words)) for ino, content in files if content]
    assert texts_of(grammar) == texts
    expected = Counter(word for _, text in texts for word in text)
    assert [grammar.word(number) for number in range(grammar.num_words)] == sorted(expected)
    assert counts_of(grammar) == expected == word_counts(grammar)
    for part in grammar.parts():
        assert part.num_rules == 1
        assert part.num_tokens == part.symbols.size - len(part.inos)
        assert int((part.symbols == SPLITTER).sum()) == len(part.inos)


@each_rule
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(contents, max_size=6), piece_size=st.integers(1, 40), excluded=st.sets(st.integers(0, 20)))
def test_any_files(words: str, texts: list[bytes], piece_size: int, excluded: set[int]) -> None:
    """Also with the same bytes in pieces of any size, and with counts that exclude some files."""
    files = [(3 * index + 2, text) for index, text in enumerate(texts)]
    check(plain_grammar_of(files, words), files, words)
    grammar = plain_grammar_of(files, words, piece_size=piece_size)
    check(grammar, files, words)
    kept = [content for ino, content in files if ino not in excluded]
    expected = Counter(word for content in kept for word in split_words(content, words))
    assert counts_of(grammar, sorted(excluded, reverse=True)) == expected


@each_rule
def test_odd_files(words: str) -> None:
    """Inode numbers in any order, files without words, words of any bytes, a word at the end of a file."""
    pairs = b" ".join(bytes(pair) for pair in itertools.product(range(256), repeat=2))
    files = [(2**61, b"wor"), (1, b"d wor"), (2**62 - 1, b""), (2, b" \n\t"), (3, pairs), (4, b"\v\f\r" * 1000)]
    files += [(5, random.Random(3).randbytes(200_000)), (6, b"p" * 254 + b" " + b"p" * 600), (7, b"\0" * 5000)]
    check(plain_grammar_of(files, words), files, words)
    check(plain_grammar_of([], words), [], words)


@pytest.mark.parametrize(("words", "num_threads"), [(rule, 4) for rule in WORD_RULES] + [(WORD_RULES[0], 1)])
def test_files_over_several_parts(words: str, num_threads: int) -> None:
    """A file is cut where a word begins, also after a separator that is not whitespace, and at a word of 9 MiB."""
    rng = random.Random(words)
    words_of_text = (b"alpha" * 6 + b"-", b"beta" * 6 + b"+ ", ("gamm\u00e4" * 5 + ",").encode(), b" delta0" * 2 + b";")
    text = b"".join(rng.choices(words_of_text, k=400_000))
    files = [(1, text), (2, b"x" * (9 * MIB)), (3, b"the end")]
    grammar = plain_grammar_of(files, words, num_threads)
    check(grammar, files, words)
    assert [part.continues for part in grammar.parts()].count(True) >= 1


def test_words_are_taken_in_between() -> None:
    """What was taken is not returned again, and the rest of a file that has not ended comes with the next call."""
    text = PlainText(WORD_RULE_KINDS["whitespace"], word_characters("whitespace"), 2)
    long = b" ".join(b"%020d" % (number % 1000) for number in range(550_000))
    text.begin_file(1)
    text.add_bytes(b"first ")
    assert Grammar(text.take()).num_words == 0
    text.add_bytes(long)
    begin = Grammar(text.take())
    text.end_file()
    text.begin_file(2)
    text.add_bytes(b"second")
    text.end_file()
    rest = Grammar(text.take())
    assert next(part.continues for part in rest.parts())
    assert counts_of(begin).keys() | {b"second"} == counts_of(rest).keys() | {b"first"}
    expected = Counter((b"first " + long).split()) + Counter([b"second"])
    assert Counter(counts_of(begin)) + Counter(counts_of(rest)) == expected
    assert Grammar(text.take()).num_words == 0
