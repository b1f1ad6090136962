"""Writes the man page gompfs.1 from the help of all commands: `python tools/man.py [FILE]`, or to stdout."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from gompfs import __version__
from gompfs.cli.application import application

_STATUSES = (
    ("0", "Success."),
    ("1", "Failure: the archive is damaged, an entry does not exist, a file cannot be read or written."),
    ("2", "Wrong usage."),
    ("130", "Interrupted."),
    ("141", "The reader of the output has closed it."),
)
_HELP_OPTIONS = ["-h", "--help"]
_SEE_ALSO = r"\fBtar\fR(1), \fBfusermount3\fR(1), \fBmount\fR(8), \fBfstab\fR(5)"


def roff(text: str) -> str:
    """Returns the text with everything escaped that roff would interpret."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return "\n".join(rf"\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n"))


def paragraphs(help_text: str) -> Iterator[str]:
    """Yields a help text as roff; paragraphs after a line with \\b keep their line breaks, as in click."""
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            yield from (".PP", ".nf", *(roff(line) for line in lines[1:]), ".fi")
        else:
            yield from (".PP", roff(" ".join(lines)))


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yields the options of a command as a roff list."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None:
            yield from (".TP", rf"\fB{roff(record[0])}\fR", roff(record[1]))


def command_section(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    """Yields the section of one command: usage line, help, options."""
    context = click.Context(command, info_name=name, parent=parent, help_option_names=_HELP_OPTIONS)
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f'.SS "gompfs {name}"', rf"\fBgompfs {name}\fR {roff(usage)}")
    yield from paragraphs(command.help or "")
    yield from options(command, context)


def man_page() -> str:
    """Returns the whole page as roff."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    context = click.Context(application, info_name="gompfs", help_option_names=_HELP_OPTIONS)
    lines = [f'.TH GOMPFS 1 "{date}" "gompfs {__version__}" "User Commands"', ".SH NAME"]
    lines += [r"gompfs \- mount compressed archives as directories", ".SH SYNOPSIS"]
    lines += [r"\fBgompfs\fR [\fIOPTION\fR]... \fICOMMAND\fR [\fIARGUMENT\fR]...", ".SH DESCRIPTION"]
    lines += [
        *paragraphs(application.help or ""),
        ".SH OPTIONS",
        *options(application, context),
        ".SH COMMANDS",
    ]
    for name in application.list_commands(context):
        command = application.get_command(context, name)
        assert command is not None
        lines += command_section(name, command, context)
    lines.append(".SH EXIT STATUS")
    for status, meaning in _STATUSES:
        lines += [".TP", rf"\fB{status}\fR", meaning]
    return "\n".join([*lines, ".SH SEE ALSO", _SEE_ALSO, ""])


def main() -> None:
    """Write the page to the file named on the command line, or to stdout."""
    parser = argparse.ArgumentParser(description="Write the man page of gompfs.")
    parser.add_argument("file", nargs="?", type=Path, help="where to write it; stdout if left out")
    file: Path | None = parser.parse_args().file
    if file is None:
        sys.stdout.write(man_page())
    else:
        file.write_text(man_page())


if __name__ == "__main__":
    main()
