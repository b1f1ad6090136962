"""The help of all commands as plain values: the man pages and the reference of the documentation are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gompfs.cli import command_line
from gompfs.cli.application import COMMAND_MODULES, PROGRAM, PROGRAM_NAME, command_named
from gompfs.cli.help import Paragraph, option_rows, paragraphs, usage_of

__all__ = ["Command", "Paragraph", "commands", "program"]


@dataclass(frozen=True)
class Command:
    """One command: its name with the program's, its usage, its help, and (declaration, help) of each option."""

    name: str
    usage: str
    paragraphs: list[Paragraph]
    options: list[tuple[str, str]]


def program() -> Command:
    """Returns the program itself, with the options that come before a command."""
    return _described(PROGRAM, PROGRAM_NAME)


def commands() -> Iterator[Command]:
    """Yields all commands in the order in which the program's help lists them."""
    for name in COMMAND_MODULES:
        yield _described(command_named(name), f"{PROGRAM_NAME} {name}")


def _described(command: command_line.Command, name: str) -> Command:
    return Command(name, usage_of(command), list(paragraphs(command.help)), option_rows(command))
