"""The help of commands, as text for a terminal, and as plain values for the man pages and the reference."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from typing import NamedTuple

from gompfs.cli.command_line import HELP_NAMES, Command, Option

_LEAST_WIDTH, _MOST_WIDTH = 50, 98
_WIDEST_NAME = 30
_INDENT = "  "


class Paragraph(NamedTuple):
    """A paragraph of a help text. `lines` has one element unless the paragraph keeps its line breaks."""

    lines: list[str]
    is_preformatted: bool


def help_text(command: Command, program: str, commands: Iterable[tuple[str, str]] = ()) -> str:
    """Returns the help of a command, or of the program with its `commands`: names, and what they do."""
    width = max(min(shutil.get_terminal_size().columns, _MOST_WIDTH + 2) - 2, _LEAST_WIDTH)
    is_program = command.function is None
    begin = f"Usage: {program if is_program else f'{program} {command.name}'} "
    usage = textwrap.fill(usage_of(command), width, initial_indent=begin, subsequent_indent=" " * len(begin))
    sections = [usage, *(_filled(paragraph, width) for paragraph in paragraphs(command.help))]
    sections.append(_table("Options", option_rows(command), width))
    if is_program:
        sections.append(_table("Commands", commands, width))
    return "\n\n".join(sections) + "\n"


def usage_of(command: Command) -> str:
    """Returns what follows the name of the command in its usage."""
    operands = [argument.metavar for argument in command.arguments]
    return " ".join(["[OPTIONS]", *(operands if command.function is not None else ["COMMAND [ARGS]..."])])


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Yields the paragraphs of a help text; those after a line with \\b keep their line breaks."""
    for paragraph in cleandoc(text).split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            yield Paragraph(lines[1:], is_preformatted=True)
        else:
            yield Paragraph([" ".join(lines)], is_preformatted=False)


def first_sentence(text: str) -> str:
    """Returns the first sentence of a help text."""
    words = next(paragraphs(text)).lines[0].split()
    end = next((index for index, word in enumerate(words, 1) if word.endswith(".")), len(words))
    return " ".join(words[:end])


def option_rows(command: Command) -> list[tuple[str, str]]:
    """Returns how each option is written, with its value, and what it does."""
    rows = [(_declaration(option), _description(option)) for option in command.options]
    return [*rows, (", ".join(HELP_NAMES), "Show this message and exit.")]


def _declaration(option: Option) -> str:
    names = ", ".join(option.names)
    if option.takes_value:
        return f"{names} {option.metavar}"
    return f"{names} / {', '.join(option.opposites)}" if option.opposites else names


def _description(option: Option) -> str:
    more = [f"default: {option.default}"] if option.shows_default else []
    more += [option.type.limits] if option.type.limits else []
    return f"{option.help}  [{'; '.join(more)}]" if more else option.help


def _filled(paragraph: Paragraph, width: int) -> str:
    if paragraph.is_preformatted:
        return "\n".join(_INDENT + line if line else "" for line in paragraph.lines)
    return textwrap.fill(paragraph.lines[0], width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _table(title: str, rows: Iterable[tuple[str, str]], width: int) -> str:
    """Returns names and texts in two columns. A text begins on a line of its own if its name is too wide."""
    rows = list(rows)
    column = min(max(len(name) for name, _ in rows), _WIDEST_NAME) + len(2 * _INDENT)
    lines = [f"{title}:"]
    for name, text in rows:
        first, *rest = textwrap.wrap(text, max(width - column, 10), replace_whitespace=False) or [""]
        name = _INDENT + name
        lines += [name.ljust(column) + first] if len(name) + len(_INDENT) <= column else [name, " " * column + first]
        lines += [" " * column + line for line in rest]
    return "\n".join(lines)
