"""The options of a search, in one table: the fields of SearchQuery.

A field is an option of `gompfs grep`, an argument of `ArchiveFiles.grep`, a member of a request to the daemon of a
mount, and a member of an options struct in native/search, and has the same name in all of them. The help is that of the
man page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from gompfs.errors import OptionError
from gompfs.light_types import TYPE_CHECKING, NamedTuple, frozen

if TYPE_CHECKING:
    from typing import Any

    from gompfs._native.search import Matcher

_UNLIMITED = (1 << 63) - 1
_MAX_IGNORE_FILE = 1 << 20
_NOT_AN_ENCODING = ("auto", "none")


class Option(NamedTuple):
    """How a field is an option of `gompfs grep`. Its long name is that of the field, with - for _."""

    help: str
    short: str = ""
    kind: str = "flag"
    """`flag`, `number`, `text`, `texts`, `choice` or `switch`. A text may be given several times in `texts`; a `switch`
    has an opposite, and the command decides if neither is given."""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    opposite: tuple[str, str] = ("", "")
    """The short and the long name of the opposite of a switch."""
    group: str = ""
    """Of the options in a group, the last one on the command line counts."""
    is_for_output: bool = False
    """It says what is printed: ArchiveFiles.grep does not have it."""
    read: Callable[[Any], Any] | None = None
    """Makes the value of the field of what the user gives. Raises OptionError and OSError."""


class _Declared(NamedTuple):
    """A field with its default and how it is an option, before SearchQuery is made."""

    default: Any
    option: Option


def _option(default: Any, *names_and_help: str, **more: Any) -> Any:
    *short, text = names_and_help
    return _Declared(default, Option(text, "".join(short), **more))


def _flag(*names_and_help: str, **more: Any) -> Any:
    return _option(False, *names_and_help, **more)


def _number(*names_and_help: str, default: int | None = None, **more: Any) -> Any:
    return _option(default, *names_and_help, kind="number", metavar="N", **more)


def _texts(*names_and_help: str, metavar: str, read: Callable[[str | bytes], Any]) -> Any:
    def read_all(values: Any) -> tuple[Any, ...]:
        return tuple(map(read, (values,) if isinstance(values, str | bytes) else values))

    return _option((), *names_and_help, kind="texts", metavar=metavar, read=read_all)


def _output(*names_and_help: str, **more: Any) -> Any:
    """A flag. Of those that say what is printed in place of lines, the last one counts."""
    return _flag(*names_and_help, group="output", is_for_output=True, **more)


def _switch(default: bool, *names_and_help: str, opposite: tuple[str, str]) -> Any:
    return _option(default, *names_and_help, kind="switch", opposite=opposite, is_for_output=True)


OPTIONS: dict[str, Option] = {}
"""How the fields of SearchQuery are options, by their names."""


def _with_options(query: type[SearchQuery]) -> type[SearchQuery]:
    """Fills OPTIONS, and leaves the defaults in the class."""
    for name, declared in list(vars(query).items()):
        if isinstance(declared, _Declared):
            OPTIONS[name] = declared.option
            setattr(query, name, declared.default)
    return query


def _read_ignore_file(path: str | bytes) -> tuple[bytes, bytes]:
    """Returns the name and the content of a file with ignore rules."""
    with open(path, "rb") as file:
        content = file.read(_MAX_IGNORE_FILE + 1)
    if len(content) > _MAX_IGNORE_FILE:
        raise OptionError(f"{os.fsdecode(path)}: the file of ignore rules is larger than 1 MiB")
    return os.fsencode(path), content


def _read_sort(value: str) -> str:
    if value not in ("path", "none"):
        raise OptionError(f"sort must be 'path' or 'none', not {value!r}")
    return value


@frozen
@_with_options
class SearchQuery:
    """What to search for, and what to return. The options have ripgrep's meanings."""

    patterns: tuple[bytes, ...]
    fixed_strings: bool = _flag("-F", "Patterns are literals, not regular expressions.")
    ignore_case: bool = _flag("-i", "Ignore case. Of -i, -s and -S, the last one counts.", group="case")
    case_sensitive: bool = _flag("-s", "Do not ignore case.", group="case")
    smart_case: bool = _flag("-S", "Ignore case unless a pattern has an uppercase letter.", group="case")
    word_regexp: bool = _flag("-w", "A match must not have a word character next to it.", group="bounds")
    line_regexp: bool = _flag("-x", "A match must be a whole line.", group="bounds")
    invert_match: bool = _flag("-v", "Search for lines without a match.")
    multiline: bool = _flag("-U", "A match may take several lines. After (?s), a dot also matches a line feed.")
    pcre2: bool = _flag("-P", "Patterns have the syntax of PCRE2, with look-around and back-references.")
    crlf: bool = _flag("Lines may end with CR LF: $ matches before a CR, and a dot does not match it.")
    text: bool = _flag("-a", "Search binary files as if they were text.")
    encoding: str = _option(
        "auto",
        "-E",
        "NAME, such as latin1, utf-16le or shift_jis: that of files without a byte order mark. auto: byte order marks "
        "tell UTF-16. none: they are bytes like others.",
        kind="text",
        metavar="[auto|none|NAME]",
    )
    glob: tuple[bytes, ...] = _texts(
        "-g", "Search only files that match GLOB; after a !, those that do not.", metavar="GLOB", read=os.fsencode
    )
    type: tuple[str, ...] = _texts(
        "-t", "Search only files of TYPE, such as c, py or md, or of all types: all.", metavar="TYPE", read=os.fsdecode
    )
    type_not: tuple[str, ...] = _texts("-T", "Do not search files of TYPE.", metavar="TYPE", read=os.fsdecode)
    ignore: bool = _flag("Leave out what .gitignore, .ignore and .rgignore in the archive name.")
    ignore_file: tuple[tuple[bytes, bytes], ...] = _texts(
        "Leave out what FILE names, which is none of the archive.", metavar="FILE", read=_read_ignore_file
    )
    """Names and contents. Paths in them begin at the root of the archive."""
    max_depth: int | None = _number("-d", "Search N levels of directories; 1: the files of PATH itself.")
    max_count: int | None = _number("-m", "Stop after N matching lines of each file.")
    after_context: int | None = _number("-A", "Print N lines after each match.")
    before_context: int | None = _number("-B", "Print N lines before each match.")
    context: int = _number("-C", "Print N lines before and after each match.", default=0)
    only_matching: bool = _flag("-o", "Print only the matches, each on a line of its own.", is_for_output=True)
    replace: bytes | None = _option(
        None,
        "-r",
        "Print TEXT in place of each match; $1 and ${name} are groups.",
        kind="text",
        metavar="TEXT",
        is_for_output=True,
        read=os.fsencode,
    )
    vimgrep: bool = _flag("Print each match: path, line, column and the line.", is_for_output=True)
    count: bool = _output("-c", "Print the number of matching lines of each file that has any.")
    count_matches: bool = _output("Print the number of matches of each file that has any.")
    files_with_matches: bool = _output("-l", "Print the paths of files with a match.")
    files_without_match: bool = _output("-L", "Print the paths of files without a match.")
    files: bool = _output("Print the paths of all files that would be searched. There is no PATTERN.")
    json: bool = _output("Print ripgrep's JSON Lines.")
    quiet: bool = _flag("-q", "Print nothing, and stop at the first match.", is_for_output=True)
    line_number: bool = _switch(
        False, "-n", "Print line numbers. [default: on a terminal]", opposite=("-N", "--no-line-number")
    )
    column: bool = _flag("Print the column of the first match, from 1; also line numbers.", is_for_output=True)
    with_filename: bool = _switch(
        True, "-H", "Print paths. [default: unless PATH is one file]", opposite=("-I", "--no-filename")
    )
    heading: bool = _switch(
        False, "Print a path once, above its lines. [default: on a terminal]", opposite=("", "--no-heading")
    )
    null: bool = _flag("-0", "Write a NUL byte after each path.", is_for_output=True)
    trim: bool = _flag("Leave out white space at the beginning of each line.", is_for_output=True)
    max_columns: int = _number("-M", "Do not print lines with more than N bytes.", default=0, is_for_output=True)
    color: bool = _option(
        False,
        "Color paths, line numbers and matches.  [default: auto]",
        kind="choice",
        choices=("auto", "always", "never"),
        is_for_output=True,
    )
    sort: str = _option(
        "none",
        "Order of the files. none: that of their content in the archive.  [default: none]",
        kind="choice",
        choices=("none", "path"),
        read=_read_sort,
    )
    read_all: bool = _flag("Also read the files that cannot have a match, judged by the words of the archive.")
    stats: bool = _flag("Print statistics about the search at its end.", is_for_output=True)

    @property
    def is_decoded(self) -> bool:
        """Whether files are decoded from another encoding."""
        return self.encoding not in _NOT_AN_ENCODING

    def as_dict(self) -> dict[str, Any]:
        """Returns the values of the fields by their names."""
        return dict(vars(self))

    def matcher(self) -> Matcher:
        """Returns the compiled patterns. Raises OptionError."""
        from gompfs._native.search import Matcher, PatternError

        try:
            return Matcher(self.as_dict())
        except PatternError as error:
            raise OptionError(str(error)) from None

    def native_options(self) -> dict[str, object]:
        """Returns the options as native/search takes them, by their names.

        Raises OptionError for a negative number, an unknown encoding and an unknown type of files.
        """
        from gompfs.search.encodings import encoding_tables
        from gompfs.search.file_types import type_globs

        options = self.as_dict()
        for name, value in options.items():
            if isinstance(value, int) and value < 0:
                raise OptionError(f"{name} must not be negative, but is {value}")
            if isinstance(value, int) and value > _UNLIMITED:
                options[name] = _UNLIMITED
        return options | {
            "encoding": encoding_tables(self.encoding) if self.is_decoded else None,
            "ignores_byte_order": self.encoding == "none",
            "type_glob": type_globs(self.type, self.type_not),
        }


def query_of(patterns: Iterable[str | bytes], options: Mapping[str, Any]) -> SearchQuery:
    """Returns a query of options as users give them: globs as text, files by their paths, one value for several.

    Raises OptionError, and OSError for a file.
    """
    values = {
        name: value if value is None or (read := OPTIONS[name].read) is None else read(value)
        for name, value in options.items()
    }
    return SearchQuery(tuple(map(os.fsencode, patterns)), **values)
