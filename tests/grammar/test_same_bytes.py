"""A section depends on the files alone, not on the number of threads, nor on the pieces in which files come."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from grammars import BUILDERS, Files, build, build_in_pieces, check, counts_of, make_text, texts_of

from gompfs.grammar import Grammar
from gompfs.grammar.reference import split_words
from gompfs.model import WORD_RULES

MIB = 1 << 20
PART_SIZE = 8 * MIB  # a part ends after this much text


@pytest.fixture(scope="module")
def large_files() -> Files:
    """21 MiB: small files, one across three parts, one that begins just before the end of a part, and empty ones."""
    text = b"".join(make_text(seed, MIB // 2) for seed in range(4))
    small = [(ino, text[ino * 1000 : ino * 2000]) for ino in range(1, 60)]
    rest = PART_SIZE - sum(len(content) for _, content in small) - 100_000
    first = (text * 4)[:rest]
    return [*small, (60, first), (61, b""), (62, text * 5 + b"word" * 500_000), (63, b""), (64, text), (65, b"")]


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("words", WORD_RULES)
@pytest.mark.parametrize("num_words", [1, 3, 4, 40, 1000])
def test_threads_and_a_small_dictionary(builder: str, words: str, num_words: int) -> None:
    files = [(1, b" ".join(b"stem%d" % (number * number) for number in range(num_words)))]
    sections = {build(files, builder, words, num_threads) for num_threads in (1, 2, 3, 4, 16)}
    assert len(sections) == 1


@pytest.mark.parametrize(
    ("words", "builder"),
    [
        ("whitespace", "repair"),
        pytest.param("letters", "sequitur", marks=pytest.mark.slow),
        pytest.param("whitespace", "sequitur", marks=pytest.mark.slow),
        pytest.param("letters", "repair", marks=pytest.mark.slow),
    ],
)
def test_threads_and_pieces_over_several_parts(builder: str, words: str, large_files: Files) -> None:
    section = build(large_files, builder, words, num_threads=1)
    parts = list(Grammar.from_bytes(section).parts())
    assert [part.continues for part in parts] == [False, True, True]
    assert build(large_files, builder, words, num_threads=4) == section
    for sizes in ((64 * 1024,), (3 * MIB + 1, 5, 777_777)):
        assert build_in_pieces(large_files, itertools.cycle(sizes), builder, words, num_threads=3) == section


def test_words_over_several_parts(large_files: Files) -> None:
    """The words of a file are in order although parts cut it, and the file can be excluded from the counts."""
    grammar = Grammar.from_bytes(build(large_files))
    expected = {ino: split_words(content) for ino, content in large_files}
    assert texts_of(grammar) == list(expected.items())
    for excluded in ([], [62], [60, 61, 62, 99], range(1, 65)):
        counts = Counter(word for ino, text in expected.items() if ino not in excluded for word in text)
        for num_threads in (1, 4):
            assert counts_of(grammar, excluded, num_threads) == counts


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_word_longer_than_a_part(builder: str) -> None:
    """A part can be cut only between words: here it grows until the end of the long word."""
    word = b"0123456789abcdef" * (PART_SIZE // 16 + 200_000)
    files = [(1, b"short " + word + b" tail " + word[:-1] + b"! end"), (2, b"short tail end")]
    section = build(files, builder)
    check(section, files, builder, "whitespace")
    assert len(list(Grammar.from_bytes(section).parts())) > 1
    for size in (100_003, 4 * MIB):
        assert build_in_pieces(files, itertools.repeat(size), builder, num_threads=2) == section


def test_many_empty_files() -> None:
    """More files than a part may have, without any text."""
    num_files = (1 << 20) + 5
    files = [(ino, b"") for ino in range(1, num_files)] + [(num_files, b"word")]
    section = build(files, num_threads=2)
    parts = list(Grammar.from_bytes(section).parts())
    assert len(parts) == 2
    assert np.concatenate([part.inos for part in parts]).tolist() == list(range(1, num_files + 1))
    assert counts_of(Grammar.from_bytes(section)) == {b"word": 1}


@pytest.mark.slow
@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("words", WORD_RULES)
def test_40_mb_of_text(builder: str, words: str) -> None:
    rng = random.Random(40)
    text = b"".join(make_text(seed, 2 * MIB, 20_000) for seed in range(5))
    files = []
    for ino in range(1, 1000):
        start = rng.randrange(len(text))
        files.append((ino, text[start : start + rng.choice((0, 10, 1000, 30_000))]))
    files += [(1000, text * 2), (1001, text[: 5 * MIB]), (1002, text + text[::-1])]
    section = build(files, builder, words, num_threads=4)
    grammar = check(section, files, builder, words)
    assert len(list(grammar.parts())) >= 5
    sizes = itertools.cycle(rng.randrange(1, 2 * MIB) for _ in range(50))
    assert build_in_pieces(files, sizes, builder, words, num_threads=2) == section
