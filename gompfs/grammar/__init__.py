"""Word grammars (TADOC): the text of many files as a dictionary and rules, built while packing."""

from __future__ import annotations

from gompfs.grammar.builder import GrammarBuilder
from gompfs.grammar.grammar import Grammar, GrammarPart

__all__ = ["Grammar", "GrammarBuilder", "GrammarPart"]
