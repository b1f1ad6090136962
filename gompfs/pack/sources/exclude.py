"""Exclude patterns: which entries `--exclude` and `--exclude-from` leave out.

The rules are those of `.gitignore`, applied to the path inside the source:

* `*` matches any run of bytes except `/`; `?` one byte except `/`; `[a-z]`, `[!a-z]` and `[[:digit:]]` one byte
  of a set. A backslash makes the next byte literal.
* A pattern without `/` matches an entry's name at any depth. A pattern with `/` at the start or in the middle is
  matched against the whole path from the root of the source.
* `**/` at the start means in any directory, `/**` at the end everything inside, `/**/` any number of
  directories.
* A trailing `/` restricts the pattern to directories.
* `!` at the start includes an entry again; of all matching patterns, the last one decides. Everything in an
  excluded directory is left out with it and cannot be included again.

In a pattern file, empty lines and lines that start with `#` are ignored, and so are blanks at the end of a line unless
a backslash precedes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from gompfs.errors import OptionError

__all__ = ["ExcludeRules", "read_patterns"]

_POSIX_CLASSES = {
    b"alnum": b"0-9A-Za-z",
    b"alpha": b"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": b"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": b"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb"\t\n\v\f\r ",
    b"upper": b"A-Z",
    b"xdigit": b"0-9A-Fa-f",
}
_DIRECTORY = b"\0"
"""Marks the path of a directory at its end. No path contains it, and no wildcard matches it."""
_ONE_BYTE = rb"[^/\0]"
# A set in brackets. Its first item may be `]`, and named classes may contain `]` too.
_BRACKET = re.compile(rb"\[([!^]?)(\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*)\]", re.DOTALL)
_BRACKET_ITEM = re.compile(rb"\[:([a-z]+):\]|\\(.)|(.)", re.DOTALL)


def read_patterns(file: str | os.PathLike[str]) -> list[bytes]:
    """Returns the patterns of an `--exclude-from` file, one per line. Raises OptionError if it cannot be read."""
    try:
        with open(file, "rb") as lines:
            content = lines.read()
    except OSError as error:
        raise OptionError(f"cannot read the exclude patterns: {error.strerror}", path=file) from error
    stripped = (_strip_blanks(line.removesuffix(b"\r")) for line in content.split(b"\n"))
    return [line for line in stripped if line and not line.startswith(b"#")]


def _strip_blanks(line: bytes) -> bytes:
    bare = line.rstrip(b" \t")
    escaped = (len(bare) - len(bare.rstrip(b"\\"))) % 2 == 1
    return bare + line[len(bare) : len(bare) + 1] if escaped else bare


class ExcludeRules:
    """A compiled list of patterns. Its truth value is False if the list is empty."""

    def __init__(self, patterns: Iterable[str | bytes] = ()) -> None:
        """Raises OptionError for an empty pattern, including a bare `/` or `!`."""
        self._runs: list[tuple[bool, re.Pattern[bytes]]] = []
        self._directories: dict[bytes, bool] = {b"": False}
        run: list[bytes] = []
        run_excludes = True
        for pattern in patterns:
            excludes, expression = _translate(os.fsencode(pattern))
            if run and excludes != run_excludes:
                self._add_run(run_excludes, run)
                run = []
            run_excludes = excludes
            run.append(expression)
        if run:
            self._add_run(run_excludes, run)

    def _add_run(self, excludes: bool, expressions: list[bytes]) -> None:
        # The last pattern that matches decides, so the last run comes first.
        self._runs.insert(0, (excludes, re.compile(b"|".join(expressions), re.DOTALL)))

    def __bool__(self) -> bool:
        return bool(self._runs)

    def excludes(self, path: bytes, is_directory: bool) -> bool:
        """Returns whether the entry itself is left out. The directories above it must not be excluded."""
        candidate = path + _DIRECTORY if is_directory else path
        return next((excludes for excludes, run in self._runs if run.fullmatch(candidate)), False)

    def excludes_with_parents(self, path: bytes, is_directory: bool) -> bool:
        """Returns whether the entry or a directory above it is left out, for sources that do not descend."""
        if not self._runs:
            return False
        parent = path.rpartition(b"/")[0]
        if parent not in self._directories:
            self._directories[parent] = self.excludes_with_parents(parent, True)
        return self._directories[parent] or (path != b"" and self.excludes(path, is_directory))


def _translate(pattern: bytes) -> tuple[bool, bytes]:
    """Returns whether a pattern excludes, and a regular expression for the full path, with _DIRECTORY at the end."""
    excludes = not pattern.startswith(b"!")
    body = pattern if excludes else pattern[1:]
    directories_only = body.endswith(b"/")
    body = body.removesuffix(b"/")
    anchored = b"/" in body
    body = body.removeprefix(b"/")
    if not body:
        raise OptionError(f"the exclude pattern {os.fsdecode(pattern)!r} is empty")
    prefix = b"" if anchored else b"(?:.*/)?"
    return excludes, b"(?:" + prefix + _translate_body(body) + _DIRECTORY + (b"" if directories_only else b"?") + b")"


def _translate_body(body: bytes) -> bytes:
    parts: list[bytes] = []
    position = 0
    while position < len(body):
        at_component = position == 0 or body[position - 1 : position] == b"/"
        num_stars = len(body) - position - len(body[position:].lstrip(b"*"))
        if at_component and num_stars > 1 and body.startswith(b"/", position + num_stars):
            expression, length = b"(?:.*/)?", num_stars + 1
        elif at_component and num_stars > 1 and position + num_stars == len(body):
            expression, length = _ONE_BYTE + b".*", num_stars
        elif num_stars:
            expression, length = _ONE_BYTE + b"*", num_stars
        elif body.startswith(b"?", position):
            expression, length = _ONE_BYTE, 1
        elif bracket := _BRACKET.match(body, position):
            expression, length = _translate_bracket(bracket[1], bracket[2]), len(bracket[0])
        elif body.startswith(b"\\", position) and position + 1 < len(body):
            expression, length = re.escape(body[position + 1 : position + 2]), 2
        else:
            expression, length = re.escape(body[position : position + 1]), 1
        parts.append(expression)
        position += length
    return b"".join(parts)


def _translate_bracket(negation: bytes, items: bytes) -> bytes:
    parts: list[bytes] = []
    for item in _BRACKET_ITEM.finditer(items):
        name, escaped, plain = item.groups()
        if name is not None:
            if name not in _POSIX_CLASSES:
                raise OptionError(f"exclude patterns have no class [:{name.decode()}:]")
            parts.append(_POSIX_CLASSES[name])
        elif plain == b"-":
            parts.append(b"-" if item.start() > 0 and item.end() < len(items) else rb"\-")
        else:
            parts.append(re.escape(escaped if plain is None else plain))
    # The lookahead keeps a set, negated or not, from matching what is no byte of a name.
    members = b"".join(parts)
    try:
        re.compile(b"[" + members + b"]")
    except re.error as error:
        raise OptionError(f"bad set [{os.fsdecode(items)}] in an exclude pattern: {error.msg}") from error
    return b"(?=" + _ONE_BYTE + b")[" + (b"^" if negation else b"") + members + b"]"
