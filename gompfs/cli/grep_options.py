"""The options of `gompfs grep`: those of gompfs.search.query.OPTIONS, and those that only the command has.

Options that gompfs does not have are refused, those of ripgrep and grep with advice.
"""

from __future__ import annotations

import os
import sys

from gompfs.cli.cluster import dask_option
from gompfs.cli.command_line import BadValueError, Choice, IntegerRange, option
from gompfs.cli.parameters import engine_option, jobs_option
from gompfs.errors import OptionError
from gompfs.light_types import TYPE_CHECKING
from gompfs.search.query import OPTIONS, SearchQuery, query_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from gompfs.cli.command_line import Decorated
    from gompfs.search.query import Option as SearchOption

_NUMBER = IntegerRange(0, (1 << 32) - 1)
_MAX_PATTERN_FILE = 16 << 20


def _check_encoding(value: str) -> str:
    if value in ("auto", "none"):
        return value
    from gompfs.search.encodings import encoding_named

    try:
        return encoding_named(value)
    except OptionError as error:
        raise BadValueError(str(error)) from None


def _complete_encoding(_given: Mapping[str, Any], incomplete: str) -> list[str]:
    from gompfs.search.encodings import encoding_names

    return [name for name in ("auto", "none", *encoding_names()) if name.startswith(incomplete)]


def _complete_type(_given: Mapping[str, Any], incomplete: str) -> list[str]:
    from gompfs.search.file_types import type_names

    return [name for name in type_names() if name.startswith(incomplete)]


_MORE: dict[str, dict[str, Any]] = {
    "encoding": {
        "parse": _check_encoding,
        "complete": _complete_encoding,
        "default": "auto",
        "show_default": True,
    },
    "type": {"complete": _complete_type},
    "type_not": {"complete": _complete_type},
}
"""What the command has besides the table."""


def _declared(name: str, row: SearchOption) -> Callable[[Decorated], Decorated]:
    """Returns the decorator for an option of the table."""
    names = [row.short, f"--{name.replace('_', '-')}"]
    more: dict[str, Any] = {"help": row.help, "group": row.group or None, "metavar": row.metavar, **_MORE.get(name, {})}
    match row.kind:
        case "flag":
            more["is_flag"] = True
        case "switch":
            names = [f"{name}/{opposite}" for name, opposite in zip(names, row.opposite, strict=True) if name]
            more["default"] = None
        case "number":
            more["type"] = _NUMBER
            more["default"] = getattr(SearchQuery, name)
        case "texts":
            more["multiple"] = True
        case "choice":
            more |= {"type": Choice(row.choices), "default": row.choices[0]}
    return option(*filter(None, names), name, **more)


_FIRST = (
    option("-e", "--regexp", metavar="PATTERN", multiple=True, help="Pattern to search for. May be repeated."),
    option(
        "-f",
        "--file",
        metavar="FILE",
        multiple=True,
        help="Read patterns from FILE, one a line. - is standard input.",
    ),
)
_LAST = (
    option("--type-list", is_flag=True, help="Print all types and their globs."),
    jobs_option,
    engine_option,
    dask_option,
)

_ALL_FILES = "all files of an archive are searched, hidden and ignored ones too"
_SEPARATORS = "what separates lines, fields and names cannot be chosen; for programs, use --json"
_NO_CHOICE = "there is nothing to choose here; leave it out"
_LEFT_OUT = {
    name: advice
    for names, advice in (
        ("-G --basic-regexp --extended-regexp", "patterns are those of rg, and with -P those of PCRE2"),
        ("-R --recursive", "directories are always searched recursively; leave it out"),
        ("-b --byte-offset", "--json has the offsets of lines"),
        ("-p --pretty", "use --color always --heading -n"),
        ("-u --unrestricted -. --hidden --no-ignore", f"{_ALL_FILES}; leave it out"),
        ("-z --search-zip", "use gompfs cat ARCHIVE PATH | zcat | rg, or rg -z in a mount"),
        ("--auto-hybrid-regex", "use -P for patterns of PCRE2"),
        ("--binary", "use -a, or name the file as PATH"),
        ("--colors", "--color has the colors that rg has by default"),
        ("--context-separator --no-context-separator --path-separator", _SEPARATORS),
        ("--field-context-separator --field-match-separator", _SEPARATORS),
        ("--exclude --exclude-dir", "use -g '!GLOB'"),
        ("--include --type-add --type-clear", "use -g GLOB"),
        ("--generate", "see man gompfs-grep; for shells, see gompfs setup"),
        ("--glob-case-insensitive --iglob", "write both cases, as in -g '*.[cC]'"),
        ("--hostname-bin --hyperlink-format", "files of an archive have no addresses; use rg in a mount"),
        ("--ignore-file-case-insensitive", "write both cases in the rules, as in *.[cC]"),
        ("--include-zero", "-L prints the files without a match"),
        ("--block-buffered --line-buffered --mmap --no-mmap --one-file-system --stop-on-nonmatch", _NO_CHOICE),
        ("--debug --trace --no-config --no-ignore-messages --dfa-size-limit --regex-size-limit", _NO_CHOICE),
        ("--max-columns-preview", "-M leaves long lines out; -o prints only their matches"),
        ("--max-filesize", "leave large files out with -g '!GLOB'"),
        ("--multiline-dotall", "use -U, and write (?s) at the beginning of the pattern"),
        ("--no-hidden", "leave hidden files out with -g '!.*'"),
        ("--no-messages", "add 2>/dev/null"),
        ("--no-pcre2-unicode", "patterns of -P are for Unicode; use rg in a mount"),
        ("--no-require-git", "give the rules by --ignore-file FILE"),
        ("--no-unicode", "write (?-u) at the beginning of the pattern"),
        ("--null-data", "lines end with line feeds; use gompfs cat ARCHIVE PATH | rg --null-data"),
        ("--passthru --passthrough", "use -e PATTERN -e '^', which matches all lines"),
        ("--pcre2-version", "the library is that of the system; ask its package manager about libpcre2"),
        ("--pre --pre-glob --follow", "files are searched as they are; use rg in a mount"),
        ("--sort-files", "use --sort path"),
        ("--threads", "use -j N"),
        ("--sortr", "use --sort path, and tac"),
    )
    for name in names.split()
}
"""What to do instead of using options of ripgrep and grep that gompfs does not have."""


def advice(name: str) -> str | None:
    """Returns what to do instead of using an option that gompfs does not have; None if nobody has it."""
    if name in _LEFT_OUT:
        return _LEFT_OUT[name]
    if name.startswith(("--no-ignore", "--ignore-")):
        return f"{_ALL_FILES}; leave some out with --ignore or -g '!GLOB'"
    opposite = name.replace("--no-", "--", 1)
    if opposite.removeprefix("--").replace("-", "_") in OPTIONS or opposite in _LEFT_OUT:
        return f"without {opposite}, it is off; leave it out" if opposite != name else None
    return None


def grep_options(function: Decorated) -> Decorated:
    """All options of the command."""
    options = [_declared(name, option) for name, option in OPTIONS.items()]
    for decorate in reversed((*_FIRST, *options, *_LAST)):
        function = decorate(function)
    return function


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


def query_of_options(options: dict[str, Any], patterns: Iterable[bytes], *, has_paths: bool) -> SearchQuery:
    """Returns the query that the options ask for. With `has_paths`, paths are printed by default.

    Raises OptionError, and OSError for a file.
    """
    is_for_reader, is_vimgrep = sys.stdout.isatty(), options["vimgrep"]
    has_numbers = is_for_reader or is_vimgrep or options["column"] or options["json"]
    decided = {
        "line_number": _default(options["line_number"], has_numbers),
        "with_filename": _default(options["with_filename"], has_paths or is_vimgrep),
        "heading": _default(options["heading"], is_for_reader) and not is_vimgrep,
        "color": _has_color(options["color"], is_vimgrep),
    }
    return query_of(patterns, {name: options[name] for name in OPTIONS} | decided)


def _default(option: bool | None, value: bool) -> bool:
    """Returns the value of an option that was given, or another one."""
    return value if option is None else option


def _has_color(choice: str, is_vimgrep: bool) -> bool:
    if choice != "auto" or is_vimgrep:
        return choice == "always"
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and "NO_COLOR" not in os.environ
