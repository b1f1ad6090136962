"""The parameters of a search."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from gompfs._native.search import Matcher, PatternError
from gompfs.errors import OptionError
from gompfs.search.encodings import encoding_tables

_UNLIMITED = (1 << 63) - 1


class Output(IntEnum):
    """What a search returns. The values equal those of SearchOptions::Output in native/search."""

    LINES = 0
    COUNT = 1
    FILES_WITH_MATCHES = 2
    FILES_WITHOUT_MATCH = 3
    JSON = 4
    COUNT_MATCHES = 5
    FILES = 6
    """The paths of all files. They are not searched."""


class Order(IntEnum):
    """The order of the files. The values equal those of ListOptions::Order in native/search."""

    STREAM = 0
    """That of their bytes in the archive."""
    PATH = 1
    REVERSED_PATH = 2


class Separators(NamedTuple):
    """What stands between fields and lines of the output."""

    match: bytes = b":"
    """Between the fields of a line with a match."""
    context: bytes = b"-"
    """Between the fields of a line of context."""
    groups: bytes | None = b"--"
    """A line between groups of lines that do not follow each other."""
    path: bytes = b"/"
    """A byte, between the names in a path."""


class Colors(NamedTuple):
    """The escape sequences of colored output. Each begins with the one that resets; that of matches may be empty."""

    path: bytes = b"\x1b[0m\x1b[35m"
    line: bytes = b"\x1b[0m\x1b[32m"
    column: bytes = b"\x1b[0m"
    match: bytes = b"\x1b[0m\x1b[1m\x1b[31m"


DEFAULT_COLORS = Colors()
DEFAULT_SEPARATORS = Separators()


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
    unicode: bool = True
    pcre: bool = False
    """The patterns have the syntax of PCRE2."""
    crlf: bool = False
    """Lines may end with a carriage return and a line feed."""
    text: bool = False
    """Search binary files as if they were text."""
    binary: bool = False
    """Search files with NULs up to the first match after a NUL, and say that they match."""
    raw: bool = False
    """Search the bytes of files with byte order marks as they are."""
    encoding: str | None = None
    """That of files without a byte order mark, as `encoding_named` returns it. None: their bytes are searched."""
    output: Output = Output.LINES
    only_matching: bool = False
    each_match: bool = False
    """Write a line again for each of its matches."""
    all_lines: bool = False
    """Write lines without a match too."""
    zero_counts: bool = False
    """Write the counts of files without a match too."""
    replacement: bytes | None = None
    """What is written in place of each match; $1 and ${name} stand for groups."""
    trim: bool = False
    """Leave out white space at the beginning of lines."""
    line_numbers: bool = False
    columns: bool = False
    """Write where the first match of a line begins, in bytes from 1; with `only_matching`, where each match begins."""
    byte_offsets: bool = False
    """Write where a line begins in the file; with `only_matching`, where the match begins."""
    paths: bool = True
    heading: bool = False
    color: bool = False
    colors: Colors = DEFAULT_COLORS
    separators: Separators = DEFAULT_SEPARATORS
    null: bool = False
    """Write a NUL after each path."""
    count_matches: bool = False
    max_count: int | None = None
    """Limit for the matching lines of each file."""
    max_columns: int = 0
    """Lines with more bytes are left out of the output; 0: no limit."""
    preview: bool = False
    """Write the beginnings of lines that are left out."""
    before: int = 0
    after: int = 0
    """Lines of context."""
    globs: tuple[bytes, ...] = ()
    caseless_globs: tuple[bytes, ...] = ()
    type_globs: tuple[bytes, ...] = ()
    """Globs of file types, which count where no other glob decides."""
    ignores: bool = False
    """Leave out what .gitignore, .ignore and .rgignore files in the archive name."""
    requires_git: bool = True
    """A .gitignore counts only in a git repository."""
    ignore_files: tuple[tuple[bytes, bytes], ...] = ()
    """Names and contents of further files with ignore rules. Their paths begin at the root of the archive."""
    max_depth: int | None = None
    """How many levels of directories are searched; 1: only the files in a root itself."""
    max_filesize: int | None = None
    """Larger files are not searched. In bytes."""
    prunes: bool = True
    """Do not read files that cannot have a match, judged by the words in the heads of their parts."""
    order: Order = Order.STREAM

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
                unicode=self.unicode,
                pcre=self.pcre,
                crlf=self.crlf,
                replacement=self.replacement,
            )
        except PatternError as error:
            raise OptionError(str(error)) from None

    def listing(self) -> dict[str, object]:
        """Returns which files are searched: globs, and the members of ListOptions in native/search.

        Raises OptionError for a negative number.
        """
        return {
            "globs": self.globs,
            "caseless_globs": self.caseless_globs,
            "type_globs": self.type_globs,
            "ignores": self.ignores,
            "requires_git": self.requires_git,
            "ignore_files": self.ignore_files,
            "order": self.order,
            "max_depth": _limit("max_depth", self.max_depth),
            "max_size": _limit("max_filesize", self.max_filesize),
        }

    def native_options(self) -> dict[str, object]:
        """Returns the members of SearchOptions in native/search.

        Raises OptionError for a negative number, and for an unknown encoding.
        """
        return {
            "output": self.output,
            "is_inverted": self.invert,
            "is_crlf": self.crlf,
            "searches_binary": self.text,
            "searches_after_nul": self.binary,
            "ignores_byte_order": self.raw,
            "encoding": None if self.encoding is None else encoding_tables(self.encoding),
            "only_matching": self.only_matching,
            "prints_each_match": self.each_match,
            "prints_all_lines": self.all_lines,
            "prints_zero_counts": self.zero_counts,
            "replaces": self.replacement is not None,
            "trims": self.trim,
            "has_line_numbers": self.line_numbers,
            "has_columns": self.columns,
            "has_byte_offsets": self.byte_offsets,
            "has_paths": self.paths,
            "has_heading": self.heading,
            "has_color": self.color,
            "has_null": self.null,
            "counts_matches": self.count_matches,
            "max_count": _limit("max_count", self.max_count),
            "max_columns": self.max_columns,
            "has_preview": self.preview,
            "before": _limit("before", self.before),
            "after": _limit("after", self.after),
            "context_separator": self.separators.groups,
            "match_separator": self.separators.match,
            "field_context_separator": self.separators.context,
            "path_separator": self.separators.path,
            "colors": self.colors,
        }


def _limit(name: str, value: int | None) -> int:
    if value is None:
        return _UNLIMITED
    if value < 0:
        raise OptionError(f"{name} must not be negative, but is {value}")
    return min(value, _UNLIMITED)
