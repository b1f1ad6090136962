"""Grammars whose rules somebody else builds: any rules that stand for the words will do, and no others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from grammars import build, counts_of, make_text, texts_of
from part_batches import batches, section_of_core, sections_of_batch

from gompfs import _grammar
from gompfs.grammar import Grammar, GrammarBuilder, PartsInRules, PartsInWords
from gompfs.grammar.reference import split_words

MIB = 1 << 20


def roots_alone(parts: PartsInWords) -> PartsInRules:
    """No rule but the root of each part."""
    places = np.arange(len(parts.num_words) + 1, dtype=np.uint32)
    return PartsInRules(parts.symbols, parts.starts[1:].astype(np.uint32), places)


def test_the_text_comes_back() -> None:
    for batch in batches():
        for section, texts in zip(sections_of_batch(batch, roots_alone), batch, strict=True):
            grammar = Grammar.from_bytes(section)
            assert texts_of(grammar) == [(ino, split_words(text)) for ino, text in enumerate(texts, 1)]
            assert counts_of(grammar) == counts_of(Grammar.from_bytes(section_of_core(texts)))


def test_parts_come_in_batches() -> None:
    """The last batch when all text is there; then it is as much as was put in."""
    taken = []

    def build_rules(parts: PartsInWords) -> PartsInRules:
        taken.append(len(parts.num_words))
        return roots_alone(parts)

    text = make_text(1, MIB, 5000) * 20
    builder = GrammarBuilder(num_threads=2, build_rules=build_rules)
    for ino in range(1, 9):
        builder.add_files([(ino, text)])
    grammar = Grammar.from_bytes(b"".join(builder.finish()))
    assert taken[:-1] == [16] * (len(taken) - 1)
    assert sum(taken) == grammar.native.num_parts > 16
    expected = counts_of(Grammar.from_bytes(build([(1, text)])))
    assert counts_of(grammar) == {word: 8 * count for word, count in expected.items()}


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
        replace(symbols=[0, 1, 3, _grammar.SPLITTER]),  # a rule that is not there
        replace(symbols=[_grammar.SPLITTER] * 4),
        replace(symbols=[0, 3, 0, 1, _grammar.SPLITTER], ends=[5, 4]),
        replace(symbols=[0, 3, _grammar.SPLITTER, 1, 2], ends=[3, 5]),  # a rule that uses one above it
        replace(symbols=[0, 3, 1, 0, _grammar.SPLITTER], ends=[2, 5]),  # a splitter in a rule
        replace(ends=[5]),
        replace(ends=[]),
        replace(places=[0]),
        replace(places=[0, 2]),
        replace(places=[1, 1]),
        replace(places=[0, 0]),
    ],
)
def test_other_rules_are_refused(change: Change) -> None:
    builder = GrammarBuilder(build_rules=lambda parts: change(roots_alone(parts)))
    builder.add_files([(1, b"a b a")])
    with pytest.raises(ValueError, match="not the rules of the words"):
        list(builder.finish())


def test_nothing_is_written_without_rules() -> None:
    builder = _grammar.GrammarBuilder(0, b"", 1, True)
    builder.add_files([(1, b"a b a")])
    builder.finish()
    with pytest.raises(RuntimeError, match="no rules"):
        list(iter(builder.next_piece, None))
