"""Reports over several grammars, compared with counting in plain Python."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_grammars import plain_grammar_of
from stored_parts import BUILDERS, grammar_of

from gompfs.statistics.word_counts import SortOrder, word_count_report
from gompfs.text.grammar import CountedWords, Grammar

words = st.sampled_from([b"a", b"ab", b"b", b"\xff", b"\0", b"\x7f", b"z" * 300, b"A", b"~"])
segments = st.lists(st.lists(st.lists(words, max_size=12), max_size=4), max_size=4)


def count(grammar: Grammar, inos: set[int] | None = None) -> CountedWords:
    return CountedWords(grammar, grammar.word_counts(inos))


def expected_reports(counts: Counter[bytes]) -> tuple[bytes, bytes]:
    by_word = sorted(counts.items())
    by_count = sorted(by_word, key=lambda item: -item[1])
    return tuple(b"".join(b"%s\t%d\n" % item for item in items) for items in (by_count, by_word))


@settings(max_examples=50, deadline=None)
@given(texts=segments, builder=st.sampled_from(sorted(BUILDERS)), excluded=st.sets(st.integers(0, 16)))
def test_segments_are_counted_together(texts: list[list[list[bytes]]], builder: str, excluded: set[int]) -> None:
    """Counts of all segments are added up. Words that occur only in excluded files are not listed."""
    counts: Counter[bytes] = Counter()
    grammars = []
    ino = 0
    for segment in texts:
        files = []
        for text in segment:
            ino += 1
            files.append((ino, b" ".join(text)))
            if ino not in excluded:
                counts.update(text)
        grammars.append(BUILDERS[builder](files))
    by_count, by_word = expected_reports(counts)
    counted = [count(grammar, grammar.inos() - excluded) for grammar in grammars]
    for num_threads in (0, 1, 3):
        for order, expected in ((SortOrder.BY_WORD, by_word), (SortOrder.BY_COUNT, by_count)):
            report = word_count_report(counted, order, num_threads=num_threads)
            assert report.size == len(expected)
            assert report.read() == expected
    first_lines = b"".join(by_count.splitlines(keepends=True)[:3])
    assert word_count_report(counted, SortOrder.BY_COUNT, top=3).read() == first_lines


def test_nothing_to_report() -> None:
    assert word_count_report([], SortOrder.BY_COUNT).read() == b""
    assert word_count_report([count(grammar_of([]))], SortOrder.BY_WORD).read() == b""
    left_out = word_count_report([count(grammar_of([(1, b"all left out")]), set())], SortOrder.BY_WORD)
    assert (left_out.size, left_out.read()) == (0, b"")


def test_equal_counts_are_in_byte_order() -> None:
    grammars = [grammar_of([(1, b"b a \xff c b")]), plain_grammar_of([(2, b"B a \xfe ab")])]
    counted = [count(grammar) for grammar in grammars]
    report = word_count_report(counted, SortOrder.BY_COUNT)
    assert report.read() == (b"a\t2\nb\t2\nB\t1\nab\t1\nc\t1\n\xfe\t1\n\xff\t1\n")


def test_many_words() -> None:
    """A dictionary read in several ranges, counts of one to seven digits, and text of many pieces."""
    counts = Counter({b"%x" % (number * 2654435761 % (1 << 32)): 1 + number % 7 for number in range(120_000)})
    counts |= Counter({b"often%d" % number: number * 997 for number in range(40)}) | Counter({b"x" * 3_000_000: 2})
    text = b"".join((word + b" ") * number for word, number in counts.items()) + b"most " * 1_200_000
    counted = count(plain_grammar_of([(1, text)], num_threads=2))
    expected = expected_reports(+counts + Counter({b"most": 1_200_000}))
    for order, lines in zip((SortOrder.BY_COUNT, SortOrder.BY_WORD), expected, strict=True):
        report = word_count_report([counted], order)
        pieces = list(report)
        assert b"".join(pieces) == lines
        assert report.size == len(lines)
        assert len(pieces) > 1
        assert all(piece.endswith(b"\n") for piece in pieces)


def test_the_words_of_a_grammar() -> None:
    grammar = grammar_of([(1, b"c a b a")])
    assert [grammar.word(number) for number in range(grammar.num_words)] == [b"a", b"b", b"c"]
    for number in (3, 2**32 - 1):
        with pytest.raises(IndexError):
            grammar.word(number)
