"""Words and grammars in slow, readable Python: the oracle for the C++ core."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from gompfs.text.grammar import SPLITTER, Grammar, GrammarPart
from gompfs.text.word_characters import is_word_character

_WORDS_OF_BYTES = {
    "whitespace": re.compile(rb"[^ \t\n\v\f\r]+"),
    "identifiers": re.compile(rb"[0-9A-Za-z_\x80-\xff]+"),
}


class _SpacesAroundWords(dict[int, int]):
    """By code point: what str.translate puts there, a space for all that are not in words."""

    def __missing__(self, point: int) -> int:
        self[point] = point if is_word_character(chr(point)) else ord(" ")
        return self[point]


_LETTERS = _SpacesAroundWords()


def split_words(text: bytes, word_rule: str = "whitespace") -> list[bytes]:
    """Returns the words of a text in order."""
    if word_rule in _WORDS_OF_BYTES:
        return _WORDS_OF_BYTES[word_rule].findall(text)
    spaced = text.decode("utf-8", "surrogateescape").translate(_LETTERS)
    return [word.encode() for word in spaced.split(" ") if word]


def expand_part(part: GrammarPart) -> list[list[int]]:
    """Returns the text of each file of a part, as word numbers of the dictionary."""
    bodies = [piece.tolist() for piece in np.split(part.symbols, part.rule_starts[1:-1].astype(np.int64))]
    expansions: dict[int, list[int]] = {}
    for rule in range(part.num_rules - 1, 0, -1):
        expansions[rule] = list(_expand(part, bodies[rule], expansions))
    files: list[list[int]] = [[]]
    for symbol in bodies[0]:
        if symbol == SPLITTER:
            files.append([])
        else:
            files[-1].extend(_expand(part, [symbol], expansions))
    return files[:-1]


def _expand(part: GrammarPart, body: list[int], expansions: dict[int, list[int]]) -> Iterator[int]:
    for symbol in body:
        if symbol < len(part.words):
            yield int(part.words[symbol])
        else:
            yield from expansions[symbol - len(part.words)]


def word_counts(grammar: Grammar) -> Counter[bytes]:
    """Returns how often each word occurs. Top-down (TADOC section 4): weights flow from the root to all rules."""
    counts: Counter[bytes] = Counter()
    for part in grammar.parts():
        weights = [1] + [0] * (part.num_rules - 1)
        for rule in range(part.num_rules):
            for symbol in part.symbols[int(part.rule_starts[rule]) : int(part.rule_starts[rule + 1])].tolist():
                if symbol < len(part.words):
                    counts[grammar.word(int(part.words[symbol]))] += weights[rule]
                elif symbol != SPLITTER:
                    weights[symbol - len(part.words)] += weights[rule]
    return counts
