"""Cuts text into the tokens of gompresso-tadoc, and makes a simple grammar of them (docs/format.md)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oracle.constants import MAX_EXPANSION_SIZE
from oracle.grammar import split_words

IDENTIFIER = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
MAX_LEVEL = 31


class Token(NamedTuple):
    """A word, a separator, or the splitter, whose content is empty."""

    content: bytes
    is_word: bool


class Rule(NamedTuple):
    """A rule, by its index in Grammar.rules."""

    index: int


Symbol = Token | Rule
SPLITTER = Token(b"", False)


class Piece(NamedTuple):
    """Bytes of one file that a part holds, and whether the file ends there."""

    content: bytes
    ends_file: bool = True


@dataclass
class Grammar:
    """The root and the rules of a part. Rules refer to rules of lower indexes only."""

    root: list[Symbol]
    rules: list[list[Symbol]]

    def tokens(self, symbol: Symbol) -> Iterator[Token]:
        """Yields the tokens that a symbol stands for."""
        if isinstance(symbol, Token):
            yield symbol
        else:
            for child in self.rules[symbol.index]:
                yield from self.tokens(child)

    def levels(self) -> list[int]:
        """Returns the level of each rule."""
        levels: list[int] = []
        for body in self.rules:
            levels.append(1 + max(levels[child.index] if isinstance(child, Rule) else 0 for child in body))
        return levels


def words_of(text: bytes, word_rule: str) -> list[bytes]:
    return IDENTIFIER.findall(text) if word_rule == "identifiers" else split_words(text, word_rule)


def tokens_of(pieces: Sequence[Piece], word_rule: str = "identifiers") -> list[Symbol]:
    """Returns the tokens of a part. Each file that ends in it has a splitter at its end."""
    tokens: list[Symbol] = []
    for content, ends_file in pieces:
        position = 0
        for word in words_of(content, word_rule):
            start = content.index(word, position)
            separator = content[position:start]
            if separator and not (separator == b" " and position > 0):
                tokens.append(Token(separator, False))
            tokens.append(Token(word, True))
            position = start + len(word)
        if position < len(content):
            tokens.append(Token(content[position:], False))
        if content and ends_file:
            tokens.append(SPLITTER)
    return tokens


def make_grammar(tokens: Sequence[Symbol], max_rules: int = 100, max_level: int = MAX_LEVEL) -> Grammar:
    """Replaces the most frequent pair of symbols by a rule, again and again; then drops rules that are used once."""
    grammar = Grammar(list(tokens), [])
    sizes: list[int] = []
    levels: list[int] = []

    def size(symbol: Symbol) -> int:
        return sizes[symbol.index] if isinstance(symbol, Rule) else len(symbol.content) + symbol.is_word

    def level(symbol: Symbol) -> int:
        return levels[symbol.index] if isinstance(symbol, Rule) else 0

    for _ in range(max_rules):
        pairs = Counter(zip(grammar.root, grammar.root[1:], strict=False))
        found = [
            (count, pair) for pair, count in pairs.items()
            if count > 1 and SPLITTER not in pair and max(map(level, pair)) < max_level
            and sum(map(size, pair)) <= MAX_EXPANSION_SIZE
        ]  # fmt: skip
        if not found:
            break
        _, pair = max(found, key=lambda item: item[0])
        sizes.append(sum(map(size, pair)))
        levels.append(1 + max(map(level, pair)))
        grammar.rules.append(list(pair))
        grammar.root = replace_pair(grammar.root, pair, Rule(len(grammar.rules) - 1))
    return without_single_uses(grammar)


def replace_pair(symbols: list[Symbol], pair: tuple[Symbol, Symbol], rule: Rule) -> list[Symbol]:
    replaced: list[Symbol] = []
    position = 0
    while position < len(symbols):
        matches = tuple(symbols[position : position + 2]) == pair
        replaced.append(rule if matches else symbols[position])
        position += 2 if matches else 1
    return replaced


def without_single_uses(grammar: Grammar) -> Grammar:
    """Replaces each rule that is used at most once by its symbols, so that rules of many symbols arise."""
    uses = Counter(symbol for body in (grammar.root, *grammar.rules) for symbol in body if isinstance(symbol, Rule))
    made = Grammar([], [])
    renamed: dict[int, list[Symbol]] = {}

    def rewrite(body: Sequence[Symbol]) -> list[Symbol]:
        return [
            new
            for symbol in body
            for new in (renamed[symbol.index] if isinstance(symbol, Rule) else [symbol])
        ]  # fmt: skip

    for index, body in enumerate(grammar.rules):
        renamed[index] = rewrite(body)
        if uses[Rule(index)] > 1:
            made.rules.append(renamed[index])
            renamed[index] = [Rule(len(made.rules) - 1)]
    made.root = rewrite(grammar.root)
    return made
