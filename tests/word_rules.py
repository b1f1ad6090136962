"""The format versions of archives with each word rule, and coreutils as the oracle for words."""

from __future__ import annotations

from gompfs.model import word_rules_of

ONE_WORD_PER_LINE = {"whitespace": r"tr -s '[:space:]' '\n'", "identifiers": r"tr -cs '[:alnum:]_\200-\377' '\n'"}
"""Commands that print each word on a line in the C locale, and perhaps empty lines."""
RULES_AND_VERSIONS = [(words, version) for version in (1, 2) for words in word_rules_of(version)]
"""All pairs of a word rule and a format version whose archives may have the rule."""
