"""Word grammars (TADOC): the text of many files as a dictionary and rules. Packing builds them."""

from __future__ import annotations

from gompfs.grammar.builder import GrammarBuilder, PartsInRules, PartsInText, RuleBuilder
from gompfs.grammar.collector import PROBE_SIZE, GrammarCollector, is_text
from gompfs.grammar.grammar import NO_RULES, CountedWords, Grammar, GrammarPart, TokenizedFiles

__all__ = [
    "NO_RULES",
    "PROBE_SIZE",
    "CountedWords",
    "Grammar",
    "GrammarBuilder",
    "GrammarCollector",
    "GrammarPart",
    "PartsInRules",
    "PartsInText",
    "RuleBuilder",
    "TokenizedFiles",
    "is_text",
]
