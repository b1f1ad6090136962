"""The options of `gompfs grep`: those of ripgrep, with its meanings, and a few of gompfs.

`_OPTIONS` is the table of options that do something. `_WITHOUT_EFFECT` are options of ripgrep that change nothing in an
archive, and `_REFUSED` those that gompfs does not have, with what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gompfs.cli.cluster import dask_option
from gompfs.cli.parameters import Decorated, IntegerRange, check_engine_option, complete_engine
from gompfs.errors import OptionError

_NUMBER = IntegerRange(min=0, max=(1 << 32) - 1)

Callback = Callable[[click.Context, click.Parameter, Any], Any]


def _flag(*names: str, text: str) -> Any:
    return click.option(*names, is_flag=True, help=text)


def _case(short: str, name: str, *, text: str) -> Any:
    return click.option(short, name, "case", flag_value=name, default=None, help=text)


def _switch(*names: str, text: str) -> Any:
    return click.option(*names, default=None, help=text)


def _number(*names: str, text: str) -> Any:
    return click.option(*names, metavar="N", type=_NUMBER, help=text)


def _text(*names: str, metavar: str, text: str, callback: Callback | None = None) -> Any:
    return click.option(*names, metavar=metavar, help=text, callback=callback)


def _complete_type(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from gompfs.search.file_types import FileTypes

    return [name for name in FileTypes().names() if name.startswith(incomplete)]


def _list(*names: str, metavar: str, text: str) -> Any:
    complete = _complete_type if metavar == "TYPE" else None
    return click.option(*names, metavar=metavar, multiple=True, help=text, shell_complete=complete)


def _choice(name: str, choices: list[str], text: str) -> Any:
    return click.option(name, type=click.Choice(choices), default=choices[0], show_default=True, help=text)


def _check_order(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value in (None, "none", "path"):
        return value
    raise click.BadParameter(f"{value!r} is not one of none, path; for other orders, use rg in a mount")


def _check_engine(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value in ("default", "pcre2"):
        raise click.BadParameter("this is the decoder: auto, cpu, gpu or reference; for PCRE2, use -P")
    return check_engine_option(ctx, param, value)


def _check_encoding(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value in ("auto", "none"):
        return value
    from gompfs.search.encodings import encoding_named

    try:
        return encoding_named(value)
    except OptionError as error:
        raise click.BadParameter(str(error)) from None


def _complete_encoding(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from gompfs.search.encodings import encoding_names

    return [name for name in ("auto", "none", *encoding_names()) if name.startswith(incomplete)]


_OPTIONS = (
    _list("-e", "--regexp", metavar="PATTERN", text="Pattern to search for. May be repeated."),
    _list("-f", "--file", metavar="FILE", text="Read patterns from FILE, one a line. - is standard input."),
    _flag("-F", "--fixed-strings/--no-fixed-strings", text="Patterns are literals, not regular expressions."),
    _case("-i", "--ignore-case", text="Ignore case. Of -i, -s and -S, the last one counts."),
    _case("-s", "--case-sensitive", text="Do not ignore case."),
    _case("-S", "--smart-case", text="Ignore case unless a pattern has an uppercase letter."),
    _flag("-w", "--word-regexp", text="A match must not have a word character next to it."),
    _flag("-x", "--line-regexp", text="A match must be a whole line."),
    _flag("-v", "--invert-match", text="Search for lines without a match."),
    _flag("-U", "--multiline/--no-multiline", text="A match may take several lines."),
    _flag("--multiline-dotall/--no-multiline-dotall", text="With -U, a dot also matches a line feed."),
    _flag("-P", "--pcre2/--no-pcre2", text="Patterns have the syntax of PCRE2, with look-around and back-references."),
    _flag("--crlf/--no-crlf", text="Lines may end with CR LF: $ matches before a CR, and a dot does not match it."),
    click.option("--no-pcre2-unicode/--pcre2-unicode", "no_unicode", hidden=True),
    _flag("--no-unicode/--unicode", text="\\w, \\d, \\s, \\b and -i are of ASCII, and a dot matches a byte."),
    _flag("-a", "--text/--no-text", text="Search binary files as if they were text."),
    _flag("--binary/--no-binary", text="Search binary files up to the first match after a NUL. Also -uuu."),
    click.option(
        "-E",
        "--encoding",
        metavar="[auto|none|NAME]",
        default="auto",
        show_default=True,
        callback=_check_encoding,
        shell_complete=_complete_encoding,
        help="NAME, such as latin1, utf-16le or shift_jis: that of files without a byte order mark. auto: byte order "
        "marks tell UTF-16. none: they are bytes like others.",
    ),
    click.option("--no-encoding", "encoding", flag_value="auto", default="auto", hidden=True),
    _list("-g", "--glob", metavar="GLOB", text="Search only files that match GLOB; after a !, those that do not."),
    _list("--iglob", metavar="GLOB", text="As -g, without regard to the case of ASCII letters."),
    _flag("--glob-case-insensitive/--no-glob-case-insensitive", text="-g means --iglob."),
    _list("-t", "--type", metavar="TYPE", text="Search only files of TYPE, such as c, py or md, or of all types: all."),
    _list("-T", "--type-not", metavar="TYPE", text="Do not search files of TYPE."),
    _list("--type-add", metavar="TYPE:GLOB", text="Add GLOB to TYPE, or the types after TYPE:include:."),
    _list("--type-clear", metavar="TYPE", text="Remove the globs of TYPE."),
    _flag("--type-list", text="Print all types and their globs."),
    _flag("--ignore/--no-ignore", text="Leave out what .gitignore, .ignore and .rgignore in the archive name."),
    _list("--ignore-file", metavar="FILE", text="Leave out what FILE names, which is none of the archive."),
    _flag("--no-require-git/--require-git", text="With --ignore, .gitignore also counts outside of git repositories."),
    _number("-d", "--max-depth", "--maxdepth", text="Search N levels of directories; 1: the files of PATH itself."),
    _text("--max-filesize", metavar="SIZE", text="Do not search larger files: a number, and K, M or G."),
    _number("-m", "--max-count", text="Stop after N matching lines of each file."),
    _number("-A", "--after-context", text="Print N lines after each match."),
    _number("-B", "--before-context", text="Print N lines before each match."),
    _number("-C", "--context", text="Print N lines before and after each match."),
    _flag("--passthru", text="Print all lines, also those without a match."),
    _flag("-o", "--only-matching", text="Print only the matches, each on a line of its own."),
    _text("-r", "--replace", metavar="TEXT", text="Print TEXT in place of each match; $1 and ${name} are groups."),
    _flag("--vimgrep", text="Print each match: path, line, column and the line."),
    _flag("-c", "--count", text="Print the number of matching lines of each file that has any."),
    _flag("--count-matches", text="Print the number of matches of each file that has any."),
    _flag("--include-zero", text="With -c and --count-matches, print files without a match too."),
    _flag("-l", "--files-with-matches", text="Print the paths of files with a match."),
    _flag("-L", "--files-without-match", text="Print the paths of files without a match."),
    _flag("--files", text="Print the paths of all files that would be searched. There is no PATTERN."),
    _flag("--json/--no-json", text="Print ripgrep's JSON Lines."),
    _flag("-q", "--quiet", text="Print nothing, and stop at the first match."),
    _switch("-n/-N", "--line-number/--no-line-number", text="Print line numbers. [default: on a terminal]"),
    _switch("--column/--no-column", text="Print the column of the first match, from 1; also line numbers."),
    _flag("-b", "--byte-offset", text="Print where each line begins in its file; with -o, each match."),
    _switch("-H/-I", "--with-filename/--no-filename", text="Print paths. [default: unless PATH is one file]"),
    _switch("--heading/--no-heading", text="Print a path once, above its lines. [default: on a terminal]"),
    _flag("-p", "--pretty", text="As --color always --heading --line-number."),
    _flag("-0", "--null", text="Write a NUL byte after each path."),
    _flag("--trim/--no-trim", text="Leave out white space at the beginning of each line."),
    _number("-M", "--max-columns", text="Do not print lines with more than N bytes."),
    _flag("--max-columns-preview/--no-max-columns-preview", text="With -M, print the beginnings of long lines."),
    _text("--context-separator", metavar="TEXT", text="Line between groups of lines; \\t and \\x7F are escapes."),
    _flag("--no-context-separator", text="Print no line between groups of lines."),
    _text("--field-match-separator", metavar="TEXT", text="What follows path, line and column of a match."),
    _text("--field-context-separator", metavar="TEXT", text="What follows path and line of a line of context."),
    _text("--path-separator", metavar="BYTE", text="What is printed between the names in a path."),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never", "ansi"]),
        help="Color paths, line numbers and matches.  [default: auto]",
    ),
    _list("--colors", metavar="SPEC", text="Colors and styles, such as match:fg:blue, path:style:bold, line:none."),
    click.option(
        "--sort",
        metavar="[none|path]",
        callback=_check_order,
        help="Order of the files. none: that of their content in the archive.  [default: none]",
    ),
    click.option("--sort-files", "sort", flag_value="path", default=None, hidden=True),
    click.option("--no-sort-files", "sort", flag_value="none", default=None, hidden=True),
    click.option("--sortr", metavar="[none|path]", callback=_check_order, help="As --sort, in reverse."),
    _flag("--no-messages/--messages", text="Do not report paths that do not exist and files that cannot be read."),
    _flag("--read-all", text="Also read the files that cannot have a match, judged by the words of the archive."),
    _flag("--stats/--no-stats", text="Print statistics about the search at its end."),
    click.option("-u", "--unrestricted", count=True, hidden=True),
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
        callback=_check_engine,
        shell_complete=complete_engine,
        default="cpu",
        show_default=True,
        help="Engine that decodes. gpu: also searches on the GPU; gpu:0,1: these GPUs share the work.",
    ),
    dask_option,
)

_LAST_COUNTS = (
    ("word_regexp", "line_regexp"),
    ("text", "binary"),
    ("files", "count", "count_matches", "files_with_matches", "files_without_match", "json", "type_list"),
    ("context_separator", "no_context_separator"),
    ("sort", "sortr"),
    ("passthru", "context"),
    ("passthru", "before_context"),
    ("passthru", "after_context"),
)
"""Groups of options of which the last one on the command line counts."""

_PRETTY = {"color": "always", "heading": True, "line_number": True}
"""What --pretty means."""

_IGNORE_RULES = ("-dot", "-exclude", "-files", "-global", "-messages", "-parent", "-vcs")
_WITHOUT_EFFECT = (
    *(f"--no-ignore{rules}" for rules in _IGNORE_RULES),
    *("--hidden", "-.", "--no-follow", "--no-config"),
    *("--mmap", "--no-mmap", "--one-file-system", "--no-one-file-system", "--no-pre", "--no-search-zip"),
    *("--line-buffered", "--no-line-buffered", "--block-buffered", "--no-block-buffered", "--debug", "--trace"),
    *("--no-auto-hybrid-regex", "--no-ignore-file-case-insensitive"),
)
"""All files of an archive are searched, output is flushed whenever there is some, and there is no configuration."""

_FEWER_RULES = frozenset(f"--no-ignore{rules}" for rules in ("-dot", "-files", "-messages", "-parent", "-vcs"))
"""These would have an effect with --ignore."""

_WITHOUT_EFFECT_WITH_VALUE = ("--dfa-size-limit", "--regex-size-limit")

_ALL_FILES = "use --ignore, or leave files out with -g '!GLOB'"
_REFUSED = {
    "--no-hidden": "all files of an archive are searched; leave hidden ones out with -g '!.*'",
    **{f"--ignore{rules}": _ALL_FILES for rules in _IGNORE_RULES},
    "--follow": "symlinks are not followed; search in a mount with rg --follow",
    "--null-data": "lines end with line feeds; pipe gompfs cat ARCHIVE PATH to rg --null-data",
    "-z, --search-zip": "files are searched as they are; use gompfs cat ARCHIVE PATH | zcat | rg, or rg -z in a mount",
    "--auto-hybrid-regex": "patterns have the syntax of rg, or with -P that of PCRE2",
    "--pcre2-version": "the library is that of the system; ask its package manager about libpcre2",
    "--stop-on-nonmatch": "files are searched to their ends; limit matches with -m N",
    "--ignore-file-case-insensitive": _ALL_FILES,
}
_REFUSED_WITH_VALUE = {
    "--pre": "files are searched as they are; use rg --pre in a mount",
    "--pre-glob": "files are searched as they are; use rg --pre in a mount",
    "--hyperlink-format": "files of an archive have no addresses; use rg in a mount",
    "--hostname-bin": "files of an archive have no addresses; use rg in a mount",
    "--generate": "the manual page is installed, or shown by gompfs grep --help; see gompfs completion for shells",
}


def _ignored(names: str, **kind: Any) -> Any:
    return click.option(*_with_long_name(names), hidden=True, expose_value=False, **kind)


def _refused(names: str, reason: str, **kind: Any) -> Any:
    def refuse(_ctx: click.Context, _param: click.Parameter, value: object) -> None:
        if value not in (None, False):
            raise click.UsageError(f"{names} is not supported: {reason}")

    return click.option(*_with_long_name(names), hidden=True, expose_value=False, callback=refuse, **kind)


def _with_long_name(names: str) -> list[str]:
    """Returns the names of an option, and one for its parameter, which -. would not give."""
    return ["hidden_files", names] if names == "-." else names.split(", ")


_OTHERS = (
    *(_ignored(names, is_flag=True) for names in _WITHOUT_EFFECT),
    *(_ignored(names) for names in _WITHOUT_EFFECT_WITH_VALUE),
    *(_refused(names, reason, is_flag=True) for names, reason in _REFUSED.items()),
    *(_refused(names, reason) for names, reason in _REFUSED_WITH_VALUE.items()),
)


class GrepCommand(click.Command):
    """A command in which the last of some options counts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        rest = super().parse_args(ctx, args)
        given = [param.name for param in order]
        weaker = [name for param in order for name in param.opts if name in _FEWER_RULES]
        if weaker and (ctx.params["ignore"] or ctx.params["ignore_file"]):
            raise click.UsageError(f"{weaker[0]} is not supported with --ignore or --ignore-file")
        for group in _LAST_COUNTS:
            of_group = [name for name in given if name in group and ctx.params[name] is not False]
            for loser in set(of_group[:-1]) - set(of_group[-1:]):
                ctx.params[loser] = None
        if ctx.params["pretty"]:
            after = given[max(at for at, name in enumerate(given) if name == "pretty") :]
            ctx.params.update({name: value for name, value in _PRETTY.items() if name not in after})
        return rest


def grep_options(function: Decorated) -> Decorated:
    """All options of the command."""
    for option in reversed((*_OPTIONS, *_OTHERS)):
        function = option(function)
    return function
