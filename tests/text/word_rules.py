"""Coreutils as the oracle for words."""

from __future__ import annotations

ONE_WORD_PER_LINE = {"whitespace": r"tr -s '[:space:]' '\n'", "identifiers": r"tr -cs '[:alnum:]_\200-\377' '\n'"}
"""Commands that print each word on a line in the C locale, and perhaps empty lines."""
