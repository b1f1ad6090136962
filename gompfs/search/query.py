"""The parameters of a search."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from gompfs._native.search import Matcher, PatternError
from gompfs.errors import OptionError

_MAX_COUNT = (1 << 63) - 1


class Output(IntEnum):
    """What a search returns. The values equal those of SearchOptions::Output in native/search."""

    LINES = 0
    COUNT = 1
    FILES_WITH_MATCHES = 2
    FILES_WITHOUT_MATCH = 3
    JSON = 4


class SearchQuery(NamedTuple):
    """What to search for, and what to return. The options have ripgrep's meanings."""

    patterns: tuple[bytes, ...]
    fixed: bool = False
    """The patterns are literals."""
    ignore_case: bool = False
    smart_case: bool = False
    """Ignore the case unless a pattern has an uppercase letter."""
    words: bool = False
    lines: bool = False
    """A match must be a whole line."""
    invert: bool = False
    multi_line: bool = False
    """A match may take several lines."""
    dot_all: bool = False
    """With `multi_line`, a dot also matches a line feed."""
    text: bool = False
    """Search binary files as if they were text."""
    output: Output = Output.LINES
    only_matching: bool = False
    line_numbers: bool = False
    columns: bool = False
    """Write where the first match of a line begins, in bytes from 1; with `only_matching`, where each match begins."""
    paths: bool = True
    heading: bool = False
    color: bool = False
    null: bool = False
    """Write a NUL after each path."""
    count_matches: bool = False
    max_count: int | None = None
    """Limit for the matching lines of each file."""
    max_columns: int = 0
    """Lines with more bytes are left out of the output; 0: no limit."""
    before: int = 0
    after: int = 0
    """Lines of context."""
    globs: tuple[bytes, ...] = ()
    prunes: bool = True
    """Do not read files that cannot have a match, judged by the words in the heads of their parts."""
    sort: bool = False
    """Return files in the order of their paths. Otherwise their order is that of their bytes in the archive."""

    def matcher(self) -> Matcher:
        """Returns the compiled patterns. Raises OptionError."""
        try:
            return Matcher(
                self.patterns,
                fixed=self.fixed,
                caseless=self.ignore_case,
                smart_case=self.smart_case,
                words=self.words,
                lines=self.lines,
                multi_line=self.multi_line,
                dot_all=self.dot_all,
            )
        except PatternError as error:
            raise OptionError(str(error)) from None

    def native_options(self) -> dict[str, int]:
        """Returns the members of SearchOptions in native/search."""
        return {
            "output": self.output,
            "is_inverted": self.invert,
            "searches_binary": self.text,
            "only_matching": self.only_matching,
            "has_line_numbers": self.line_numbers,
            "has_columns": self.columns,
            "has_paths": self.paths,
            "has_heading": self.heading,
            "has_color": self.color,
            "has_null": self.null,
            "counts_matches": self.count_matches,
            "max_count": _MAX_COUNT if self.max_count is None else self.max_count,
            "max_columns": self.max_columns,
            "before": self.before,
            "after": self.after,
        }
