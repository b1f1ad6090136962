"""The options of `gompfs grep`, and the query that they make."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from gompfs.cli.cluster import dask_option
from gompfs.cli.file_types import globs_of
from gompfs.cli.parameters import Decorated, IntegerRange, check_engine_option, complete_engine
from gompfs.errors import OptionError

if TYPE_CHECKING:
    from gompfs.search import Output, SearchQuery

_MAX_PATTERN_FILE = 16 << 20
_NUMBER = IntegerRange(min=0, max=(1 << 32) - 1)


def _flag(*names: str, text: str) -> Any:
    return click.option(*names, is_flag=True, help=text)


def _case(short: str, name: str, *, text: str) -> Any:
    return click.option(short, name, "case", flag_value=name, default=None, help=text)


def _switch(*names: str, text: str) -> Any:
    return click.option(*names, default=None, help=text)


def _number(*names: str, text: str) -> Any:
    return click.option(*names, metavar="N", type=_NUMBER, help=text)


def _list(*names: str, metavar: str, text: str) -> Any:
    return click.option(*names, metavar=metavar, multiple=True, help=text)


def _choice(name: str, choices: list[str], text: str) -> Any:
    return click.option(name, type=click.Choice(choices), default=choices[0], show_default=True, help=text)


_OPTIONS = (
    _list("-e", "--regexp", metavar="PATTERN", text="Pattern to search for. May be repeated."),
    _list("-f", "--file", metavar="FILE", text="Read patterns from FILE, one a line. - is standard input."),
    _flag("-F", "--fixed-strings", text="Patterns are literals, not regular expressions."),
    _case("-i", "--ignore-case", text="Ignore case. Of -i, -s and -S, the last one counts."),
    _case("-s", "--case-sensitive", text="Do not ignore case."),
    _case("-S", "--smart-case", text="Ignore case unless a pattern has an uppercase letter."),
    _flag("-w", "--word-regexp", text="A match must not have a word character next to it."),
    _flag("-x", "--line-regexp", text="A match must be a whole line."),
    _flag("-v", "--invert-match", text="Search for lines without a match."),
    _flag("-U", "--multiline", text="A match may take several lines."),
    _flag("--multiline-dotall", text="With -U, a dot also matches a line feed."),
    _flag("-a", "--text", text="Search binary files as if they were text."),
    _list("-g", "--glob", metavar="GLOB", text="Search only files that match GLOB; after a !, those that do not."),
    _list("-t", "--type", metavar="TYPE", text="Search only files of TYPE, such as c, py or md."),
    _list("-T", "--type-not", metavar="TYPE", text="Do not search files of TYPE."),
    _number("-m", "--max-count", text="Stop after N matching lines of each file."),
    _number("-A", "--after-context", text="Print N lines after each match."),
    _number("-B", "--before-context", text="Print N lines before each match."),
    _number("-C", "--context", text="Print N lines before and after each match."),
    _flag("-o", "--only-matching", text="Print only the matches, each on a line of its own."),
    _flag("-c", "--count", text="Print the number of matching lines of each file that has any."),
    _flag("-l", "--files-with-matches", text="Print the paths of files with a match."),
    _flag("-L", "--files-without-match", text="Print the paths of files without a match."),
    _flag("--json", text="Print ripgrep's JSON Lines."),
    _flag("-q", "--quiet", text="Print nothing, and stop at the first match."),
    _switch("-n/-N", "--line-number/--no-line-number", text="Print line numbers. [default: on a terminal]"),
    _switch("--column/--no-column", text="Print the column of the first match, from 1; also line numbers."),
    _switch("-H/-I", "--with-filename/--no-filename", text="Print paths. [default: unless PATH is one file]"),
    _switch("--heading/--no-heading", text="Print a path once, above its lines. [default: on a terminal]"),
    _flag("-0", "--null", text="Write a NUL byte after each path."),
    _number("-M", "--max-columns", text="Do not print lines with more than N bytes."),
    _choice("--color", ["auto", "always", "never"], "Color paths, line numbers and matches."),
    _choice("--sort", ["none", "path"], "Order of the files. none: that of their content in the archive."),
    _flag("--read-all", text="Also read the files that cannot have a match, judged by the words of the archive."),
    _flag("--stats", text="Print statistics about the search at its end."),
    click.option(
        "-j",
        "--threads",
        metavar="N",
        type=IntegerRange(min=0, max=1024),
        default=0,
        help="Number of threads. [default: one per core; with --dask, one for each task]",
    ),
    click.option(
        "--engine",
        metavar="[auto|cpu|gpu|gpu:N,...|reference]",
        callback=check_engine_option,
        shell_complete=complete_engine,
        default="cpu",
        show_default=True,
        help="Decoder to use.",
    ),
    dask_option,
)


def grep_options(function: Decorated) -> Decorated:
    """All options of the command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def patterns_of(options: dict[str, Any]) -> list[bytes]:
    """Returns the patterns of -e and -f. Raises OSError and OptionError."""
    patterns = [line for pattern in options["regexp"] for line in os.fsencode(pattern).split(b"\n")]
    for path in options["file"]:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            content = file.read(_MAX_PATTERN_FILE + 1)
        if len(content) > _MAX_PATTERN_FILE:
            raise OptionError(f"{path}: the file of patterns is larger than 16 MiB")
        patterns += content.removesuffix(b"\n").split(b"\n") if content else []
    return patterns


def query_of(options: dict[str, Any], patterns: list[bytes], *, has_paths: bool) -> SearchQuery:
    """Returns the query that the options ask for. Raises OptionError."""
    from gompfs.search import Output, SearchQuery

    on_terminal = sys.stdout.isatty()
    output = _output_of(options)
    with_names = output in (Output.FILES_WITH_MATCHES, Output.FILES_WITHOUT_MATCH, Output.JSON)
    context = options["context"] or 0

    def default(name: str, value: bool) -> bool:
        return value if options[name] is None else bool(options[name])

    def lines_of_context(name: str) -> int:
        return context if options[name] is None else int(options[name])

    return SearchQuery(
        patterns=tuple(patterns),
        fixed=options["fixed_strings"],
        ignore_case=options["case"] == "--ignore-case",
        smart_case=options["case"] == "--smart-case",
        words=options["word_regexp"],
        lines=options["line_regexp"],
        invert=options["invert_match"],
        multi_line=options["multiline"],
        dot_all=options["multiline_dotall"],
        text=options["text"],
        output=output,
        only_matching=options["only_matching"],
        line_numbers=default("line_number", (on_terminal or bool(options["column"])) and output is Output.LINES),
        columns=bool(options["column"]),
        paths=with_names or default("with_filename", has_paths),
        heading=default("heading", on_terminal),
        color=_has_color(options["color"]),
        null=options["null"],
        count_matches=options["stats"],
        max_count=options["max_count"],
        max_columns=options["max_columns"] or 0,
        before=lines_of_context("before_context"),
        after=lines_of_context("after_context"),
        globs=_globs_of(options),
        prunes=not options["read_all"],
        sort=options["sort"] == "path",
    )


def _output_of(options: dict[str, Any]) -> Output:
    from gompfs.search import Output

    for name in ("files_with_matches", "files_without_match", "count"):
        if options["json"] and options[name]:
            raise OptionError(f"--json cannot be used with --{name.replace('_', '-')}")
    if options["files_with_matches"] or options["quiet"]:
        return Output.FILES_WITH_MATCHES
    if options["files_without_match"]:
        return Output.FILES_WITHOUT_MATCH
    if options["count"]:
        return Output.COUNT
    return Output.JSON if options["json"] else Output.LINES


def _has_color(choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def _globs_of(options: dict[str, Any]) -> tuple[bytes, ...]:
    """Returns the globs. A glob that includes files overrides the types, as in ripgrep."""
    globs = list(options["glob"])
    if all(glob.startswith("!") for glob in globs):
        included = [glob for name in options["type"] for glob in globs_of(name)]
        excluded = ["!" + glob for name in options["type_not"] for glob in globs_of(name)]
        globs = [*included, *excluded, *globs]
    return tuple(map(os.fsencode, globs))
