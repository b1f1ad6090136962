"""The query that the options of `gompfs grep` make."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from gompfs.cli.grep_colors import colors_of
from gompfs.errors import OptionError

if TYPE_CHECKING:
    from gompfs.search import Order, Output, SearchQuery, Separators
    from gompfs.search.file_types import FileTypes

Value = TypeVar("Value")

_MAX_PATTERN_FILE = 16 << 20
_MAX_IGNORE_FILE = 1 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_UNRESTRICTED_BINARY = 3


def patterns_of(options: dict[str, Any]) -> list[bytes]:
    """Returns the patterns of -e and -f. Raises OSError and OptionError."""
    patterns = list(map(os.fsencode, options["regexp"]))
    for path in options["file"]:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            content = file.read(_MAX_PATTERN_FILE + 1)
        if len(content) > _MAX_PATTERN_FILE:
            raise OptionError(f"{path}: the file of patterns is larger than 16 MiB")
        lines = content.removesuffix(b"\n").split(b"\n") if content else []
        patterns += [line.removesuffix(b"\r") for line in lines]
    return patterns


def query_of(options: dict[str, Any], patterns: list[bytes], *, has_paths: bool) -> SearchQuery:
    """Returns the query that the options ask for. Raises OptionError."""
    from gompfs.search import Output, SearchQuery

    is_for_reader = sys.stdout.isatty()
    is_vimgrep = options["vimgrep"]
    output = output_of(options)
    always_has_paths = output in (
        Output.FILES,
        Output.FILES_WITH_MATCHES,
        Output.FILES_WITHOUT_MATCH,
        Output.JSON,
    )
    has_columns = default(options["column"], is_vimgrep)
    has_numbers = is_for_reader or bool(options["column"]) or is_vimgrep or output is Output.JSON
    context = options["context"] or 0
    globs = options["glob"]

    return SearchQuery(
        patterns=tuple(patterns),
        fixed=options["fixed_strings"],
        ignore_case=options["case"] == "--ignore-case",
        smart_case=options["case"] == "--smart-case",
        words=bool(options["word_regexp"]),
        lines=bool(options["line_regexp"]),
        invert=options["invert_match"],
        multi_line=options["multiline"],
        dot_all=options["multiline_dotall"],
        unicode=not options["no_unicode"],
        pcre=options["pcre2"],
        crlf=options["crlf"],
        text=bool(options["text"]),
        binary=bool(options["binary"]) or options["unrestricted"] >= _UNRESTRICTED_BINARY,
        raw=options["encoding"] == "none",
        encoding=None if options["encoding"] in ("auto", "none") else options["encoding"],
        output=output,
        only_matching=options["only_matching"],
        each_match=is_vimgrep,
        all_lines=bool(options["passthru"]),
        zero_counts=options["include_zero"],
        replacement=None if options["replace"] is None else os.fsencode(options["replace"]),
        trim=options["trim"],
        line_numbers=default(options["line_number"], has_numbers) and output in (Output.LINES, Output.JSON),
        columns=has_columns,
        byte_offsets=options["byte_offset"],
        paths=always_has_paths or default(options["with_filename"], has_paths or is_vimgrep),
        heading=default(options["heading"], is_for_reader) and not is_vimgrep,
        color=_has_color(options),
        colors=colors_of(options["colors"]),
        separators=_separators_of(options),
        null=options["null"],
        count_matches=bool(options["stats"] or options["json"]),
        max_count=options["max_count"],
        max_columns=options["max_columns"] or 0,
        preview=options["max_columns_preview"],
        before=default(options["before_context"], context),
        after=default(options["after_context"], context),
        globs=() if options["glob_case_insensitive"] else tuple(map(os.fsencode, globs)),
        caseless_globs=tuple(
            map(os.fsencode, (*(globs if options["glob_case_insensitive"] else ()), *options["iglob"]))
        ),
        type_globs=types_of(options).globs(options["type"], options["type_not"]),
        ignores=options["ignore"],
        requires_git=not options["no_require_git"],
        ignore_files=tuple(map(_ignore_file, options["ignore_file"])),
        max_depth=options["max_depth"],
        max_filesize=_size_of(options["max_filesize"]),
        prunes=not options["read_all"],
        order=_order_of(options),
    )


def _ignore_file(path: str) -> tuple[bytes, bytes]:
    """Returns the name and the content of a file with ignore rules. Raises OSError and OptionError."""
    with open(path, "rb") as file:
        content = file.read(_MAX_IGNORE_FILE + 1)
    if len(content) > _MAX_IGNORE_FILE:
        raise OptionError(f"{path}: the file of ignore rules is larger than 1 MiB")
    return os.fsencode(path), content


def default(option: Value | None, value: Value) -> Value:
    """Returns the value of an option that was given, or another one."""
    return value if option is None else option


def output_of(options: dict[str, Any]) -> Output:
    """Returns what a search prints."""
    from gompfs.search import Output

    outputs = {
        "json": Output.JSON,
        "files": Output.FILES,
        "count_matches": Output.COUNT_MATCHES,
        "count": Output.COUNT,
        "files_with_matches": Output.FILES_WITH_MATCHES,
        "files_without_match": Output.FILES_WITHOUT_MATCH,
    }
    output = next((output for name, output in outputs.items() if options[name]), Output.LINES)
    is_printed = not options["quiet"] or output in (Output.FILES, Output.FILES_WITHOUT_MATCH)
    return output if is_printed else Output.FILES_WITH_MATCHES


def types_of(options: dict[str, Any]) -> FileTypes:
    """Returns the file types, with those that the options define. Raises OptionError."""
    from gompfs.search.file_types import FileTypes

    types = FileTypes()
    for name in options["type_clear"]:
        types.clear(name)
    for definition in options["type_add"]:
        types.add(definition)
    return types


def _has_color(options: dict[str, Any]) -> bool:
    choice = options["color"] or ("never" if options["vimgrep"] else "auto")
    if choice != "auto":
        return choice != "never"
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and "NO_COLOR" not in os.environ


def _separators_of(options: dict[str, Any]) -> Separators:
    from gompfs.search import Separators

    defaults = Separators()
    path = unescaped(options["path_separator"], defaults.path)
    if len(path) != 1:
        raise OptionError("--path-separator must be one byte")
    return Separators(
        match=unescaped(options["field_match_separator"], defaults.match),
        context=unescaped(options["field_context_separator"], defaults.context),
        groups=None if options["no_context_separator"] else unescaped(options["context_separator"], b"--"),
        path=path,
    )


def unescaped(text: str | None, unset: bytes) -> bytes:
    r"""Returns the bytes of an option, or `unset` if it is not given. \t, \n, \r, \0, \\ and \x7F are escapes in it."""
    if text is None:
        return unset
    escapes = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}

    def byte_of(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[2], 16)]) if match[2] else escapes[match[1]]

    return re.sub(rb"\\([tnr0\\]|x([0-9A-Fa-f]{2}))", byte_of, os.fsencode(text))


def _size_of(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text)
    if match is None or int(match[1]) >= 1 << 32:
        raise OptionError(f"--max-filesize: {text!r} is not a number, with or without K, M or G")
    return int(match[1]) * _UNITS[match[2]]


def _order_of(options: dict[str, Any]) -> Order:
    from gompfs.search import Order

    if options["sortr"] == "path":
        return Order.REVERSED_PATH
    return Order.PATH if options["sort"] == "path" else Order.STREAM
