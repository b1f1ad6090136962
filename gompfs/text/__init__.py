"""Word grammars (TADOC): the text of many files as a dictionary and rules. Statistics are computed from them."""

from __future__ import annotations

from gompfs.text.grammar import CountedWords, Grammar, GrammarPart
from gompfs.text.probe import PROBE_SIZE, is_text

__all__ = ["PROBE_SIZE", "CountedWords", "Grammar", "GrammarPart", "is_text"]
