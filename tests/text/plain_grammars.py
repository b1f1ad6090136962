"""Grammars of text that is not stored in parts, and what the words of any grammar are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oracle import grammar as grammar_oracle

from gompfs._native.text import PlainText
from gompfs.text.grammar import Grammar
from gompfs.text.word_characters import WORD_RULE_KINDS, word_characters

Files = Sequence[tuple[int, bytes]]


def plain_grammar_of(
    files: Files, word_rule: str = "whitespace", num_threads: int = 1, piece_size: int = 1 << 20
) -> Grammar:
    """Returns the grammar of files that come in pieces."""
    text = PlainText(WORD_RULE_KINDS[word_rule], word_characters(word_rule), num_threads)
    for ino, content in files:
        text.begin_file(ino)
        for start in range(0, len(content), piece_size):
            text.add_bytes(content[start : start + piece_size])
        text.end_file()
    return Grammar(text.take())


def texts_of(grammar: Grammar) -> list[tuple[int, list[bytes]]]:
    """Returns the files of a grammar as (inode number, words), with files joined that parts have cut."""
    words = [grammar.word(number) for number in range(grammar.num_words)]
    files: list[tuple[int, list[bytes]]] = []
    for part in grammar.parts():
        expanded = grammar_oracle.expand_part(part)
        assert len(expanded) == len(part.inos)
        for index, (ino, numbers) in enumerate(zip(part.inos.tolist(), expanded, strict=True)):
            if index == 0 and part.continues:
                assert files[-1][0] == ino
                files[-1][1].extend(words[number] for number in numbers)
            else:
                files.append((ino, [words[number] for number in numbers]))
    return files


def counts_of(grammar: Grammar, excluded_inos: Sequence[int] = (), num_threads: int = 1) -> dict[bytes, int]:
    """Returns the counts of the C++ core, without words that do not occur."""
    counts = grammar.word_counts(grammar.inos().difference(excluded_inos), num_threads)
    assert counts.shape == (grammar.num_words,)
    return {grammar.word(int(number)): int(counts[number]) for number in np.flatnonzero(counts)}
