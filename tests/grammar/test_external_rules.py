"""Grammars whose words and rules come from a `build_rules` function: any rules that give the text are accepted."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import accumulate, chain, pairwise

import numpy as np
import pytest
from grammars import build, counts_of, make_text, texts_of
from numpy.typing import NDArray
from part_batches import batches, section_of_core, sections_of_batch

from gompfs._native import grammar as _grammar
from gompfs.grammar import Grammar, GrammarBuilder, PartsInRules, PartsInText
from gompfs.grammar.reference import split_words

MIB = 1 << 20


def roots_alone(parts: PartsInText) -> PartsInRules:
    """Returns no rules but the root of each part."""
    text = parts.text.tobytes()
    starts = [0, *(parts.file_ends + 1).tolist()]
    files = [split_words(text[start : end - 1]) for start, end in pairwise(starts)]
    words: list[bytes] = []
    roots: list[list[int]] = []
    part_words = [0]
    for first, end in pairwise(parts.part_files.tolist()):
        numbers: dict[bytes, int] = {}
        root: list[int] = []
        for file in files[first:end]:
            root += [*(numbers.setdefault(word, len(numbers)) for word in file), _grammar.SPLITTER]
        words += numbers
        part_words.append(len(words))
        roots.append(root)
    return PartsInRules(
        np.frombuffer(b"".join(words), np.uint8),
        numbers_of(accumulate(map(len, words))),
        numbers_of(part_words),
        numbers_of(chain.from_iterable(roots)),
        numbers_of(accumulate(map(len, roots))),
        numbers_of(range(len(roots) + 1)),
    )


def numbers_of(values: Iterable[int]) -> NDArray[np.uint32]:
    return np.fromiter(values, np.uint32)


def test_grammars_of_given_rules_have_the_text() -> None:
    for batch in batches():
        for section, texts in zip(sections_of_batch(batch, roots_alone), batch, strict=True):
            grammar = Grammar.from_bytes(section)
            assert texts_of(grammar) == [(ino, split_words(text)) for ino, text in enumerate(texts, 1)]
            assert counts_of(grammar) == counts_of(Grammar.from_bytes(section_of_core(texts)))


def test_parts_come_in_batches() -> None:
    """All batches but the last have 16 parts. The last one contains the rest once all text was added."""
    taken = []

    def build_rules(parts: PartsInText) -> PartsInRules:
        taken.append(parts.part_files.size - 1)
        return roots_alone(parts)

    text = b" ".join(b"%08d" % (number % 999) * 100 for number in range(17 * MIB // 800))  # long words are fast
    builder = GrammarBuilder(num_threads=2, build_rules=build_rules)
    for ino in range(1, 9):
        builder.add_files([(ino, text)])
    grammar = Grammar.from_bytes(b"".join(builder.finish()))
    assert taken[:-1] == [16] * (len(taken) - 1)
    assert sum(taken) == grammar.native.num_parts > 16
    expected = Counter(split_words(text))
    assert counts_of(grammar) == {word: 8 * count for word, count in expected.items()}


def test_the_text_is_in_allocated_memory() -> None:
    given = []

    def allocate(size: int) -> memoryview:
        given.append(bytearray(size))
        return memoryview(given[-1])

    builder = GrammarBuilder(build_rules=roots_alone, allocate=allocate)
    builder.add_files([(1, b"a b"), (2, b""), (3, b"c\n")])
    assert texts_of(Grammar.from_bytes(b"".join(builder.finish()))) == [(1, [b"a", b"b"]), (2, []), (3, [b"c"])]
    assert given == [b"a b\n\nc\n\n"]


def test_memory_of_another_size_is_refused() -> None:
    builder = GrammarBuilder(build_rules=roots_alone, allocate=lambda size: memoryview(bytearray(size + 1)))
    builder.add_files([(1, b"a")])
    with pytest.raises(ValueError, match="does not have the size of the text"):
        list(builder.finish())


def test_sequitur_builds_its_own_rules() -> None:
    text = make_text(2, 20_000)
    builder = GrammarBuilder("sequitur", build_rules=roots_alone)
    builder.add_files([(1, text)])
    assert b"".join(builder.finish()) == build([(1, text)], "sequitur")


Change = Callable[[PartsInRules], PartsInRules]


def replace(**changes: object) -> Change:
    return lambda rules: dataclasses.replace(
        rules, **{name: np.array(value, np.uint32) for name, value in changes.items()}
    )


@pytest.mark.parametrize(
    "change",
    [
        replace(symbols=[0, 1, 0]),
        replace(symbols=[0, 1, 0, 1]),
        replace(symbols=[0, 1, 2, _grammar.SPLITTER]),  # the root uses itself
        replace(symbols=[0, 1, 3, _grammar.SPLITTER]),  # a rule that does not exist
        replace(symbols=[_grammar.SPLITTER] * 4),
        replace(symbols=[0, 3, 0, 1, _grammar.SPLITTER], rule_ends=[5, 4]),
        replace(symbols=[0, 3, _grammar.SPLITTER, 1, 2], rule_ends=[3, 5]),  # a rule that uses a rule before it
        replace(symbols=[0, 3, 1, 0, _grammar.SPLITTER], rule_ends=[2, 5]),  # a splitter in a rule
        replace(rule_ends=[5]),
        replace(rule_ends=[]),
        replace(part_rules=[0]),
        replace(part_rules=[0, 2]),
        replace(part_rules=[1, 1]),
        replace(part_rules=[0, 0]),
        replace(word_ends=[1, 1]),  # an empty word
        replace(word_ends=[2, 1]),
        replace(word_ends=[1, 3]),
        replace(word_ends=[1]),
        replace(part_words=[0]),
        replace(part_words=[1, 2]),
        replace(part_words=[0, 3]),
        lambda rules: dataclasses.replace(rules, word_bytes=np.frombuffer(b"aa", np.uint8)),
    ],
)
def test_rules_of_another_text_are_refused(change: Change) -> None:
    builder = GrammarBuilder(build_rules=lambda parts: change(roots_alone(parts)))
    builder.add_files([(1, b"a b a")])
    with pytest.raises(ValueError, match="the rules do not belong to the text"):
        list(builder.finish())


def test_nothing_is_written_without_rules() -> None:
    builder = _grammar.GrammarBuilder(_grammar.BuilderKind.REPAIR, _grammar.WordRule.WHITESPACE, b"", 1, True)
    builder.add_files([(1, b"a b a")])
    builder.finish()
    with pytest.raises(RuntimeError, match="no rules"):
        builder.next_piece()
