"""Damaged and hostile grammar sections are refused, or give grammars that are safe to use."""

from __future__ import annotations

import itertools
import random
import re
import struct

import numpy as np
import pytest
from grammars import BUILDERS, build, make_text

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.errors import ArchiveFormatError
from gompfs.grammar import CountedWords, Grammar
from gompfs.grammar.reference import word_counts
from gompfs.model import WORD_RULES
from gompfs.statistics.postings import postings_report
from gompfs.statistics.traversal import Traversal
from gompfs.statistics.word_counts import SortOrder, word_count_report

TEXT = b"to be or not to be that is the question, to be or not to be " * 3
FILES = [(7, TEXT), (3, b""), (9, b"the question is that: to be or to be"), (12, TEXT + b"p" * 300 + b" " + b"p" * 299)]
NUM_MUTATIONS = 500  # for each of four sections
MAX_EXPANSION = 1 << 16


def use(section: bytes) -> bool:
    """Does everything that is done with a grammar. Returns False if it is refused."""
    try:
        grammar = Grammar.from_bytes(section)
    except ArchiveFormatError as error:
        with pytest.raises(ArchiveFormatError, match=re.escape(error.message)):
            CountedWords.from_section(section)
        return False
    counts = grammar.word_counts(None, 1)
    counted = CountedWords.from_section(section)
    assert (counted.counts == counts).all()
    assert counts.shape == (grammar.num_words,)
    parts = list(grammar.parts())
    if sum(part.num_tokens for part in parts) < MAX_EXPANSION:
        expected = word_counts(grammar)
        assert [int(count) for count in counts] == [
            expected[grammar.word(number)] for number in range(grammar.num_words)
        ]
        assert int(counts.sum()) == sum(part.num_tokens for part in parts)
    for inos in ((3, 9), ()):
        of_files = grammar.word_counts(inos, 2)
        assert (of_files <= counts).all()
        assert (CountedWords.from_section(section, inos).counts == of_files).all()
    twice = [counted, CountedWords(grammar, counts)]
    assert word_count_report(twice, SortOrder.BY_COUNT).read().count(b"\n") >= np.count_nonzero(counts)
    use_for_files(grammar)
    return True


def use_for_files(grammar: Grammar) -> None:
    """Checks that tasks over files and n-grams give the same result by all ways of traversal."""
    paths = {ino: b"%d" % ino for ino in grammar.inos()}
    for task in PostingsTask:
        assert len({postings_report(task, [grammar], paths, traversal=how).read() for how in TRAVERSALS}) == 1


TRAVERSALS = [
    Traversal(sequential=True, num_threads=1),
    Traversal(Direction.TOP_DOWN, num_threads=1),
    Traversal(Direction.BOTTOM_UP, num_threads=1),
]


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("words", WORD_RULES)
def test_truncations_and_additions(builder: str, words: str) -> None:
    section = build(FILES, builder, words)
    assert use(section)
    for size in range(len(section)):
        assert not use(section[:size]), size
    for tail in (b"\0", b"\1", section):
        assert not use(section + tail)


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("words", WORD_RULES)
def test_mutations(builder: str, words: str) -> None:
    """Flipped bits, changed bytes, large numbers, and bytes that are removed, doubled or moved."""
    section = build([*FILES, (20, make_text(5, 2000))], builder, words)
    rng = random.Random(f"{builder} {words}")
    num_used = 0
    for _ in range(NUM_MUTATIONS):
        mutated = bytearray(section)
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            at = rng.randrange(len(mutated))
            size = rng.randrange(1, 9)
            kind = rng.randrange(5)
            if kind == 0:
                mutated[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                mutated[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
            elif kind == 2:
                mutated[at : at + size] = b"\xff" * size
            elif kind == 3:
                del mutated[at : at + size]
            else:
                mutated[at:at] = mutated[at : at + size]
        num_used += use(bytes(mutated))
    assert num_used < NUM_MUTATIONS // 2


@pytest.mark.parametrize("builder", BUILDERS)
def test_each_byte_changed(builder: str) -> None:
    section = build(FILES[:3], builder)
    for at in range(len(section)):
        for value in (0, 1, section[at] ^ 1, section[at] ^ 2, 0x7F, 0x80, 0xFF):
            use(section[:at] + bytes([value]) + section[at + 1 :])


def number(value: int) -> bytes:
    """Returns a number of variable length."""
    coded = bytearray()
    while value >= 0x80:
        coded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*coded, value])


def header(num_words: int, num_parts: int, words: int = 0, builder: int = 0) -> bytes:
    return struct.pack("<4sHBBII16x", b"GGRM", 1, words, builder, num_words, num_parts)


ONE_WORD = b"\0" + number(1) + b"w"  # a dictionary


def part(num_tokens: int, rules: list[list[int]], inos: tuple[int, ...] = (5,), words: tuple[int, ...] = (0,)) -> bytes:
    """Returns a part whose rules are given as coded symbols."""
    numbers = [0, num_tokens, len(inos), *(2 * ino for ino in inos), len(words), *(2 * word for word in words)]
    numbers += [len(rules), *map(len, rules), *(symbol for rule in rules for symbol in rule)]
    return b"".join(map(number, numbers))


WORD, SPLITTER = 1, 0


def test_sections_written_by_hand() -> None:
    """Sections written as in docs/format.md."""
    assert use(header(0, 0))
    assert use(header(1, 1) + ONE_WORD + part(1, [[WORD, SPLITTER]]))
    section = header(1, 1) + ONE_WORD + part(5, [[4, WORD, 4, SPLITTER], [2, WORD], [WORD]])
    assert Grammar.from_bytes(section).word_counts().tolist() == [5]
    assert Grammar.from_bytes(section).word_counts([4]).tolist() == [0]


def test_an_expansion_beyond_all_memory() -> None:
    """60 rules that each use the next one twice; the text is never expanded."""
    depth = 60
    rules = [[2 * depth, SPLITTER], *([2 * level, 2 * level] for level in range(depth - 1, 0, -1)), [WORD, WORD]]
    section = header(1, 1) + ONE_WORD + part(1 << depth, rules)
    grammar = Grammar.from_bytes(section)
    assert grammar.word_counts().tolist() == [1 << depth]
    for how in TRAVERSALS:
        vectors = postings_report(PostingsTask.TERM_VECTOR, [grammar], {5: b"f"}, traversal=how).read()
        assert vectors == b"f\t%d w\n" % (1 << depth)
        sequences = postings_report(PostingsTask.SEQUENCE_COUNT, [grammar], {5: b"f"}, traversal=how).read()
        assert sequences == b"w w w\t%d\n" % ((1 << depth) - 2)
    too_deep = [[2 * 64, SPLITTER], *([2 * level, 2 * level] for level in range(63, 0, -1)), [WORD, WORD]]
    for num_tokens in (0, 1 << 61, 1 << 62):
        assert not use(header(1, 1) + ONE_WORD + part(num_tokens, too_deep))


@pytest.mark.parametrize(
    "section",
    [
        b"",
        b"GGRM",
        b"GGRN" + header(0, 0)[4:],
        b"GGRM\2" + header(0, 0)[5:],
        header(0, 0, words=3),
        header(0, 0, builder=2),
        header(0, 0)[:16] + b"\1" + bytes(15),
        header(0, 0)[:31] + b"\1",
        header(0xFFFFFFFF, 0),
        header(0, 0xFFFFFFFF),
        header(1, 0) + b"\0" + number(0),
        header(1, 0) + b"\1" + number(0),
        header(1, 0) + b"\0" + number(1 << 62) + b"w",
        header(1, 0) + b"\0" + b"\xff" * 10 + b"w",
        header(2, 0) + b"\0\0" + number(1) * 2 + b"ba",
        header(2, 0) + b"\0\0" + number(1) * 2 + b"aa",
        header(2, 0) + b"\0\2" + number(1) * 2 + b"aa",
        header(1, 1) + ONE_WORD + part(0, []),
        header(1, 1) + ONE_WORD + part(2, [[WORD, SPLITTER]]),
        header(1, 1) + ONE_WORD + part(0, [[WORD, SPLITTER]]),
        header(1, 1) + ONE_WORD + part(1, [[WORD]]),
        header(1, 1) + ONE_WORD + part(1, [[WORD, SPLITTER, SPLITTER]]),
        header(1, 1) + ONE_WORD + part(1, [[WORD, SPLITTER]], words=(1,)),
        header(1, 1) + ONE_WORD + part(1, [[3, SPLITTER]]),
        header(1, 1) + ONE_WORD + part(1, [[2, SPLITTER]]),
        header(1, 1) + ONE_WORD + part(1, [[4, SPLITTER], [WORD]]),
        header(1, 1) + ONE_WORD + part(2, [[2, 2, SPLITTER], [2]]),
        header(1, 1) + ONE_WORD + part(2, [[2, 2, SPLITTER], [WORD, SPLITTER]]),
        header(1, 1) + ONE_WORD + part(1, [[SPLITTER, WORD]]),
        header(1, 1) + ONE_WORD + part(1, [[WORD]], inos=()),
    ],
    ids=itertools.count(),
)
def test_impossible_sections(section: bytes) -> None:
    with pytest.raises(ArchiveFormatError, match=r"^the grammar section is damaged: ."):
        Grammar.from_bytes(section)
